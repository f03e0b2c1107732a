//! The flags of `prof archive`.

use std::path::PathBuf;

use clap::Args;

use super::symbols::SymbolFlags;

/// `prof archive [FILE] [-o FILE]`
#[derive(Debug, Args)]
pub(crate) struct ArchiveFlags {
    /// The recording, made by prof or perf
    #[arg(value_name = "FILE", default_value = "prof.data")]
    pub(crate) input: PathBuf,

    /// Write the recording with symbols to this file, instead of changing it in place
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,

    /// How to symbolize functions
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,
}
