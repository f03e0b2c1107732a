//! The flags of `prof doctor`.

use clap::Args;

/// `prof doctor`
#[derive(Debug, Args)]
pub(crate) struct DoctorFlags {
    /// Print one JSON object
    #[arg(short, long)]
    pub json: bool,
}
