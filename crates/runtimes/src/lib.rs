//! Frames of language runtimes, read from the memory of a running process.
//!
//! All of this memory is foreign: it may change while it is read, and a process may fake it. So
//! each walk has limits on time and memory, checks the types of the objects that it reads, and
//! yields a whole stack or the reason why there is none. What is remembered of a process is charged
//! to its [`Account`](prof_model::Account).
#![forbid(unsafe_code)]

mod bounded_map;
mod elf;
mod evaluation;
mod function_parts;
pub mod hotspot;
mod interpreter;
mod known_functions;
mod memory;
mod native;
pub mod php;
pub mod python;
mod read;
pub mod ruby;
mod stack;
mod synthetic;
#[cfg(test)]
mod testing;
pub mod v8;

pub use elf::ReadError;
pub use interpreter::{Interpreter, InterpreterCache, Language, Library};
pub use memory::Memory;
pub use native::{InterpreterThread, NativeStack};
pub use stack::{Activation, Function, InterpretedFrame, InterpretedStack, Unknown};
pub use synthetic::SyntheticCode;
