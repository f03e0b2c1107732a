//! Exit statuses, as shells use them.

use std::os::unix::process::ExitStatusExt;
use std::process::{ExitCode, ExitStatus};

use prof_recorder::Error;

/// The status of `report --strict` with a bad verdict and of `diff --fail-above` with growth: a
/// check has failed.
pub(crate) const CHECK_FAILED: u8 = 3;

const FAILURE: u8 = 1;
const NOT_EXECUTABLE: u8 = 126;
const NOT_FOUND: u8 = 127;
const SIGNAL_BASE: i32 = 128;

/// The status that a shell would show for a command that ended this way.
pub(crate) fn like(status: ExitStatus) -> ExitCode {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| SIGNAL_BASE + signal))
        .and_then(|code| u8::try_from(code).ok());
    code.unwrap_or(FAILURE).into()
}

/// The status that a shell would show for a command that this signal ended.
pub(crate) fn by_signal(signal: i32) -> ExitCode {
    u8::try_from(SIGNAL_BASE + signal).unwrap_or(FAILURE).into()
}

/// The status for a recording that failed.
pub(crate) fn code_of(error: &Error) -> ExitCode {
    match error {
        Error::CommandNotFound { .. } => NOT_FOUND.into(),
        Error::CommandNotStarted { .. } => NOT_EXECUTABLE.into(),
        _ => FAILURE.into(),
    }
}
