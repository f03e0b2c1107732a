//! Address spaces of processes; registers and stack bytes to callers.
#![forbid(unsafe_code)]
