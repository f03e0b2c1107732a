//! Exit statuses, as shells use them.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use prof_recorder::Error;

/// `report --strict` and a bad verdict, `diff --fail-above` and growth: what was to be checked is
/// not well.
pub(crate) const CHECK_FAILED: u8 = 3;

const FAILURE: u8 = 1;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNAL_BASE: i32 = 128;

/// The status that a shell would show for a command that ended like this.
pub(crate) fn like(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal))
        .and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(FAILURE).into()
}

/// The status for a recording that could not be made.
pub(crate) fn code_of(error: &Error) -> ExitCode {
    match error {
        Error::CommandNotFound { .. } => NOT_FOUND.into(),
        Error::CommandNotStarted { .. } => NOT_EXECUTABLE.into(),
        _ => FAILURE.into(),
    }
}
