//! Processes, threads, the kernel and its settings from /proc: proc(5) as typed values.
//!
//! ```text
//!   Task ── a process or thread ──> Status, Stat, SchedStat, ThreadState, Maps, threads,
//!                                    cgroups, its files
//!   kernel ── release, modules, symbols     settings ── sysctls, cpuinfo, mounts
//! ```
//!
//! The crate `procfs` has more, but reads paths as UTF-8 and fails on files that lack a line of a
//! newer kernel: a single such mapping would hide all of a process.
#![forbid(unsafe_code)]

mod error;
pub mod kernel;
mod maps;
mod sched_stat;
pub mod settings;
mod stat;
mod status;
mod syscall;
mod task;
mod vdso;

pub use error::Error;
pub use maps::{Maps, MapsEntry, Permissions, without_deleted};
pub use sched_stat::SchedStat;
pub use stat::{Stat, State};
pub use status::{Ids, Seccomp, Status};
pub use syscall::ThreadState;
pub use task::{Namespace, Task, descendants, descriptor, identity, newest, processes};
pub use vdso::own_vdso;
