//! The flags of `prof view`.

use std::path::PathBuf;

use clap::Args;

/// `prof view [FILE] [...]`
#[derive(Debug, Args)]
pub(crate) struct ViewFlags {
    /// A recording of prof or perf, folded stacks or a pprof profile
    #[arg(value_name = "FILE", default_value = "prof.data")]
    pub(crate) recording: PathBuf,

    /// Write the page to this file, instead of to FILE with .html instead of .data
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// Write the page without opening it
    #[arg(long)]
    pub(crate) no_open: bool,
}
