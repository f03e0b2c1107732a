//! Recordings to profiles, views and formats.
#![forbid(unsafe_code)]
