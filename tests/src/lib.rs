//! Shared by the tests on real programs: building the programs, running `prof` and `perf`, reading
//! their output.
//!
//! ```text
//!   Program ──build──> executable            (tests/programs, cached in the target directory)
//!      │
//!   Session::record ──> Recorded ──report──> Stacks        prof, built as the tests are
//!                          └───── perf script ─> Stacks    the same file in perf's eyes
//! ```
#![forbid(unsafe_code)]

mod aliases;
pub mod browser;
mod endless;
mod need;
mod perf;
mod program;
mod sandbox;
mod session;
mod signal;
mod stacks;
mod statistics;
mod target;
mod waiting;

pub use aliases::Aliases;
pub use endless::Endless;
pub use need::{Need, allowed, cgroups, cpusets, dotnet, needs};
pub use perf::{PerfSample, perf_record, perf_script};
pub use program::{Compiler, Program, Variant};
pub use sandbox::{PERF_EVENT_OPEN, PIDFD_OPEN, PTRACE, own_tmp, refusing};
pub use session::{Outcome, Recorded, Session, USER_CODE, User, copy_executable};
pub use signal::signal;
pub use stacks::{Stacks, is_root, starts_at_root};
pub use statistics::assert_shares;
pub use target::prof;
pub use waiting::{spawn_ready, wait_until};
