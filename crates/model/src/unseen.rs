//! Processes that could not be sampled, or not as they run without a recording.

use serde::{Deserialize, Serialize};

/// Processes of the target that were not sampled.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UnseenProcesses {
    /// The name of a program that gained privileges, or that the user may not read: the kernel
    /// removes the user's events from a process that executes one.
    pub protected: Option<Box<str>>,
    /// The name of a program that ran without the privileges of its file: the kernel gives them to
    /// no process that a plain user traces.
    pub unprivileged: Option<Box<str>>,
    /// How many processes the command left running when it and the recording ended.
    pub left_running: u64,
    /// How many children of the requested processes ran before the recording: they inherit no
    /// events, and were not requested themselves.
    pub older_children: u64,
    /// A requested process that was stopped when the recording ended.
    pub stopped: Option<i32>,
    /// Whether sampling was never enabled: the recording ended before the delay was over, or before
    /// a request to enable it.
    pub never_enabled: bool,
}

impl UnseenProcesses {
    pub(crate) fn add(&mut self, other: &Self) {
        if self.protected.is_none() {
            self.protected.clone_from(&other.protected);
        }
        if self.unprivileged.is_none() {
            self.unprivileged.clone_from(&other.unprivileged);
        }
        self.stopped = self.stopped.or(other.stopped);
        self.never_enabled |= other.never_enabled;
        self.left_running = self.left_running.max(other.left_running);
        self.older_children = self.older_children.max(other.older_children);
    }

    pub(crate) fn are_none(&self) -> bool {
        *self == Self::default()
    }
}
