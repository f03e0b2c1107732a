//! What threads are called.

use std::sync::Arc;

use prof_model::{Coverage, Pid, Processes, Tid};

/// The names of a thread and its process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ThreadName {
    process: Arc<str>,
    thread: Arc<str>,
}

impl ThreadName {
    /// The name of a thread; as in reports, ids if names are unknown.
    pub(super) fn of(pid: Pid, tid: Tid, processes: &Processes) -> Self {
        let name = |tid| processes.get(pid)?.name(pid, tid).cloned();
        let thread = name(tid).unwrap_or_else(|| format!(":{tid}").into());
        Self {
            process: name(pid).unwrap_or_else(|| Arc::clone(&thread)),
            thread,
        }
    }

    /// The name of a thread whose main thread, which has ended, had this one.
    pub(super) fn in_process_of(self, main: &Self) -> Self {
        Self {
            process: Arc::clone(&main.process),
            ..self
        }
    }

    /// That of all threads without a better one.
    pub(super) fn others() -> Self {
        Self {
            process: "others".into(),
            thread: "others".into(),
        }
    }

    /// The coverage of threads of this name.
    pub(super) fn with(self, coverage: Coverage) -> Coverage {
        Coverage {
            process: self.process.to_string(),
            thread: self.thread.to_string(),
            ..coverage
        }
    }
}
