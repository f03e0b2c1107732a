//! What is the same in all files of a recording, besides records.

use std::ffi::OsString;
use std::fs::File;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use prof_events::system;
use prof_model::Quality;
use prof_perfdata::{ClockData, CpuCounts, EventDescription, Features, WriteError, Writer};

use crate::options::{Options, Streaming};
use crate::output::file::is_stdout;
use crate::output::file_summary::FileSummary;
use crate::output::streaming::StreamedOutput;

/// Events, settings, and how files are written.
pub(super) struct FileHeader {
    compression: Option<i32>,
    command_line: Vec<OsString>,
    events: Vec<EventDescription>,
    settings: Quality,
}

impl FileHeader {
    pub(super) fn new(options: &Options, events: Vec<EventDescription>, settings: Quality) -> Self {
        Self {
            compression: options.storage.compression,
            command_line: options.command_line.clone(),
            events,
            settings,
        }
    }

    /// Begins a file that was created at this path.
    pub(super) fn begin(&self, file: File, path: &Path) -> Result<Writer<File>, WriteError> {
        let writer = match is_stdout(path) {
            true => Writer::create_pipe(file, &self.events, &about(&self.command_line))?,
            false => Writer::create(file, &self.events)?,
        };
        match self.compression {
            Some(level) => writer.compressed(level),
            None => Ok(writer),
        }
    }

    /// Begins a stream.
    pub(super) fn stream(&self, streaming: &Streaming) -> Result<StreamedOutput, WriteError> {
        StreamedOutput::begin(streaming, &self.events, &about(&self.command_line))
    }

    /// The features of a file with this summary.
    pub(super) fn features(&self, summary: &FileSummary) -> Features {
        let mut quality = summary.quality.clone();
        quality.set_settings(&self.settings);
        Features {
            build_ids: summary.build_ids.clone(),
            sample_time: summary.sample_time,
            quality: Some(quality),
            ..about(&self.command_line)
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
