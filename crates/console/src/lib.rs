//! What `prof` and `prof-fleet` say: messages on the standard error output, what was asked for on
//! the standard output, and of their flags, manual pages and completions for shells.
#![forbid(unsafe_code)]

mod generate;
mod message;
mod output;
mod reference;

pub use generate::{complete, generate, pages, typed_words};
pub use message::{Console, say};
pub use output::write_stdout;
