//! Addresses to functions, files, lines and inlined frames.
#![forbid(unsafe_code)]
