//! Recordings to profiles, views and formats.
//!
//! ```text
//! Recording ──load──> Profile ──names──> SymbolizedProfile ──filter──> CallTree ─> view ─> format
//! ```
//! Each step is a value of its own: a profile can be named in several ways, and one named profile
//! gives as many trees as there are filters.
//!
//! ```
//! use prof_report::view::flat::Flat;
//! use prof_report::{CallTree, Filter, LoadOptions, Split, SymbolizedProfile};
//! use prof_symbols::{SymbolOptions, Symbolizer};
//!
//! // A recording of prof or perf, a pprof profile or, as here, folded stacks.
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("stacks.folded");
//! std::fs::write(&path, "main;parse 30\nmain;parse;copy 10\nmain;write 60\n")?;
//!
//! let profile = prof_report::read(&path, &LoadOptions::default())?;
//! let symbolizer = Symbolizer::new(SymbolOptions::default());
//! let profile = SymbolizedProfile::new(profile, &symbolizer);
//! let filter = Filter { function: Some("parse".parse()?), ..Filter::default() };
//! let tree = CallTree::new(&profile, &filter, Split::Nothing)?;
//!
//! let flat = Flat::new(&tree);
//! let hottest = &flat.rows[0];
//! assert_eq!(&*profile[hottest.function].name, "parse");
//! assert_eq!((hottest.own.value, hottest.total.value), (30, 40));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

pub mod calltree;
mod error;
mod filter;
mod folded_name;
pub mod format;
mod load;
mod numbers;
mod pattern;
pub mod profile;
mod source;
pub mod symbolize;
#[cfg(test)]
mod testing;
mod thousands;
pub mod view;

pub use calltree::{CallTree, Split};
pub use error::{Error, InputError, NoSamples};
pub use filter::Filter;
pub use load::{
    LoadOptions, LoadProgress, Span, StackCopies, StreamingProfile, load, profile_of, read,
    recording_file,
};
pub use pattern::{InvalidPattern, Pattern};
pub use profile::Profile;
pub use source::{NoSource, SourceFile, Sources};
pub use symbolize::{Language, NameCache, SymbolizedProfile};
