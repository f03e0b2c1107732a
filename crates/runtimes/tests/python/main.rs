//! CPython's frames: those of real interpreters as they tell them themselves, and of hostile memory.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod hostile;
mod layouts;
mod stacks;
mod target;
