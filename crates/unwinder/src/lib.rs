//! From registers and stack bytes to callers, with our own unwinder over DWARF call frame
//! information.
//!
//! [`Unwinder::unwind`] takes the user registers of a sample, the stack dump and the process's
//! mappings, and returns the callers and *why the walk ended*: a stack is whole, or has a reason
//! why not. Memory beyond the dump comes from a [`Memory`], if there is one, and is checked before
//! it is used. docs/design/unwinding.md has the details.
//!
//! ```
//! use prof_model::{Modules, Process, RegisterAbi, UserRegisters};
//! use prof_unwinder::{Architecture, LocalFiles, NoMemory, StackDump, Target, Unwinder, UserState};
//!
//! // Of a sample: registers by perf's numbers (here of x86-64: 7 is the stack pointer, 8 the
//! // instruction pointer), and the copied stack; of its process: what is mapped where.
//! let mask = 1 << 7 | 1 << 8;
//! let registers = UserRegisters::new(RegisterAbi::Bits64, mask, [0x7ffd_0000, 0x40_1234]);
//! let dump = StackDump { start: 0x7ffd_0000, bytes: &[0; 64], full: false };
//! let (process, modules) = (Process::default(), Modules::default());
//! let target = Target { pid: 1, process: &process, modules: &modules };
//!
//! let mut unwinder = Unwinder::for_architecture(Architecture::X86_64, LocalFiles);
//! let mut frames = Vec::new();
//! let registers = registers.ok_or("more values than registers")?;
//! let user = UserState { registers: &registers, dump };
//! let unwound = unwinder.unwind(&target, &user, &mut NoMemory, &mut frames);
//!
//! // The process is unknown: there is nothing to unwind.
//! assert!(frames.is_empty() && !unwound.end.is_whole());
//! println!("{}", unwound.end.describe());
//! # Ok::<(), &str>(())
//! ```
#![forbid(unsafe_code)]

mod arch;
mod cache;
mod cfi;
mod code;
mod engine;
mod entry;
mod frame;
mod frames;
mod functions;
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
pub use memory::stack::OVERLAP;
pub use memory::target::{
    FrameWords, JitCode, JitFrames, Memory, NoMemory, StackDump, Target, UserState,
};
pub use module::files::{LocalFiles, ModuleFiles, TablesRead};
pub use unwinder::{FRAME_LIMIT, Unwinder};
