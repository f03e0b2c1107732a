//! PHP's frames by activations of its evaluation loop.
//!
//! ```text
//!   executor_globals ── current_execute_data
//!                                 │          frames of one activation
//!   native stack:  execute_ex     ▼
//!                  │              f3 ──prev──> f2 ──prev──> entry frame (ZEND_CALL_TOP)
//!                  ▼              │                                      │
//!                                 ▼ func: name, class, file, opcodes     ▼ next activation
//! ```
//! One activation of the evaluation loop runs many PHP functions: a call from PHP to PHP does not
//! use the native stack. The outermost frame of each activation has a flag, as have those of
//! internal functions that C code calls, which run no loop.
//!
//! Only builds without thread safety (NTS) are read: others have no `executor_globals`.

mod frames;
mod functions;
mod layout;
mod library;

pub use frames::Interpreter;
pub use functions::Functions;
pub(crate) use library::Library;
