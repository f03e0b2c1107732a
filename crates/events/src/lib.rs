//! perf_event_open and its ring buffers, as types that own the kernel's resources.
//!
//! ```text
//!   GroupRequest ──(ladder: what this machine and user may)──> Sampler ── one fd per event, thread and CPU
//!                                                          └─ Ring per CPU ──> whole records as &[u8]
//!   Launcher ── a command held before exec ──> Command (pidfd, exit status)
//!   Tracer ── ptrace, where events are refused
//!   LiveMemory ── process_vm_readv   Signals ── signalfd   HotplugEvents ── netlink   system ── /proc and /sys
//! ```
//!
//! ```
//! use prof_events::names::Catalog;
//!
//! // What perf's users type, as what perf_event_open takes.
//! let groups = Catalog::system().parse("page-faults:u,{task-clock,context-switches}")?;
//! assert_eq!(groups.len(), 2);
//! let faults = &groups[0].events[0];
//! assert_eq!((faults.encoding.kind, faults.encoding.config), (1, 2));
//!
//! let error = Catalog::system().parse("page-fults").unwrap_err();
//! assert!(error.to_string().contains("page-faults"));
//! # Ok::<(), prof_events::names::ParseError>(())
//! ```
//!
//! All unsafe code of prof is here and in the file maps; each block says why it is sound.

pub mod access;
mod context_pin;
pub mod counting;
mod exit_counters;
mod fallback;
pub mod names;
mod overflow_signal;
mod sample_period;
pub mod system;
mod target_threads;
pub mod tracing;

mod advice;
mod allocators;
mod arch;
mod cpus;
mod definition;
mod encoding;
mod error;
mod event;
mod hotplug;
mod kernel;
mod launcher;
mod measured_period;
mod memory;
mod opened;
mod opening;
mod plan;
mod probe_reach;
mod rate;
mod refusal;
mod ring;
mod sample_cost;
mod sampler;
mod setup;
mod signals;
mod sizes;
mod streams;
mod tracefs;

pub use advice::{Refusal, advice};
pub use allocators::allocations;
pub use context_pin::ContextPin;
pub use cpus::AllowedCpus;
pub use definition::{Definition, remove_leftovers};
pub use error::Error;
pub use event::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, SizeArguments, USUAL_HERTZ, Weight,
};
pub use hotplug::HotplugEvents;
pub use launcher::{HeldCommand, Launcher, Program, RunningCommand};
pub use memory::LiveMemory;
pub use opened::{Opened, OpenedEvent};
pub use rate::{MAX_STACK_DUMP, Rate};
pub use ring::{Drained, Ring};
pub use sample_period::SamplePeriod;
pub use sampler::{Request, Sampler, Toggling, Wake, wait_readable};
pub use setup::{ATTR_SIZE, Sampling, Setup, Stacks};
pub use signals::{ChildSignals, Interrupt, Signals, survive_file_size_limit};
pub use sizes::{BufferRequest, Sizes};
pub use streams::{stderr, stdout};
pub use target_threads::{CpuWide, Threads};
