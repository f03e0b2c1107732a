//! Frames of Python, read from live targets for their samples.
//!
//! ```text
//!   session: finds an interpreter ──> PythonReadings ──> at each sample: PythonReader, at once
//!                                     PythonReadings <── its frames
//!   reader:  drains the sample <───── PythonReadings
//! ```

pub(crate) mod reader;
pub(crate) mod readings;
