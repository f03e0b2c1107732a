//! CPython: its interpreters, threads and frames.
//!
//! [`Symbols`] come from the file of the interpreter, an executable or libpython. With where that
//! file is mapped, [`Interpreter::new`] learns the version and where that version has its fields.
//! [`Interpreter::threads`] lists the threads, and [`Interpreter::frames`] walks one.
//!
//! ```text
//!  _PyRuntime -> interpreter -> thread -> frame -> code object -> names, line table
//!                    │ next       │ next     │ previous
//! ```
//!
//! The evaluation loop (`_PyEval_EvalFrameDefault`) runs one or more frames. Up to CPython 3.10 each
//! frame has an activation of it. From 3.11 on a call from Python to Python stays in the same
//! activation, and [`Frame::is_entry`] marks the outermost frame of each.

mod frames;
mod interpreter;
mod layout;
mod lines;
mod object;
mod symbols;

use thiserror::Error;

use crate::memory::ReadError;

pub use frames::{Code, FRAME_LIMIT, Frame};
pub use interpreter::{Interpreter, Thread};
pub use layout::{CodeBytes, CurrentFrame, EntryMark, Layout, LineFormat, Version};
pub use symbols::Symbols;

/// Why the frames of a process cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum PythonError {
    /// Where the fields are is not known of this version.
    #[error("this version of CPython is not supported")]
    UnknownVersion,
    /// The interpreter says of itself where its fields are, and that cannot be.
    #[error("the interpreter's own offsets make no sense")]
    BadOffsets,
    /// There is no interpreter yet, or no more.
    #[error("the interpreter is not initialized")]
    NotInitialized,
    /// The memory at this address cannot be read.
    #[error("the interpreter's memory at {0:#x} cannot be read")]
    Unreadable(u64),
    /// The object at this address is not of the type that belongs there.
    #[error("the object at {0:#x} is of another type than expected")]
    WrongType(u64),
    /// A name or table is longer than any real one.
    #[error("the object at {0:#x} is too large")]
    TooLarge(u64),
    /// The instruction is not within the code object of the frame at this address.
    #[error("the frame at {0:#x} is not in its code")]
    OutsideCode(u64),
    /// Frames or threads form a circle, or are more than any real program has.
    #[error("the interpreter's lists do not end")]
    Endless,
    /// There is more to read than a stack may cost.
    #[error("the interpreter's objects are too large to read")]
    Limit,
}

impl From<ReadError> for PythonError {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Unreadable(address) => Self::Unreadable(address),
            ReadError::Limit => Self::Limit,
        }
    }
}
