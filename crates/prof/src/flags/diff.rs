//! The flags of `prof diff`.

use std::path::PathBuf;

use clap::Args;

use super::report::FilterFlags;
use super::symbols::SymbolFlags;

/// `prof diff BEFORE AFTER [...]`
#[derive(Debug, Args)]
pub(crate) struct DiffFlags {
    /// The recording to compare with
    #[arg(default_value = "prof.data.old")]
    pub(crate) before: PathBuf,

    /// The recording to compare
    #[arg(default_value = "prof.data")]
    pub(crate) after: PathBuf,

    /// Draw a flamegraph of AFTER in which growth is red and shrinkage blue
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,

    /// Draw a flamegraph of BEFORE in the same colours: it shows what has gone
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph_before: Option<PathBuf>,

    /// Write the table for Markdown
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Show at most this many rows
    #[arg(short = 'n', long, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,

    /// Leave out functions whose own share changed by less than so many percentage points
    #[arg(long, value_name = "POINTS", default_value_t = 0.0)]
    pub(crate) min_change: f64,

    /// Which samples and frames to compare
    #[command(flatten)]
    pub(crate) filter: FilterFlags,

    /// How names are found and written
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,
}
