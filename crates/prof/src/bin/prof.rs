//! The `prof` binary.
fn main() {}
