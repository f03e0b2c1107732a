//! The files of a recording: one, or several one after the other.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prof_events::system;
use prof_filemap::output::with_suffix;
use prof_model::Quality;
use prof_perfdata::{ClockData, CpuCounts, EventDescription, Features, WriteError, Writer};

use crate::error::Error;
use crate::options::{Options, Streaming};
use crate::options::{Rotation, When};
use crate::output::file::{Output, is_stdout};
use crate::output::file_summary::FileSummary;
use crate::output::snapshot_buffer::SnapshotBuffer;
use crate::output::streaming::StreamedOutput;

/// Writes records to a file, or keeps the latest ones in memory for one, and rotates files.
pub(crate) struct OutputFiles {
    path: PathBuf,
    compression: Option<i32>,
    command_line: Vec<OsString>,
    rotation: Option<Rotation>,
    events: Vec<EventDescription>,
    settings: Quality,
    /// The current file; `None` if files are only written on request.
    output: Option<Output>,
    /// `None` after the last file, or without a current one.
    writer: Option<Writer<File>>,
    recent: Option<SnapshotBuffer>,
    streamed: Option<StreamedOutput>,
    /// Bytes of records that the file began with.
    began_with: u64,
    /// Complete files, the oldest first.
    complete: VecDeque<PathBuf>,
    bytes: u64,
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
        let (path, command_line) = (options.output.clone(), options.command_line.clone());
        let storage = &options.storage;
        let mut output = Self {
            compression: storage.compression,
            recent: match storage.when() {
                Some(When::Snapshot { time, bytes }) => Some(SnapshotBuffer::new(time, bytes)),
                _ => None,
            },
            path,
            command_line,
            rotation: storage.rotation.clone(),
            events,
            settings,
            output: None,
            writer: None,
            streamed: None,
            began_with: 0,
            complete: VecDeque::new(),
            bytes: 0,
        };
        output.begin_first(storage.streaming.as_ref())?;
        Ok(output)
    }

    fn begin_first(&mut self, streaming: Option<&Streaming>) -> Result<(), Error> {
        let path = self.path.clone();
        let cannot_write = |source| Error::Write { path, source };
        if let Some(streaming) = streaming {
            let streamed =
                StreamedOutput::begin(streaming, &self.events, &about(&self.command_line));
            self.streamed = Some(streamed.map_err(cannot_write)?);
            return Ok(());
        }
        let (output, file) = Output::create(&self.path).map_err(|source| Error::Output {
            path: self.path.clone(),
            source,
        })?;
        self.output = Some(output);
        self.writer = Some(self.writer(file).map_err(cannot_write)?);
        Ok(())
    }

    fn writer(&self, file: File) -> Result<Writer<File>, WriteError> {
        let writer = match is_stdout(&self.path) {
            true => Writer::create_pipe(file, &self.events, &about(&self.command_line))?,
            false => Writer::create(file, &self.events)?,
        };
        match self.compression {
            Some(level) => writer.compressed(level),
            None => Ok(writer),
        }
    }

    /// Keeps the files, even if later steps fail.
    pub(crate) fn keep(&mut self) {
        if let Some(output) = &mut self.output {
            output.keep();
        }
    }

    /// Whether there is only one file, always.
    pub(crate) fn is_one(&self) -> bool {
        self.rotation.is_none() && self.streamed.is_none()
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
        match (&mut self.recent, &mut self.writer) {
            (Some(recent), _) => recent.write(records),
            (None, Some(writer)) => writer.write(records)?,
            (None, None) => {}
        }
        Ok(())
    }

    /// Makes the file readable up to here, in case we are killed.
    pub(crate) fn checkpoint(&mut self) -> Result<(), WriteError> {
        if let Some(streamed) = &mut self.streamed {
            streamed.flush()?;
        }
        match &mut self.writer {
            Some(writer) => writer.checkpoint(),
            None => Ok(()),
        }
    }

    /// Bytes of records in the current file.
    pub(crate) fn data_size(&self) -> u64 {
        self.writer.as_ref().map_or(0, Writer::data_size)
    }

    /// Bytes of records in the current file or chunk, without the state that it began with.
    pub(crate) fn size_since_begin(&self) -> u64 {
        match &self.recent {
            Some(recent) => recent.chunk_size(),
            None => self.data_size().saturating_sub(self.began_with),
        }
    }

    /// A file, or a chunk in memory, begins at this time with this state.
    pub(crate) fn begin(&mut self, time: u64, state: Vec<u8>) -> Result<(), WriteError> {
        match &mut self.recent {
            Some(recent) => recent.begin_chunk(time, state),
            None => self.write(&state)?,
        }
        self.began_with = self.data_size();
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
        let path = with_suffix(&self.path, format!(".{}", system::local_time_digits()));
        // Without a call to `keep`, an incomplete file is removed.
        let (mut output, file) = Output::create(&path)?;
        let mut writer = self.writer(file)?;
        let summary = recent.copy(|records| writer.write(records))?;
        writer.finish(&self.features(&summary))?;
        output.keep();
        self.complete.push_back(path.clone());
        Ok(path)
    }

    /// The features of a file with this summary.
    fn features(&self, summary: &FileSummary) -> Features {
        let mut quality = summary.quality.clone();
        quality.set_settings(&self.settings);
        Features {
            build_ids: summary.build_ids.clone(),
            sample_time: summary.sample_time,
            quality: Some(quality),
            ..about(&self.command_line)
        }
    }

    /// Completes the file, with the summary of the part since the last chunk; returns that of the
    /// whole file.
    pub(crate) fn complete(&mut self, last: FileSummary) -> Result<FileSummary, WriteError> {
        let Some(mut writer) = self.writer.take() else {
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
        let file = writer.finish(&self.features(&summary))?;
        self.bytes += file.metadata().map_or(0, |found| found.len()).max(records);
        self.name_complete()?;
        Ok(summary)
    }

    /// Creates the next file.
    pub(crate) fn next(&mut self) -> Result<(), WriteError> {
        let (mut output, file) = Output::create(&self.path)?;
        output.keep();
        self.output = Some(output);
        self.writer = Some(self.writer(file)?);
        Ok(())
    }

    /// Gives the complete file its name, and removes the oldest one if there are too many.
    fn name_complete(&mut self) -> io::Result<()> {
        let output = self.output.as_ref().filter(|output| output.is_kept());
        let (Some(rotation), Some(output)) = (&self.rotation, output) else {
            if !is_stdout(&self.path) {
                self.complete.push_back(self.path.clone());
            }
            return Ok(());
        };
        let name = self.rename_to_free(output)?;
        if let Some(completed) = rotation.completed {
            completed(&name);
        }
        self.complete.push_back(name);
        while rotation
            .most_files
            .is_some_and(|most| self.complete.len() > most)
            && let Some(oldest) = self.complete.pop_front()
        {
            // The user may have removed it.
            let _ = oldest.file_name().map(|name| output.remove(name));
        }
        Ok(())
    }

    /// Adds the time to the file's name; returns its new path.
    fn rename_to_free(&self, output: &Output) -> io::Result<PathBuf> {
        const STEP: Duration = Duration::from_millis(10);
        loop {
            let path = with_suffix(&self.path, format!(".{}", system::local_time_digits()));
            match output.rename_to_free(path.file_name().unwrap_or_default()) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => thread::sleep(STEP),
                renamed => return renamed.map(|()| path),
            }
        }
    }

    pub(crate) fn written(self) -> Written {
        Written {
            files: self.complete.into(),
            bytes: self.bytes,
        }
    }
}

/// The features that describe the machine and this run.
fn about(command_line: &[OsString]) -> Features {
    let cpus = system::System::read().ok().map(|system| CpuCounts {
        online: system.cpus.len() as u32,
        available: system.cpus.len() as u32,
    });
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    Features {
        hostname: Some(system::host_name()),
        os_release: Some(system::kernel_release()),
        version: Some(format!("prof {}", env!("CARGO_PKG_VERSION"))),
        arch: Some(std::env::consts::ARCH.into()),
        nr_cpus: cpus,
        cpu_desc: system::cpu_description(),
        command_line: command_line.to_vec(),
        clock_resolution: Some(1),
        clock: since_1970.ok().map(|wall_clock| ClockData {
            clockid: CLOCK_MONOTONIC,
            wall_clock: wall_clock.as_nanos() as u64,
            clock: system::monotonic_now(),
        }),
        ..Features::default()
    }
}

const CLOCK_MONOTONIC: u32 = 1;
