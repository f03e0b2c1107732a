//! The flags of `prof list`.

use clap::Args;

/// `prof list [PATTERN]`
#[derive(Debug, Args)]
pub(crate) struct ListFlags {
    /// Show only events whose name contains this, or matches it if it has `*` or `?`. Single
    /// tracepoints are shown only with a pattern, such as 'sched:*'
    pub pattern: Option<String>,

    /// Print one JSON object per line
    #[arg(short, long)]
    pub json: bool,
}
