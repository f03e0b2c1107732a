//! Verbs in a process of their own.

use std::process::ExitCode;

use anyhow::{Context, Result};
use prof_events::WorkerEnd;

use crate::message::Console;

/// Runs a verb that reads other processes, in a process of its own: so this one can end, whatever
/// that waits for.
///
/// # Errors
///
/// When no process can be created; an error of the verb has been printed.
pub fn in_worker(verb: impl FnOnce() -> Result<ExitCode>) -> Result<ExitCode> {
    let status = |code: ExitCode| (0..=u8::MAX).find(|&it| ExitCode::from(it) == code);
    let end = prof_events::in_worker(|| {
        let code = verb().unwrap_or_else(|error| {
            Console::error(&error);
            ExitCode::FAILURE
        });
        status(code).unwrap_or(1)
    });
    match end.context("cannot start a process")? {
        WorkerEnd::Exit(status) => Ok(status.into()),
        WorkerEnd::Signal(signal) => prof_events::end_by(signal),
    }
}
