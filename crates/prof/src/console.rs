//! Our own words. They go to the standard error output, so that the command's are untouched.

use std::fmt::Display;

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Console {
    quiet: bool,
    verbose: bool,
}

#[expect(
    clippy::print_stderr,
    reason = "this is the one place that prints messages"
)]
impl Console {
    /// Says nothing but errors if `quiet`, and details if `verbose`.
    pub(crate) fn new(quiet: bool, verbose: bool) -> Self {
        Self { quiet, verbose }
    }

    /// What everybody should know.
    pub(crate) fn say(&self, message: impl Display) {
        if !self.quiet {
            eprintln!("prof: {message}");
        }
    }

    /// What only the curious want to know.
    pub(crate) fn detail(&self, message: impl Display) {
        if self.verbose {
            eprintln!("prof: {message}");
        }
    }

    /// What went wrong: the chain of causes in one line.
    pub(crate) fn error(error: &anyhow::Error) {
        eprintln!("prof: error: {error:#}");
    }
}
