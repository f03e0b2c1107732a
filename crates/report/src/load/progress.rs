//! How far loading has come.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use prof_perfdata::Recording;

/// How far recordings were read that are being loaded: several may be, at once. Who wants to know
/// keeps a handle to what [`LoadOptions::progress`](super::LoadOptions::progress) has.
#[derive(Debug, Default)]
pub struct LoadProgress {
    read: AtomicU64,
    size: AtomicU64,
}

impl LoadProgress {
    /// Bytes of records that were read, and bytes of all records, as far as recordings were
    /// opened.
    pub fn bytes(&self) -> (u64, u64) {
        let read = self.read.load(Ordering::Relaxed);
        (read, self.size.load(Ordering::Relaxed))
    }
}

/// Reports how far one recording was read.
pub(super) struct Meter {
    progress: Option<Arc<LoadProgress>>,
    /// Records until the next report.
    until: u32,
    reported: u64,
}

impl Meter {
    const INTERVAL: u32 = 4096;

    pub(super) fn new(progress: Option<&Arc<LoadProgress>>, recording: &Recording) -> Self {
        if let Some(progress) = progress {
            let left = recording.bytes_left();
            progress.size.fetch_add(left, Ordering::Relaxed);
        }
        Self {
            progress: progress.cloned(),
            until: Self::INTERVAL,
            reported: recording.bytes_left(),
        }
    }

    /// Another record was read.
    pub(super) fn count(&mut self, recording: &Recording) {
        self.until -= 1;
        if self.until == 0 {
            self.until = Self::INTERVAL;
            self.report(recording.bytes_left());
        }
    }

    fn report(&mut self, left: u64) {
        if let Some(progress) = &self.progress {
            let read = self.reported.saturating_sub(left);
            progress.read.fetch_add(read, Ordering::Relaxed);
            self.reported = left;
        }
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.report(0);
    }
}
