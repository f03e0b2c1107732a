//! Files of perf and of our own: one program of tests, so that it is linked once.

mod common;
mod damage;
mod oracle;
mod other_readers;
mod round_trip;
