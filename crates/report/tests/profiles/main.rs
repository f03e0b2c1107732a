//! Profiles of recordings, compared with other tools: one test binary, so that it is linked once.

mod annotate_arm;
mod foreign;
mod lbr;
mod perf;
