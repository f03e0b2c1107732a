//! The result of a recording.

use std::fmt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::Arc;
use std::time::Duration;

use prof_model::{Quality, counted};

use crate::output::pinned_files::PinnedFiles;

/// The result of a recording.
#[derive(Clone, Debug)]
pub struct Summary {
    /// Samples written.
    pub samples: u64,
    /// The files that still exist, the oldest first; none if the output was the standard output.
    pub files: Vec<PathBuf>,
    /// Size of all files written, in bytes.
    pub bytes: u64,
    /// From the first to the last moment of sampling.
    pub duration: Duration,
    /// The events that were finally used, such as `cpu-clock:u`.
    pub events: Vec<String>,
    /// The quality of the recording.
    pub quality: Quality,
    /// How the command ended; `None` if none was started.
    pub exit: Option<ExitStatus>,
    /// The signal that ended the recording, if one did.
    pub stopped_by: Option<i32>,
    /// Whether the command did not end after that signal, and was left running after another one.
    pub left_running: bool,
    /// Pinned files with symbols for the recording, which only we can still open.
    pub pinned: Arc<PinnedFiles>,
    /// How often prof itself woke, and why.
    pub wakeups: Wakeups,
}

/// How often the threads of the recording woke: the reader, by what it waited for, and the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wakeups {
    /// Nothing was known of the program's stacks yet: for each sample.
    pub at_start: u64,
    /// Stack tails changed: for each sample.
    pub changing_tails: u64,
    /// Stacks were deeper than their dumps: every 5 ms.
    pub deep_tails: u64,
    /// Tails changed, but unwinding lagged behind: every 5 ms.
    pub lag: u64,
    /// Nothing was sampled: for the next sample.
    pub quiet: u64,
    /// Processes or mappings had changed: soon, then less and less often.
    pub changes: u64,
    /// Nothing was urgent: for rings that fill, or twice a second.
    pub steady: u64,
    /// Wakeups of the thread that unwinds and writes.
    pub session: u64,
}

impl fmt::Display for Wakeups {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = [
            (self.at_start, "at the start"),
            (self.changing_tails, "for stacks that change"),
            (self.deep_tails, "for deep stacks"),
            (self.lag, "while unwinding lagged behind"),
            (self.quiet, "for the next sample"),
            (self.changes, "after processes or mappings changed"),
            (self.steady, "for rings that fill"),
        ];
        let reader: u64 = reasons.iter().map(|&(count, _)| count).sum();
        write!(f, "the reader woke {}", counted(reader, "time"))?;
        for (index, (count, reason)) in reasons.iter().filter(|it| it.0 > 0).enumerate() {
            let before = if index == 0 { ": " } else { ", " };
            write!(f, "{before}{count} {reason}")?;
        }
        write!(f, "; the unwinder woke {}", counted(self.session, "time"))
    }
}

#[cfg(test)]
mod tests {
    use super::Wakeups;

    #[test]
    fn wakeups_are_reported_with_their_reasons() {
        let wakeups = Wakeups {
            at_start: 32,
            steady: 2,
            session: 1,
            ..Wakeups::default()
        };
        let text = "the reader woke 34 times: 32 at the start, 2 for rings that fill; \
                    the unwinder woke 1 time";
        assert_eq!(wakeups.to_string(), text);
        let nothing = "the reader woke 0 times; the unwinder woke 0 times";
        assert_eq!(Wakeups::default().to_string(), nothing);
    }
}
