//! The flags of all verbs that symbolize addresses.

use std::path::PathBuf;

use clap::Args;

/// How to symbolize functions.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Names")]
pub(crate) struct SymbolFlags {
    /// Show mangled names, as the linker sees them
    #[arg(long)]
    pub(crate) no_demangle: bool,

    /// Omit template and generic arguments, parameters and return types; functions that differ only
    /// in these become one
    #[arg(long, conflicts_with = "no_demangle")]
    pub(crate) short_names: bool,

    /// Show the interpreter's own functions, too, in stacks with functions of Python, PHP or
    /// Ruby
    #[arg(long)]
    pub(crate) native: bool,

    /// Look for programs and their debug info below DIR instead of below /, such as a copy of the
    /// recorded machine's files
    #[arg(long, value_name = "DIR")]
    pub(crate) symfs: Option<PathBuf>,

    /// Where to get missing debug info
    #[command(flatten)]
    pub(crate) servers: ServerFlags,
}

impl SymbolFlags {
    /// The usual flags, but without downloads.
    pub(crate) fn offline() -> Self {
        Self {
            servers: ServerFlags {
                no_debuginfod: true,
                ..ServerFlags::default()
            },
            ..Self::default()
        }
    }
}

/// Where to get debug info that is not on this machine.
#[derive(Clone, Debug, Default, Args)]
pub(crate) struct ServerFlags {
    /// Download missing debug info from these debuginfod servers, separated by spaces [default:
    /// those in DEBUGINFOD_URLS]
    #[arg(
        long,
        value_name = "URLS",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = ""
    )]
    pub(crate) debuginfod: Option<String>,

    /// Download nothing, even if DEBUGINFOD_URLS is set
    #[arg(long, conflicts_with = "debuginfod")]
    pub(crate) no_debuginfod: bool,
}
