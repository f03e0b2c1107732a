//! `cargo xtask docs`: what the documentation shows, made anew.

mod guide;

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Builds the manual as a book, with a reference of all flags, in target/book (mdBook).
    #[arg(long)]
    book: bool,
}

/// Refreshes what the commands of docs/guide print, or builds the book.
pub(crate) fn run(options: &Options) -> Result<()> {
    match options.book {
        true => guide::build_book(),
        false => guide::refresh(),
    }
}
