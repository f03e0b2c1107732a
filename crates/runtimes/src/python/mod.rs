//! CPython's frames by activations of the evaluation loop: read in a few blocks, with code objects
//! that are read once and compared afterwards.
//!
//! ```text
//!   _PyRuntime ──> interpreters ──> thread states ── native_thread_id, current frame
//!                                                                        │
//!   native stack:  _PyEval_EvalFrameDefault      frames of one activation▼
//!                  │ anchor: entry frame or      f3 ──previous──> f2 ──previous──> entry frame
//!                  │ _PyCFrame, on this stack     │                                  │
//!                  ▼                              ▼ code object: name, file, lines   ▼ next
//! ```
//! One activation of the evaluation loop runs many Python functions: a call from Python to Python
//! does not use the native stack. Each activation has a structure on the native stack, its
//! *anchor*, to which the thread state or the frames lead: this shows which Python frames belong to
//! which activation.
//!
//! Up to 3.10 each Python function has an activation of its own. Its anchor is a word of its native
//! frame that points to its frame object.

mod code;
mod frames;
mod layout;
mod library;
mod lines;
mod published;
mod text;
mod threads;
mod versions;

pub(crate) use frames::Cache;
pub use frames::Interpreter;
pub(crate) use library::Library;
