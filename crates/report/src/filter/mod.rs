//! The samples and frames of a view.

pub(crate) mod filtered_samples;
pub(crate) mod selection;

use std::time::Duration;

use prof_model::{Pid, Tid};

use crate::pattern::Pattern;
use crate::symbolize::Language;

/// The samples and frames of a view. The default is all of the main event.
///
/// Samples must meet all conditions; a list matches any of its values, and an empty one everything.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// The event, with or without its modifiers; the first one that has samples unless given. Views
    /// never mix events: their weights count different things.
    pub event: Option<String>,
    /// Threads whose name matches.
    pub comm: Option<Pattern>,
    /// Processes.
    pub pids: Vec<Pid>,
    /// Threads.
    pub tids: Vec<Tid>,
    /// CPUs.
    pub cpus: Vec<u32>,
    /// From this time on, counted from the first sample of the recording.
    pub since: Option<Duration>,
    /// Before this time, counted from the first sample of the recording.
    pub until: Option<Duration>,
    /// Stacks with a frame in a module whose name matches.
    pub module: Option<Pattern>,
    /// Stacks with a function whose name matches; together with `module`, in one frame.
    pub function: Option<Pattern>,
    /// Stacks with a function in one of these languages; together with `module` and `function`, in
    /// one frame.
    pub languages: Vec<Language>,
    /// No stacks with a function whose name matches.
    pub ignore: Option<Pattern>,
    /// Frames of functions whose name matches are left out, their weight goes to their callers.
    pub hide: Option<Pattern>,
    /// Kernel frames are left out, as with `hide`.
    pub no_kernel: bool,
    /// Inlined functions are left out: their weight goes to the function they are part of.
    pub no_inline: bool,
    /// Functions that run futures are left out, as with `hide`: those between a task's functions.
    pub fold_async: bool,
    /// In split views, each match in a thread's name becomes `*`, and threads with equal results
    /// are merged. Conditions apply to the original names.
    pub merge_threads: Option<Pattern>,
}
