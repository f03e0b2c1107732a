//! Addresses to functions, files, lines and inlined frames.
//!
//! [`Symbolizer::resolve`] takes the distinct addresses of each module and answers with their
//! frames, in parallel. It has two halves: finding the right file (checked by its build id) and
//! naming addresses in it. What could not be named comes back with the reason and a remedy in
//! [`ModuleStatus`].
#![forbid(unsafe_code)]

mod arena;
mod code;
mod debuginfod;
mod download;
mod dwarf;
mod embedded;
mod fde;
mod files;
mod image;
mod jit;
mod kernel;
mod locate;
mod minidebug;
mod module;
mod names;
mod options;
mod plt;
mod query;
mod readable;
mod separate;
mod shorten;
mod status;
mod symbol;
mod symbolizer;
mod table;
mod vdso;

pub use code::{Code, CodeError, Machine};
pub use embedded::{EmbeddedError, EmbeddedSymbols};
pub use names::demangle;
pub use options::{Debuginfod, Demangle, NoOtherPlaces, Places, RecordedKernel, SymbolOptions};
pub use query::{Detail, Query, Resolved, Source, SymbolFrame};
pub use readable::{is_async_plumbing, readable};
pub use shorten::shorten;
pub use status::ModuleStatus;
pub use symbolizer::{Progress, Symbolizer, Watch};
