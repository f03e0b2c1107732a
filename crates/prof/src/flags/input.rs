//! The flags for input files and the unwinder.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use prof_report::StackCopies;

/// The flag of all verbs that show profiles.
#[derive(Debug, Args)]
pub(crate) struct InputFlags {
    /// The file to read: a recording of prof or perf, folded stacks or a pprof profile. Several are
    /// merged
    #[arg(
        short,
        long = "input",
        value_name = "FILE",
        default_value = "prof.data"
    )]
    pub(crate) inputs: Vec<PathBuf>,
}

impl InputFlags {
    /// The files that are named without a flag, or else these.
    pub(super) fn or_named<'a>(&'a self, named: &'a [PathBuf]) -> &'a [PathBuf] {
        match named {
            [] => &self.inputs,
            named => named,
        }
    }
}

/// `--unwinder`
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnwinderFlag {
    /// prof's own: whole stacks if possible, else partial ones with the reason
    Prof,
    /// The framehop library, which samply uses: a second opinion
    Framehop,
}

impl From<UnwinderFlag> for StackCopies {
    fn from(flag: UnwinderFlag) -> Self {
        match flag {
            UnwinderFlag::Prof => Self::Unwind,
            UnwinderFlag::Framehop => Self::UnwindWithFramehop,
        }
    }
}
