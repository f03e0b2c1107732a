//! Samples a target and writes a recording.
#![forbid(unsafe_code)]
