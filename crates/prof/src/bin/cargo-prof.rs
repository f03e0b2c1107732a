//! The `cargo-prof` binary.
fn main() {}
