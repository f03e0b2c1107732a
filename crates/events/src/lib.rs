//! perf_event_open and its ring buffers, as types that own the kernel's resources.
//!
//! ```text
//!   Event ──(ladder: what this machine and user may)──> Sampler ── one fd per thread and CPU
//!                                                          └─ Ring per CPU ──> whole records as &[u8]
//!   Launcher ── a command held before exec ──> Command (pidfd, exit status)
//!   LiveMemory ── process_vm_readv           Signals ── signalfd           system ── /proc and /sys
//! ```
//!
//! All unsafe code of prof is here and in the file maps; each block says why it is sound.

mod event;
mod signals;

pub use event::{CallGraph, Event, MAX_STACK_DUMP, Rate, Source, UnknownEvent};
pub use signals::{Interrupt, Signals};
