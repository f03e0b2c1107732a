//! Addresses to functions, files, lines and inlined frames.
//!
//! [`Symbolizer::resolve`] takes the distinct addresses of each module and answers with their
//! frames, in parallel. It has two halves: finding the right file (checked by its build id) and
//! naming addresses in it. What could not be named comes back with the reason and a remedy in
//! [`ModuleStatus`].
//!
//! ```text
//!   Query ─▶ symbolizer    the file that ran, and those with its symbols    files/, debuginfod/
//!                          its lines and inlined functions                  dwarf/
//!                          or else its symbols and unwind tables            table/
//!                          or, of a Go program, those of Go's runtime       go/
//!                          the kernel's symbols; code made at run time      kernel/, jit/
//!                          symbols that the recording carries               embedded/
//!                          names as people write them                       demangling/
//!                             └─▶ Resolved
//! ```
//!
//! ```
//! use prof_model::Module;
//! use prof_symbols::{Query, Source, SymbolOptions, Symbolizer};
//!
//! #[inline(never)]
//! fn compute() -> u64 {
//!     std::hint::black_box(1)
//! }
//!
//! // Where this function is in our own file: the kernel knows what is mapped where.
//! let address = compute as fn() -> u64 as usize as u64;
//! let maps = std::fs::read_to_string("/proc/self/maps")?;
//! let offset = maps.lines().find_map(|line| {
//!     let mut words = line.split([' ', '-']);
//!     let mut number = || u64::from_str_radix(words.next()?, 16).ok();
//!     let (start, end) = (number()?, number()?);
//!     let offset = u64::from_str_radix(line.split(' ').nth(2)?, 16).ok()?;
//!     (start..end).contains(&address).then(|| address - start + offset)
//! });
//! let addresses = [offset.ok_or("not mapped")?];
//!
//! let module = Module::from_path(&std::env::current_exe()?);
//! let symbolizer = Symbolizer::new(SymbolOptions::default());
//! let query = Query { source: Source::File(&module), addresses: &addresses };
//! let answers = symbolizer.resolve(&[query]);
//!
//! let frames = answers[0].frames(0);
//! assert!(frames.iter().any(|frame| frame.function.contains("compute")), "{frames:?}");
//! # assert_eq!(compute(), 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod ambiguous_paths;
mod arena;
mod bytes;
mod code;
mod debuginfod;
mod demangling;
mod download;
mod dwarf;
mod embedded;
mod files;
mod found;
mod function_code;
mod go;
mod host;
mod image;
mod jit;
mod kernel;
mod module;
mod options;
mod progress;
mod query;
mod status;
mod symbolizer;
mod table;

pub use ambiguous_paths::AmbiguousPaths;
pub use code::{Code, CodeError, Machine};
pub use demangling::demangle;
pub use demangling::readable::{is_async_plumbing, readable};
pub use demangling::shorten::shorten;
pub use embedded::{EmbeddedError, EmbeddedSymbols};
pub use host::Host;
pub use options::{Debuginfod, Demangle, Places, RecordedKernel, SymbolOptions};
pub use progress::{Progress, Watch};
pub use query::{Detail, Query, Resolved, Source, SymbolFrame};
pub use status::ModuleStatus;
pub use symbolizer::Symbolizer;
