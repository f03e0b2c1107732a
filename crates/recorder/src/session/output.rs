//! The output of a session: one file or several, in rounds that readers can sort, within limits.

use std::time::{Duration, Instant};

use prof_events::system;
use prof_perfdata::{WriteError, encode};

use crate::options::Storage;
use crate::output::checkpoints::Checkpoints;
use crate::output::file_summary::FileSummary;
use crate::output::output_files::OutputFiles;
use crate::output::rotation::{NextOutput, RotationPolicy};

/// The files of a session, and the summary of those that are complete.
pub(super) struct SessionOutput {
    pub(super) files: OutputFiles,
    pub(super) rotation: RotationPolicy,
    /// Bytes of records after which the recording ends.
    pub(super) max_size: Option<u64>,
    /// Bytes written since the last end of a round.
    since_round: usize,
    checkpoints: Checkpoints,
    /// The summary of all complete files.
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

    /// Applies limits on the size of files, and rotation.
    pub(super) fn stored(self, storage: &Storage) -> Self {
        Self {
            max_size: storage.max_size,
            rotation: RotationPolicy::new(storage.when()),
            ..self
        }
    }

    /// Whether the recording has ended because of its size limit.
    pub(super) fn is_full(&self) -> bool {
        (self.max_size).is_some_and(|most| self.files.data_size() >= most)
    }

    /// The longest wait for records.
    pub(super) fn checkpoint_interval(&self) -> Duration {
        self.checkpoints.interval()
    }

    /// Begins the first file or chunk with these records.
    pub(super) fn begin(&mut self, state: Vec<u8>) -> Result<(), WriteError> {
        let now = system::monotonic_now();
        self.rotation.begin(now);
        self.files.begin(now, state)
    }

    /// Whether a rotation is due before a record of this time.
    pub(super) fn due(&mut self, time: u64) -> Option<NextOutput> {
        self.rotation.due(time, self.files.size_since_begin())
    }

    /// Continues in another file. `summary` is that of the current one.
    pub(super) fn next_file(&mut self, summary: FileSummary) -> Result<(), WriteError> {
        self.complete(summary)?;
        self.files.next()?;
        self.since_round = 0;
        Ok(())
    }

    /// Completes the current file.
    pub(super) fn complete(&mut self, summary: FileSummary) -> Result<(), WriteError> {
        let summary = self.files.complete(summary)?;
        self.total.add(summary);
        Ok(())
    }

    /// Writes a record.
    pub(super) fn write(&mut self, record: &[u8]) -> Result<(), WriteError> {
        self.since_round += record.len();
        self.files.write(record)
    }

    /// All records so far are in order: ends a round if due. Returns whether a checkpoint is due.
    pub(super) fn in_order(&mut self) -> Result<bool, WriteError> {
        if self.since_round >= Self::ROUND {
            self.end_round()?;
        }
        Ok(self.checkpoints.are_due(Instant::now()))
    }

    /// Makes the file readable up to here, in case we are killed.
    pub(super) fn checkpoint(&mut self) -> Result<(), WriteError> {
        if self.since_round > 0 {
            self.end_round()?;
        }
        self.checkpoints.done(Instant::now());
        self.files.checkpoint()
    }

    /// Ends a round: all later records are younger.
    fn end_round(&mut self) -> Result<(), WriteError> {
        let mut record = Vec::new();
        encode::finished_round(&mut record);
        self.since_round = 0;
        self.files.write(&record)
    }
}
