//! What came of a recording.

use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use prof_model::Quality;

use crate::output::pinned_files::PinnedFiles;

/// What came of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Samples written.
    pub samples: u64,
    /// The files written that there are still, the oldest first; none if it went to the standard
    /// output.
    pub files: Vec<PathBuf>,
    /// Size of all files written, in bytes.
    pub bytes: u64,
    /// From the first to the last moment of sampling.
    pub duration: Duration,
    /// The events that were sampled by in the end, such as `cpu-clock:u`.
    pub events: Vec<String>,
    /// The worth of the recording.
    pub quality: Quality,
    /// How the command ended; `None` if none was started.
    pub exit: Option<ExitStatus>,
    /// The signal that ended the recording, if one did.
    pub stopped_by: Option<i32>,
    /// Files with names for the recording that only we can still open.
    pub kept: Arc<PinnedFiles>,
}
