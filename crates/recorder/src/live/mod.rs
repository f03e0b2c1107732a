//! What only the live target shows, read right after a sample: the tail of its stack, and frames of
//! Python.
//!
//! ```text
//!   sample ── signal ──> watcher of its CPU ── reads ──> LiveReadings      and the target runs on
//!   reader:  drains the ring, seldom <── samples + LiveReadings ──> session
//!   session: finds an interpreter ──> LiveReadings ──> watchers
//! ```

pub(crate) mod last_sleep;
pub(crate) mod python;
pub(crate) mod readings;
pub(crate) mod stack_tail;

use std::path::Path;

use prof_perfdata::Record;
use prof_runtimes::python::Library;

/// Whether a process has mapped a file that may hold an interpreter.
pub(crate) fn maps_interpreter(record: &Record<'_>) -> bool {
    matches!(record, Record::Mmap(mmap) if mmap.executable && may_interpret(mmap.path.as_ref()))
}

/// Whether a file may hold an interpreter.
pub(crate) fn may_interpret(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(Library::is_named)
}
