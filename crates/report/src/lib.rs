//! Recordings to profiles, views and formats.
//!
//! ```text
//!   Recording ──load──> Profile ──names──> SymbolizedProfile ──filter──> CallTree ──> view ──> format
//! ```
//! Each step is a value of its own: a profile can be named in several ways, and one named profile
//! gives as many trees as there are filters.
#![forbid(unsafe_code)]

pub mod calltree;
mod error;
mod filter;
pub mod format;
mod load;
mod numbers;
pub mod profile;
mod source;
mod suggest;
pub mod symbolize;
#[cfg(test)]
mod testing;
pub mod view;

pub use calltree::{CallTree, Split};
pub use error::{Error, InputError, NoSamples};
pub use filter::{Filter, InvalidPattern, Pattern};
pub use load::{LiveProfile, LoadOptions, LoadProgress, Span, StackCopies, load, profile_of, read};
pub use profile::Profile;
pub use source::{NoSource, SourceFile, Sources};
pub use symbolize::{NameCache, SymbolizedProfile};
