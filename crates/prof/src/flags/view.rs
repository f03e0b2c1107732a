//! The flags of `prof view`.

use std::path::{Path, PathBuf};

use clap::Args;

/// `prof view [FILE] [...]` or `prof view -i FILE [...]`
#[derive(Debug, Args)]
pub(crate) struct ViewFlags {
    /// A recording of prof or perf, folded stacks or a pprof profile
    #[arg(
        value_name = "FILE",
        default_value = "prof.data",
        conflicts_with = "input"
    )]
    recording: PathBuf,

    /// The same, as other verbs have it
    #[arg(short, long, value_name = "FILE")]
    input: Option<PathBuf>,

    /// Write the page to this file, instead of to FILE with .html instead of .data
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the page without opening it
    #[arg(long)]
    pub(crate) no_open: bool,
}

impl ViewFlags {
    /// The file to show.
    pub(crate) fn recording(&self) -> &Path {
        self.input.as_ref().unwrap_or(&self.recording)
    }
}
