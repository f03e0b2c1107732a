//! What to record.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use prof_events::{CallGraph, EventRequest, GroupRequest, Program, Rate, USUAL_HERTZ};
use prof_model::{Pid, Tid};
use prof_perfdata::WriteError;

use crate::control::Control;
use crate::live_names::LiveNames;

/// What to record, how, and the output.
#[derive(Clone, Debug)]
pub struct Options {
    /// The target.
    pub target: Target,
    /// The events to sample. Never empty.
    pub groups: Vec<GroupRequest>,
    /// How to sample.
    pub backend: Backend,
    /// Whether stacks are unwound while recording; if not, registers and stack bytes go to the
    /// file.
    pub unwind: bool,
    /// Bytes of each CPU's ring buffer; `None`: suitable for the event and the machine.
    pub ring_bytes: Option<u64>,
    /// When to sample, from the start of the target to its end.
    pub schedule: Schedule,
    /// The file to write.
    pub output: PathBuf,
    /// How to write it.
    pub storage: Storage,
    /// Limits on resources; `None`: as much as whole stacks need.
    pub limits: Option<ResourceLimits>,
    /// The command line to store in the recording: the recorder's own, as perf does.
    pub command_line: Vec<OsString>,
}

impl Options {
    /// The defaults: CPU time at 999 Hz, stacks unwound, until the target ends.
    pub fn new(target: Target, output: impl Into<PathBuf>) -> Self {
        let usual = EventRequest::usual(Rate::Hertz(USUAL_HERTZ), CallGraph::Dwarf { dump: None });
        Self {
            target,
            groups: vec![GroupRequest::alone(usual)],
            backend: Backend::default(),
            unwind: true,
            ring_bytes: None,
            schedule: Schedule::default(),
            output: output.into(),
            storage: Storage::default(),
            limits: None,
            command_line: std::env::args_os().collect(),
        }
    }
}

/// Limits on the resources of a recording, for recordings that run for days. Stacks of processes
/// that end within `poll_interval` may be partial.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// How long records may wait in the rings: no process and no stack makes the reader wake
    /// sooner.
    pub poll_interval: Duration,
    /// Bytes of memory that is kept from sample to sample: three quarters for unwind tables, one
    /// quarter for samples that wait; the tables of the module that was read last stay, however
    /// large.
    pub memory: usize,
    /// Bytes of memory for the names and tables of interpreters and run-time code.
    pub names: usize,
}

impl ResourceLimits {
    /// The memory for names in recordings without limits: half of it suffices for 500,000 functions
    /// of a process.
    pub const USUAL_NAMES: usize = 256 << 20;
}

/// How the recording is written.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// Compress records with zstd at this level, 1 to 22.
    pub compression: Option<i32>,
    /// End after this many bytes of records.
    pub max_size: Option<u64>,
    /// Continue in another file at times.
    pub rotation: Option<Rotation>,
    /// Write only requested files, and pass the recording on while it is made. There is no other
    /// rotation then.
    pub streaming: Option<Streaming>,
}

impl Storage {
    /// When another file, or another chunk in memory, begins.
    pub(crate) fn when(&self) -> Option<When> {
        match &self.streaming {
            Some(streaming) => Some(When::Snapshot {
                time: streaming.time,
                bytes: streaming.bytes,
            }),
            None => self.rotation.as_ref().map(|rotation| rotation.when),
        }
    }
}

/// A recording that is read while it is made.
///
/// The latest records are kept in memory. SIGUSR2 writes them to a file, if
/// [`Signals::block_with_rotation`](crate::Signals::block_with_rotation) was called: the local time
/// is added to the name of the output.
#[derive(Clone, Debug)]
pub struct Streaming {
    /// Receives the recording in pipe form: first everything before the records, then whole
    /// records, at least once a second if there are any. Recording waits while the channel is full.
    pub stream: SyncSender<Vec<u8>>,
    /// Receives the path of each written file, or the error: recording continues either way.
    pub written: Sender<Result<PathBuf, WriteError>>,
    /// The time to keep, at least, unless that takes more than `bytes`.
    pub time: Duration,
    /// The most to keep, in bytes of records.
    pub bytes: u64,
    /// Receives the names of run-time code that are read from the memory of processes.
    pub names: LiveNames,
}

/// When to sample, from the start of the target to its end.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// When to start.
    pub delay: Delay,
    /// Stop after this time, counted from the start of the target.
    pub duration: Option<Duration>,
    /// The channel that may enable and disable sampling.
    pub control: Option<Control>,
    /// How many more times to run the command when it has ended.
    pub again: u32,
    /// Called with the number of records that still have to be unwound and written, if that takes
    /// more than a second after the end of sampling.
    pub unfinished: Option<fn(usize)>,
}

/// When sampling starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// With the target.
    #[default]
    None,
    /// After this time.
    After(Duration),
    /// When [`Control`] enables it.
    UntilEnabled,
}

/// How to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// By events, or by ptrace if no event may be opened at all.
    #[default]
    Automatic,
    /// By events only (perf_event_open).
    Events,
    /// By stopping running threads for a moment to read their stacks (ptrace).
    Ptrace,
}

/// What to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to start; it and all its children are sampled.
    Command(Program),
    /// Running processes, with all their threads and later children.
    Processes(Vec<Pid>),
    /// Running threads and their later children, without the other threads of their processes.
    Threads(Vec<Tid>),
    /// Everything that runs on CPUs.
    Cpus(CpuTarget),
}

/// Everything that runs on CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTarget {
    /// The CPUs; `None`: all that are online.
    pub cpus: Option<Vec<u32>>,
    /// Only this cgroup: a path, absolute or below the cgroup mount.
    pub cgroup: Option<String>,
    /// A program to start; sampling ends with it.
    pub command: Option<Program>,
}

impl Target {
    /// The program to start, if there is one.
    pub fn command(&self) -> Option<&Program> {
        match self {
            Self::Command(program) => Some(program),
            Self::Cpus(target) => target.command.as_ref(),
            Self::Processes(_) | Self::Threads(_) => None,
        }
    }
}

/// A recording in several files, one after the other, each complete by itself.
///
/// The current file has the name of the output; when it is complete, the local time is added to
/// that: `prof.data.2026112111034927`, as in perf. SIGUSR2 completes it at any time, if
/// [`Signals::block_with_rotation`](crate::Signals::block_with_rotation) was called.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// What else completes a file.
    pub when: When,
    /// How many files to keep, the youngest ones; `None`: all.
    pub most_files: Option<usize>,
    /// Called with the path of each complete file.
    pub completed: Option<fn(&Path)>,
}

/// When to complete a file and continue in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only on request.
    OnRequest,
    /// When it has this many bytes more than it began with.
    Size(u64),
    /// After this time.
    Every(Duration),
    /// On request; until then records are kept in memory only, and older ones are dropped.
    Snapshot {
        /// The time to keep, at least, unless that takes more than `bytes`.
        time: Duration,
        /// The most to keep.
        bytes: u64,
    },
}
