//! Stacks of real and of constructed programs: one test binary, so that it is linked once.

mod aarch64;
mod call_edges;
mod debugger;
mod framehop;
mod hostile;
mod jit;
mod live_memory;
mod outermost;
mod perf_script;
#[path = "../support/mod.rs"]
mod support;
mod v8;
mod whole_stacks;
