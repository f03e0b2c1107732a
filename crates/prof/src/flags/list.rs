//! The flags of `prof list`.

use clap::Args;

/// `prof list [PATTERN]`
#[derive(Debug, Args)]
pub(crate) struct ListFlags {
    /// Only events whose names hold this, or match it if it holds `*` or `?`; tracepoints are
    /// listed one by one only with a pattern, such as 'sched:*'
    pub pattern: Option<String>,

    /// Print one JSON object a line
    #[arg(short, long)]
    pub json: bool,
}
