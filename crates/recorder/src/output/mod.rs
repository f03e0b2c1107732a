//! The output: files, their rotation, and the state at the beginning of each.

pub(crate) mod checkpoints;
mod complete_files;
pub(crate) mod file;
mod file_header;
pub(crate) mod file_summary;
pub(crate) mod mapped_file;
pub(crate) mod output_files;
pub(crate) mod pinned_files;
pub(crate) mod rotation;
pub(crate) mod snapshot_buffer;
pub(crate) mod streaming;
pub(crate) mod synthesize;
pub(crate) mod synthesize_state;
