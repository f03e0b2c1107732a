//! Profiles of recordings, beside other tools: one program of tests, so that it is linked once.

mod annotate_arm;
mod foreign;
mod lbr;
mod perf;
