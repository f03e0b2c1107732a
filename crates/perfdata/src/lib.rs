//! perf.data: records to and from bytes, and the file around them.
#![forbid(unsafe_code)]
