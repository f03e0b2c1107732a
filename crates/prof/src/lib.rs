//! The command line of `prof` and `cargo prof`.
#![forbid(unsafe_code)]
