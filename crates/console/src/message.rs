//! Messages of prof itself. They go to the standard error output and so leave the command's output
//! alone.

use std::error::Error;
use std::fmt::Display;
use std::io::Write;

use prof_model::printable;

/// Which messages are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Console {
    quiet: bool,
    verbose: bool,
}

impl Console {
    /// Prints only errors if `quiet`, and details if `verbose`.
    pub fn new(quiet: bool, verbose: bool) -> Self {
        Self { quiet, verbose }
    }

    /// Prints a message for every user.
    pub fn say(&self, message: impl Display) {
        if !self.quiet {
            say(&message);
        }
    }

    /// Prints a message that only `--verbose` shows.
    pub fn detail(&self, message: impl Display) {
        if self.verbose {
            say(&message);
        }
    }

    /// Prints an error: its chain of causes in one line.
    pub fn error(error: &anyhow::Error) {
        say(&format_args!("error: {}", in_one_line(error)));
    }
}

/// Prints a message whatever the flags. It is written in one piece, so that the command's output
/// does not come between. A closed or full standard error output is ignored.
pub fn say(message: &(impl Display + ?Sized)) {
    let message = without_errno(&message.to_string());
    let lines: Vec<_> = message.split('\n').map(printable).collect();
    let line = format!("prof: {}\n", lines.join("\n"));
    let _ = std::io::stderr().write_all(line.as_bytes());
}

/// The chain of causes in one line. Typed errors contain the text of their cause: it is not
/// repeated.
fn in_one_line(error: &anyhow::Error) -> String {
    let mut line = error.to_string();
    for cause in error.chain().skip(1).map(ToString::to_string) {
        if !line.contains(&cause) {
            line.push_str(": ");
            line.push_str(&cause);
        }
    }
    let remedy = error.chain().find_map(remedy_for_limit);
    if let Some(remedy) = remedy.filter(|_| !line.contains("ulimit")) {
        line.push_str(": ");
        line.push_str(remedy);
    }
    line
}

/// Removes the error numbers from the system's texts, such as in `No such file (os error 2)`.
pub fn without_errno(line: &str) -> String {
    let mut parts = line.split(" (os error ");
    let mut kept = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        kept += part.split_once(')').map_or(part, |(_, rest)| rest);
    }
    kept
}

/// What helps if a limit of the process is reached: on open files, or on the size of files, which a
/// file system may limit, too.
fn remedy_for_limit(error: &(dyn Error + 'static)) -> Option<&'static str> {
    const EMFILE: i32 = 24;
    const EFBIG: i32 = 27;
    let error = error.downcast_ref::<std::io::Error>();
    match error?.raw_os_error()? {
        EMFILE => Some("raise the limit on open files (`ulimit -n`)"),
        EFBIG => Some("raise the limit on the size of files (`ulimit -f`), if there is one"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_is_reported_once() {
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
            without_errno(&in_one_line(&error)),
            "cannot read x: No such file or directory; try y (or z)"
        );
    }

    #[test]
    fn limits_are_named() {
        let check = |number, remedy: &str| {
            let error = anyhow::Error::new(std::io::Error::from_raw_os_error(number));
            let line = in_one_line(&error.context("cannot start x"));
            assert!(
                line.starts_with("cannot start x: ") && line.ends_with(remedy),
                "{line}"
            );
        };
        check(24, "(`ulimit -n`)");
        check(27, "(`ulimit -f`), if there is one");
    }
}
