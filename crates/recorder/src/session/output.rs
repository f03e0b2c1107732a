//! What a session writes: one file or several, in rounds that readers can sort, within limits.

use std::time::{Duration, Instant};

use prof_events::system;
use prof_perfdata::{WriteError, encode};

use crate::checkpoints::Checkpoints;
use crate::options::Storage;
use crate::output::file_summary::FileSummary;
use crate::output::output_files::OutputFiles;
use crate::output::rotation::{NextOutput, RotationPolicy};

/// The files of a session, and what is in those that are complete.
pub(super) struct SessionOutput {
    pub(super) files: OutputFiles,
    pub(super) rotation: RotationPolicy,
    /// Bytes of records after which the recording ends.
    pub(super) max_size: Option<u64>,
    /// Bytes written since readers were last told that all before is in order.
    since_round: usize,
    checkpoints: Checkpoints,
    /// Of all complete files.
    pub(super) total: FileSummary,
}

impl SessionOutput {
    /// Readers sort records in memory from one end of a round to the next.
    const ROUND: usize = 256 << 10;

    pub(super) fn new(files: OutputFiles) -> Self {
        Self {
            files,
            rotation: RotationPolicy::new(None),
            max_size: None,
            since_round: 0,
            checkpoints: Checkpoints::begin(Instant::now()),
            total: FileSummary::default(),
        }
    }

    /// Keeps to limits on the size of files and to when another one is to be begun.
    pub(super) fn stored(self, storage: &Storage) -> Self {
        Self {
            max_size: storage.max_size,
            rotation: RotationPolicy::new(storage.when()),
            ..self
        }
    }

    /// Whether the recording has ended because it is as large as it may be.
    pub(super) fn is_full(&self) -> bool {
        (self.max_size).is_some_and(|most| self.files.data_size() >= most)
    }

    /// How long to wait for records at most.
    pub(super) fn checkpoint_interval(&self) -> Duration {
        self.checkpoints.interval()
    }

    /// Begins the first file or chunk with these records.
    pub(super) fn begin(&mut self, state: Vec<u8>) -> Result<(), WriteError> {
        let now = system::monotonic_now();
        self.rotation.begin(now);
        self.files.begin(now, state)
    }

    /// Whether something else is due before a record of this time.
    pub(super) fn due(&mut self, time: u64) -> Option<NextOutput> {
        self.rotation.due(time, self.files.size_since_begin())
    }

    /// Goes on in another file. This is what the one at hand holds.
    pub(super) fn next_file(&mut self, contents: FileSummary) -> Result<(), WriteError> {
        self.complete(contents)?;
        self.files.next()?;
        self.since_round = 0;
        Ok(())
    }

    /// Completes the file at hand.
    pub(super) fn complete(&mut self, contents: FileSummary) -> Result<(), WriteError> {
        let contents = self.files.complete(contents)?;
        self.total.add(contents);
        Ok(())
    }

    /// Writes a record.
    pub(super) fn write(&mut self, record: &[u8]) -> Result<(), WriteError> {
        self.since_round += record.len();
        self.files.write(record)
    }

    /// All that was written so far is in order: does what is due then. Returns whether it is time
    /// for a checkpoint.
    pub(super) fn in_order(&mut self) -> Result<bool, WriteError> {
        if self.since_round >= Self::ROUND {
            self.end_round()?;
        }
        Ok(self.checkpoints.are_due(Instant::now()))
    }

    /// What was written so far can be read if we should be killed.
    pub(super) fn checkpoint(&mut self) -> Result<(), WriteError> {
        if self.since_round > 0 {
            self.end_round()?;
        }
        self.checkpoints.done(Instant::now());
        self.files.checkpoint()
    }

    /// All that comes from here on is younger.
    fn end_round(&mut self) -> Result<(), WriteError> {
        let mut record = Vec::new();
        encode::finished_round(&mut record);
        self.since_round = 0;
        self.files.write(&record)
    }
}
