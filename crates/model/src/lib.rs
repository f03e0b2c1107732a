//! Addresses, modules, processes, stacks and quality: the values that the rest of prof is about.
//!
//! Nothing here does I/O or knows a file format; every other crate may depend on this one.
#![forbid(unsafe_code)]

mod address;
mod ambiguous_thread;
mod budget;
mod coverage;
mod fallback;
mod interpreted;
mod left_out;
mod missing;
mod module;
pub mod perf_registers;
mod probes;
mod process;
mod quality;
mod registers;
mod settings;
mod stack;
mod stack_weights;
mod suggest;
mod text;
mod unseen;
mod verdict;
mod waits;

pub use address::{AbsoluteAddress, ElfAddress, FileOffset, FrameAddress};
pub use ambiguous_thread::AmbiguousThread;
pub use budget::{Account, Budget, Charge};
pub use coverage::Coverage;
pub use fallback::{Fallback, RefusedPart};
pub use interpreted::{InterpretedFunction, InterpretedLanguage, InterpretedStacks, MissingFrames};
pub use left_out::LeftOut;
pub use missing::{MissingCounts, MissingMemory};
pub use module::{BuildId, FileIdentity, Module, ModuleId, ModuleKind, Modules, short_file_name};
pub use probes::{ProbedPrograms, UnreachedProgram};
pub use process::{AddressSpace, Mapping, Pid, Process, Processes, Tid};
pub use quality::{Losses, Quality, SampledBy, Unsampled, UnsampledCode, UnwindFailure};
pub use registers::{RegisterAbi, UserRegisters};
pub use settings::{CallGraphSettings, RecordingSettings};
pub use stack::{StackEnd, StackNote};
pub use stack_weights::StackWeights;
pub use suggest::{one_of, similar};
pub use text::{byte_size, counted, is_printable, printable};
pub use unseen::UnseenProcesses;
pub use verdict::{Grade, Verdict};
pub use waits::WaitCoverage;
