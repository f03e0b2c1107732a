//! Registers and stack bytes to callers, by our own unwinder over DWARF call frame information.
//!
//! [`Unwinder::unwind`] takes the user registers of a sample, the copied stack bytes and the
//! process's mappings, and yields the callers and *why the walk ended*: a stack is whole, or its
//! reason is named. What the copied bytes don't hold comes from a [`Memory`], if there is one,
//! and is checked before it is believed. docs/design/unwinding.md has the whole picture.
#![forbid(unsafe_code)]
#![allow(clippy::too_many_arguments, clippy::too_many_lines)] // Five functions: to be mended.

mod arch;
mod cache;
mod cfi;
mod code;
mod engine;
mod entry;
mod frame;
mod frames;
mod heuristics;
mod memory;
mod module;
mod registers;
mod rule;
mod step;
mod unwinder;
mod walk;

pub use arch::Architecture;
pub use engine::{FrameEngine, Framehop};
pub use entry::Entry;
pub use memory::target::{Memory, NoMemory, StackDump, Target, Unwound};
pub use module::ModuleError;
pub use module::files::{LocalFiles, ModuleFiles};
pub use unwinder::{FRAME_LIMIT, Unwinder};
