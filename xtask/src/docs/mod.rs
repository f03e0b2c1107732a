//! `cargo xtask docs`: refreshes the output and the pictures in the documentation.

mod guide;
mod pictures;

use anyhow::Result;
use clap::Args;

#[derive(Args)]
pub(crate) struct Options {
    /// Builds the manual as a book, with a reference of all flags, in target/book (mdBook).
    #[arg(long)]
    book: bool,
    /// Makes the pictures of README.md and docs/ anew, of a program that is recorded for them.
    #[arg(long, conflicts_with = "book")]
    pictures: bool,
}

/// Refreshes the command output in docs/guide, or the pictures, or builds the book.
pub(crate) fn run(options: &Options) -> Result<()> {
    match (options.book, options.pictures) {
        (true, _) => guide::build_book(),
        (false, true) => pictures::make(),
        (false, false) => guide::refresh(),
    }
}
