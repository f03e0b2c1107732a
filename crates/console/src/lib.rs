//! What `prof` and `prof-fleet` have in common on the terminal: messages on the standard error
//! output, results on the standard output, the command line, and manual pages and shell completions
//! made from flags.
#![forbid(unsafe_code)]

mod generate;
mod message;
mod output;
mod parse;
mod reference;

pub use generate::{complete, generate, pages, typed_words};
pub use message::{Console, say, without_errno};
pub use output::write_stdout;
pub use parse::parsed;
