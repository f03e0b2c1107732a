//! Queries of a data set: sums of samples by stack, as a profile for views.
//!
//! ```text
//! samples ──prune by folder, by row group──> sums by stack ──stacks──> Profile ─> views
//! ```

mod profile;
mod scan;
mod selection;

pub(crate) use profile::{Frames, of_sums as profile_of, without_frames};
pub(crate) use scan::{EventName, Found, scan};
pub(crate) use selection::Selection;
