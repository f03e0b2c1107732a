//! Frames of Python, read from live targets for their samples.
//!
//! ```text
//!   reader:  drains a mapping of an interpreter ──> starts the threads that read
//!   session: finds an interpreter ──> PythonReadings ──> at each sample: PythonReader, at once
//!                                     PythonReadings <── its frames
//!   reader:  drains the sample <───── PythonReadings
//! ```

pub(crate) mod reader;
pub(crate) mod readings;

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
