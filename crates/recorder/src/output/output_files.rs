//! The files of a recording: one, or several one after the other.

use std::fs::File;
use std::path::PathBuf;

use prof_model::Quality;
use prof_perfdata::{EventDescription, WriteError, Writer};

use crate::error::Error;
use crate::options::{Options, When};
use crate::output::complete_files::{CompleteFiles, with_time};
use crate::output::file::Output;
use crate::output::file_header::FileHeader;
use crate::output::file_summary::FileSummary;
use crate::output::snapshot_buffer::SnapshotBuffer;
use crate::output::streaming::StreamedOutput;

/// Writes records to a file, or keeps the latest ones in memory for one, and rotates files.
pub(crate) struct OutputFiles {
    path: PathBuf,
    header: FileHeader,
    /// `None` after the last file, or if files are only written on request.
    current: Option<CurrentFile>,
    recent: Option<SnapshotBuffer>,
    streamed: Option<StreamedOutput>,
    complete: CompleteFiles,
}

/// The file that is being written.
struct CurrentFile {
    output: Output,
    writer: Writer<File>,
    /// Bytes of records that it began with.
    began_with: u64,
}

/// The result of writing.
pub(crate) struct Written {
    /// The existing files, the oldest first; none if the output was the standard output.
    pub(crate) files: Vec<PathBuf>,
    /// Bytes of all files.
    pub(crate) bytes: u64,
}

impl OutputFiles {
    /// Creates the first file.
    pub(crate) fn create(
        options: &Options,
        events: Vec<EventDescription>,
        settings: Quality,
    ) -> Result<Self, Error> {
        let path = options.output.clone();
        let storage = &options.storage;
        let mut files = Self {
            header: FileHeader::new(options, events, settings),
            current: None,
            recent: match storage.when() {
                Some(When::Snapshot { time, bytes }) => Some(SnapshotBuffer::new(time, bytes)),
                _ => None,
            },
            streamed: None,
            complete: CompleteFiles::new(storage.rotation.clone()),
            path: path.clone(),
        };
        let cannot_write = |path, source| Error::Write { path, source };
        if let Some(streaming) = &storage.streaming {
            let streamed = files.header.stream(streaming);
            files.streamed = Some(streamed.map_err(|source| cannot_write(path, source))?);
            return Ok(files);
        }
        match Output::create(&path) {
            Ok((output, file)) => files
                .begin_file(output, file)
                .map_err(|source| cannot_write(path, source))?,
            Err(source) => return Err(Error::Output { path, source }),
        }
        Ok(files)
    }

    fn begin_file(&mut self, output: Output, file: File) -> Result<(), WriteError> {
        self.current = Some(CurrentFile {
            output,
            writer: self.header.begin(file, &self.path)?,
            began_with: 0,
        });
        Ok(())
    }

    /// Retains the files, even if later steps fail.
    pub(crate) fn retain(&mut self) {
        if let Some(current) = &mut self.current {
            current.output.retain();
        }
    }

    /// Whether there is only one file, always.
    pub(crate) fn is_one(&self) -> bool {
        !self.complete.rotate() && self.streamed.is_none()
    }

    /// Whether files are only written on request.
    pub(crate) fn is_streamed(&self) -> bool {
        self.streamed.is_some()
    }

    /// Whether records are kept in memory until they are requested.
    pub(crate) fn is_in_memory(&self) -> bool {
        self.recent.is_some()
    }

    /// Adds whole records.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if let Some(streamed) = &mut self.streamed {
            streamed.write(records)?;
        }
        match (&mut self.recent, &mut self.current) {
            (Some(recent), _) => recent.write(records),
            (None, Some(current)) => current.writer.write(records)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Makes the file readable up to here, in case we are killed.
    pub(crate) fn checkpoint(&mut self) -> Result<(), WriteError> {
        if let Some(streamed) = &mut self.streamed {
            streamed.flush()?;
        }
        match &mut self.current {
            Some(current) => current.writer.checkpoint(),
            None => Ok(()),
        }
    }

    /// Bytes of records in the current file.
    pub(crate) fn data_size(&self) -> u64 {
        let current = self.current.as_ref();
        current.map_or(0, |current| current.writer.data_size())
    }

    /// Bytes of records in the current file or chunk, without the state that it began with.
    pub(crate) fn size_since_begin(&self) -> u64 {
        match (&self.recent, &self.current) {
            (Some(recent), _) => recent.chunk_size(),
            (None, Some(current)) => current.size_since_begin(),
            (None, None) => 0,
        }
    }

    /// A file, or a chunk in memory, begins at this time with this state.
    pub(crate) fn begin(&mut self, time: u64, state: Vec<u8>) -> Result<(), WriteError> {
        match &mut self.recent {
            Some(recent) => recent.begin_chunk(time, state),
            None => self.write(&state)?,
        }
        if let Some(current) = &mut self.current {
            current.began_with = current.writer.data_size();
        }
        Ok(())
    }

    /// Ends a chunk in memory.
    pub(crate) fn end_chunk(&mut self, summary: FileSummary) {
        if let Some(recent) = &mut self.recent {
            recent.end_chunk(summary);
        }
    }

    /// Adds records for the reader of the stream, which no file needs.
    pub(crate) fn write_streamed(&mut self, records: &[u8]) -> Result<(), WriteError> {
        match &mut self.streamed {
            Some(streamed) => streamed.write(records),
            None => Ok(()),
        }
    }

    /// Ends a chunk in memory, with this summary, and writes all that is kept to a separate file,
    /// on request.
    pub(crate) fn write_requested(&mut self, last: FileSummary) {
        self.end_chunk(last);
        let written = self.write_kept();
        if let Some(streamed) = &self.streamed {
            streamed.report(written);
        }
    }

    fn write_kept(&mut self) -> Result<PathBuf, WriteError> {
        let Some(recent) = &self.recent else {
            return Ok(self.path.clone());
        };
        let path = with_time(&self.path);
        // Without a call to `retain`, an incomplete file is removed.
        let (mut output, file) = Output::create(&path)?;
        let mut writer = self.header.begin(file, &self.path)?;
        let summary = recent.copy(|records| writer.write(records))?;
        writer.finish(&self.header.features(&summary))?;
        output.retain();
        self.complete.files.push_back(path.clone());
        Ok(path)
    }

    /// Completes the file, with the summary of the part since the last chunk; returns that of the
    /// whole file.
    pub(crate) fn complete(&mut self, last: FileSummary) -> Result<FileSummary, WriteError> {
        let Some(CurrentFile {
            output, mut writer, ..
        }) = self.current.take()
        else {
            return Ok(last);
        };
        let summary = match &mut self.recent {
            Some(recent) => {
                recent.end_chunk(last);
                recent.take(|records| writer.write(records))?
            }
            None => last,
        };
        let records = writer.data_size();
        let file = writer.finish(&self.header.features(&summary))?;
        self.complete.bytes += file.metadata().map_or(0, |found| found.len()).max(records);
        self.complete.add(&output, &self.path)?;
        Ok(summary)
    }

    /// Creates the next file.
    pub(crate) fn next(&mut self) -> Result<(), WriteError> {
        let (mut output, file) = Output::create(&self.path)?;
        output.retain();
        self.begin_file(output, file)
    }

    pub(crate) fn written(self) -> Written {
        Written {
            files: self.complete.files.into(),
            bytes: self.complete.bytes,
        }
    }
}

impl CurrentFile {
    fn size_since_begin(&self) -> u64 {
        self.writer.data_size().saturating_sub(self.began_with)
    }
}
