//! What only the live target shows, read right after a sample: the tail of its stack, and
//! interpreted frames.
//!
//! ```text
//!   sample ── signal ──> watcher of its CPU ── reads ──> LiveReadings      and the target runs on
//!   reader:  drains the ring, seldom <── samples + LiveReadings ──> session
//!   session: finds an interpreter ──> LiveReadings ──> watchers
//! ```

pub(crate) mod interpreted;
pub(crate) mod last_sleep;
mod prefetch;
pub(crate) mod readings;
pub(crate) mod stack_tail;

use std::path::Path;

use prof_perfdata::Record;
use prof_runtimes::Library;

/// Whether a process has mapped a file that may hold an interpreter.
pub(crate) fn maps_interpreter(record: &Record<'_>) -> bool {
    let Record::Mmap(mmap) = record else {
        return false;
    };
    let name = Path::new(mmap.path)
        .file_name()
        .and_then(|name| name.to_str());
    mmap.executable && name.is_some_and(Library::is_named)
}
