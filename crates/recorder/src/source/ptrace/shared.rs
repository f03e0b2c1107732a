//! What the tracing thread and the reader share: records on their way, and what ends or disables
//! sampling.

use std::io::{PipeWriter, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use prof_perfdata::record_type;

/// The state that both threads share.
pub(super) struct Shared {
    records: Mutex<Records>,
    /// Holds a byte while the reader should wake.
    arrived: PipeWriter,
    /// Whether it should wake for each record.
    pub(super) signals_each: AtomicBool,
    pub(super) stop: AtomicBool,
    /// Whether sampling is disabled.
    pub(super) off: AtomicBool,
    pub(super) all_ended: AtomicBool,
    pub(super) lost: AtomicU64,
    /// The name of a program that ran without its privileges.
    pub(super) unprivileged: OnceLock<Box<str>>,
}

/// Records that wait for the reader.
#[derive(Default)]
pub(super) struct Records {
    pub(super) bytes: Vec<u8>,
    /// Whether the reader was woken for them.
    pub(super) reported: bool,
}

impl Shared {
    /// With this many bytes of records, the reader should wake in any case.
    const MANY: usize = 2 << 20;
    /// With this many bytes of records that are not read, samples are dropped.
    const FULL: usize = 16 << 20;

    /// `arrived`: what wakes the reader.
    pub(super) fn new(arrived: PipeWriter) -> Self {
        Self {
            records: Mutex::default(),
            arrived,
            signals_each: AtomicBool::new(true),
            stop: AtomicBool::new(false),
            off: AtomicBool::new(false),
            all_ended: AtomicBool::new(false),
            lost: AtomicU64::new(0),
            unprivileged: OnceLock::new(),
        }
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Records> {
        // Appending cannot panic midway.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds records for the reader.
    pub(super) fn append(&self, out: &mut Vec<u8>) {
        if out.is_empty() {
            return;
        }
        let mut records = self.lock();
        match records.bytes.len() > Self::FULL {
            true => self.append_all_but_samples(&mut records.bytes, out),
            false => records.bytes.extend_from_slice(out),
        }
        out.clear();
        let enough = match self.signals_each.load(Ordering::Relaxed) {
            true => !records.bytes.is_empty(),
            false => records.bytes.len() >= Self::MANY,
        };
        if enough && !records.reported {
            // Under the lock: the pipe holds a byte exactly while this is true.
            records.reported = (&self.arrived).write(&[1]).is_ok();
        }
    }

    fn append_all_but_samples(&self, records: &mut Vec<u8>, out: &[u8]) {
        for (kind, record) in prof_perfdata::records(out) {
            match kind {
                record_type::SAMPLE => {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
                _ => records.extend_from_slice(record),
            }
        }
    }
}
