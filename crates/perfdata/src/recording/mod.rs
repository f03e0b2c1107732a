//! Reads a recording.

use std::path::Path;

use prof_filemap::MappedFile;

use crate::attr::EventDescription;
use crate::error::{Error, OpenError};
use crate::features::Features;
use crate::record::Record;

/// A recording that is being read: a perf.data file of prof or of perf, in file or pipe form.
#[derive(Debug)]
pub struct Recording {
    _file: MappedFile,
    events: Vec<EventDescription>,
    features: Features,
}

impl Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let named = |source| OpenError {
            path: path.to_owned(),
            source,
        };
        let file = MappedFile::open(path).map_err(|error| named(error.into()))?;
        Self::from_file(file).map_err(named)
    }

    /// Reads what is mapped, or in memory already.
    ///
    /// # Errors
    /// It is no recording.
    pub fn from_file(file: MappedFile) -> Result<Self, Error> {
        Ok(Self {
            _file: file,
            events: Vec::new(),
            features: Features::default(),
        })
    }

    /// The events. In pipe form more may come while reading on.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// What is known about the machine and the run. In pipe form more may come while reading on.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The next record in time order; `None` at the end. Records without a time come as soon as
    /// they are read, as perf hands them out. Damaged records are counted and left out.
    ///
    /// # Errors
    /// In pipe form: an event's description, or the lack of one, makes reading on impossible.
    #[expect(
        clippy::should_implement_trait,
        reason = "records borrow the recording, which Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Result<Option<Record<'_>>, Error> {
        Ok(None)
    }

    /// Whether the file ends before its end: it was cut off, or recording was. What was there up
    /// to then is handed out. Known for sure once [`next`](Self::next) has returned `None`.
    pub fn truncated(&self) -> bool {
        false
    }

    /// How many records were left out because they were damaged.
    pub fn malformed(&self) -> u64 {
        0
    }
}
