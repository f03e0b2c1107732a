//! How far long work is, and what can be skipped of it.

use std::sync::atomic::AtomicBool;

/// How far [`Symbolizer::resolve_watched`](crate::Symbolizer::resolve_watched) has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// So many of all addresses are done.
    Resolved {
        /// Addresses done.
        done: usize,
        /// Addresses asked for.
        total: usize,
    },
    /// Debug info is being downloaded; reported first before a server is asked.
    Download {
        /// The module's short name.
        module: String,
        /// Bytes so far.
        received: u64,
        /// Bytes in all, if the server says.
        total: Option<u64>,
    },
}

/// Eyes and a hand on a long run.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Called now and then, from any thread.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Set it to skip all downloads from then on; what is on this machine is still used.
    pub skip_downloads: Option<&'a AtomicBool>,
}
