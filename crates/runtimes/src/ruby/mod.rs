//! Ruby's frames by activations of its evaluation loop.
//!
//! ```text
//!   ruby_current_vm_ptr ──> main ractor ──> threads ──> execution context
//!                                                             │ cfp
//!   native stack:  rb_vm_exec     frames of one activation    ▼
//!                  │              f3 ──next──> f2 ──next──> entry frame (FINISH)
//!                  ▼              │                                │
//!                                 ▼ iseq: label, path, lines       ▼ next activation
//! ```
//! One activation of `rb_vm_exec` runs many Ruby functions: a call from Ruby to Ruby does not use
//! the native stack. The outermost frame of each activation has a flag. Frames are next to each
//! other, the callers at higher addresses. Those of functions in C are left out: their names are
//! numbers, whose table no symbol leads to.

mod frames;
mod functions;
mod layout;
mod library;
mod lines;
mod threads;

pub use frames::Interpreter;
pub use functions::Functions;
pub(crate) use library::Library;
