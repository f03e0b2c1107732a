//! Our own words. They go to the standard error output, so that the command's are untouched.

use std::error::Error;
use std::fmt::Display;
use std::io::Write;

use prof_model::printable;

/// How much to say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Console {
    quiet: bool,
    verbose: bool,
}

impl Console {
    /// Says nothing but errors if `quiet`, and details if `verbose`.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        Self { quiet, verbose }
    }

    /// What everybody should know.
    pub fn say(&self, message: impl Display) {
        if !self.quiet {
            say(&message);
        }
    }

    /// What only the curious want to know.
    pub fn detail(&self, message: impl Display) {
        if self.verbose {
            say(&message);
        }
    }

    /// What went wrong: the chain of causes in one line.
    pub fn error(error: &anyhow::Error) {
        say(&format_args!("error: {}", in_one_line(error)));
    }
}

/// What everybody should know, whatever the flags. It comes in one piece, lest the command's words
/// come between. Who has closed the output, or filled the disk that it goes to, does without.
pub fn say(message: &(impl Display + ?Sized)) {
    let message = message.to_string();
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    let line = format!("prof: {}\n", lines.join("\n"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The chain of causes. Typed errors tell their cause themselves, so that it is not told again.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    let mut line = without_errno(&line);
    if error.chain().any(is_out_of_descriptors) && !line.contains("ulimit") {
        line.push_str(": raise the limit on open files (`ulimit -n`)");
    }
    line
}

/// Without the numbers behind what the system says, as in `No such file (os error 2)`.
fn without_errno(line: &str) -> String {
    let mut parts = line.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    kept
}

/// Whether the process may open no more files (EMFILE).
fn is_out_of_descriptors(error: &(dyn Error + 'static)) -> bool {
    const EMFILE: i32 = 24;
    let error = error.downcast_ref::<std::io::Error>();
    error.and_then(std::io::Error::raw_os_error) == Some(EMFILE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_told_once() {
        let cause = std::io::Error::other("disk on fire");
        let error = anyhow::Error::new(cause).context("cannot write x: disk on fire");
        assert_eq!(in_one_line(&error), "cannot write x: disk on fire");
        assert_eq!(
            in_one_line(&error.context("no luck")),
            "no luck: cannot write x: disk on fire"
        );
    }

    #[test]
    fn numbers_of_errors_are_left_out() {
        let missing = std::io::Error::from_raw_os_error(2);
        let error = anyhow::anyhow!("cannot read x: {missing}; try y (or z)");
        assert_eq!(
            in_one_line(&error),
            "cannot read x: No such file or directory; try y (or z)"
        );
    }

    #[test]
    fn the_limit_on_open_files_is_named() {
        let error = anyhow::Error::new(std::io::Error::from_raw_os_error(24));
        let line = in_one_line(&error.context("cannot start x"));
        assert!(
            line.starts_with("cannot start x: ") && line.ends_with("(`ulimit -n`)"),
            "{line}"
        );
    }
}
