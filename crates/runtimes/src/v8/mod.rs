//! The functions of V8, the JavaScript engine of Node.
//!
//! V8 publishes the layout of its objects, for debuggers that read its memory: as variables whose
//! names begin with `v8dbg_` (`tools/gen-postmortem-metadata.py` in its sources). All its code
//! keeps frame pointers, and the frames of functions have the function:
//!
//! ```text
//!   │ return address
//!   │ caller's rbp      <── rbp
//!   │ context                 of other frames, which have no function, their kind    layout.rs
//!   │ function ──> JSFunction ──> SharedFunctionInfo ──> Script: name, source        script.rs
//!   │ ...                                           └──> ScopeInfo: name, position   scope_info.rs
//!   │ bytecodes               in the frames of the interpreter and of baseline code
//! ```
//! Objects are read some time after the sample, and V8 moves them meanwhile. So the function of
//! optimized code is found by the code (code.rs), and other functions must have the bytecodes that
//! the frame has (engine.rs).

mod code;
mod engine;
mod function;
mod layout;
mod library;
mod object;
mod scope_info;
mod script;
mod text;

pub use engine::{CodePlace, FileCode, FrameWords, V8};
pub use library::Library;

#[cfg(test)]
mod tests;
