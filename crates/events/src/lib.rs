//! perf_event_open and its ring buffers, as types that own the kernel's resources.
//!
//! ```text
//!   parsing/  text to EventSpec         request/  what to sample: events, threads, sizes
//!   plan/     what to ask the kernel for first, what next where it refuses, what to advise
//!   attr/     an event as perf_event_attr
//!   kernel/   its system calls and rings    counting/  counters, read without a ring
//!   sampler/  one descriptor per event, thread and CPU; one ring per CPU ─> whole records as &[u8]
//!
//!   process/  commands held before exec, signals, memory    tracing/  ptrace, without events
//!   system/   the machine, its settings, our privileges and priorities
//! ```
//!
//! ```
//! use prof_events::parsing::Catalog;
//!
//! // What perf's users type, as what perf_event_open takes.
//! let groups = Catalog::system().parse("page-faults:u,{task-clock,context-switches}")?;
//! assert_eq!(groups.len(), 2);
//! let faults = &groups[0].events[0];
//! assert_eq!((faults.encoding.kind, faults.encoding.config), (1, 2));
//!
//! let error = Catalog::system().parse("page-fults").unwrap_err();
//! assert!(error.to_string().contains("page-faults"));
//! # Ok::<(), prof_events::parsing::ParseError>(())
//! ```
//!
//! All unsafe code of prof is here and in the file maps; each block says why it is sound.

mod attr;
pub mod counting;
mod error;
mod kernel;
pub mod parsing;
mod permission;
mod plan;
mod process;
mod rate;
mod request;
mod sampler;
pub mod system;
pub mod tracing;

pub use attr::definition::{Definition, remove_leftovers};
pub use attr::sample_period::SamplePeriod;
pub use attr::setup::{
    Features, Reports, Role, Sampling, Scope, Setup, Stacks, Tracking, WithDump,
};
pub use error::Error;
pub use kernel::context_pin::ContextPin;
pub use kernel::ring::{Drained, Ring};
pub use plan::advice::advice;
pub use plan::trial::Trial;
pub use process::cpus::{AllowedCpus, current_cpu};
pub use process::launcher::{HeldCommand, Launcher, Program, RunningCommand};
pub use process::memory::LiveMemory;
pub use process::poll::wait_readable;
pub use process::signals::{ChildSignals, Interrupt, Signals, survive_file_size_limit};
pub use process::streams::{stderr, stdout};
pub use rate::{MAX_STACK_DUMP, Rate};
pub use request::allocators::allocations;
pub use request::event::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, SizeArguments, USUAL_HERTZ, Weight,
};
pub use request::sizes::{BufferRequest, Sizes};
pub use request::target_threads::{CpuWide, Threads};
pub use request::{Request, Toggling};
pub use sampler::opened::{Opened, OpenedEvent};
pub use sampler::ring_watch::{CpuRing, RingWatch};
pub use sampler::wait::Wake;
pub use sampler::{SampleSignal, Sampler};
pub use system::hotplug::HotplugEvents;
