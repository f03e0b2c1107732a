//! What to record.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, SyncSender};
use std::time::Duration;

use prof_events::{CallGraph, EventRequest, GroupRequest, Program, Rate, USUAL_HERTZ};
use prof_model::{Pid, Tid};
use prof_perfdata::WriteError;

use crate::control::Control;

/// What to record, how, and where to.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to sample.
    pub target: Target,
    /// What to sample by. Never empty.
    pub groups: Vec<GroupRequest>,
    /// By what means.
    pub backend: Backend,
    /// Whether stacks are unwound while recording; if not, registers and stack bytes go to the
    /// file.
    pub unwind: bool,
    /// Bytes of each CPU's ring buffer; what suits the event and the machine if `None`.
    pub ring_bytes: Option<u64>,
    /// When to sample, from the start of the target to its end.
    pub schedule: Schedule,
    /// The file to write.
    pub output: PathBuf,
    /// How to write it.
    pub storage: Storage,
    /// What recording may take of the machine; whatever whole stacks need if `None`.
    pub limits: Option<ResourceLimits>,
    /// The command line to store in the recording: the recorder's own, as perf does.
    pub command_line: Vec<OsString>,
}

impl Options {
    /// The usual: CPU time at 999 Hz, stacks unwound, until the target ends.
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

/// Bounds on what recording takes of the machine, for recordings that go on for days. Stacks of
/// processes that end within `poll_interval` may stay incomplete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResourceLimits {
    /// How long records may wait in the rings before they are read: no process or stack has them
    /// read sooner.
    pub poll_interval: Duration,
    /// Bytes of what is kept from sample to sample: three quarters of it for unwind tables, one for
    /// samples that wait; the tables of the module that was read last stay, however large.
    pub memory: usize,
}

/// How the recording is written.
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// Pack records with zstd at this level, 1 to 22.
    pub compression: Option<i32>,
    /// End when there are so many bytes of records.
    pub max_size: Option<u64>,
    /// Go on in another file now and then.
    pub rotation: Option<Rotation>,
    /// Write no file but those that are asked for, and have somebody watch. There is no other
    /// rotation then.
    pub live: Option<Live>,
}

impl Storage {
    /// When another file, or another chunk of what is kept in memory, begins.
    pub(crate) fn when(&self) -> Option<When> {
        match &self.live {
            Some(live) => Some(When::Snapshot {
                time: live.time,
                bytes: live.bytes,
            }),
            None => self.rotation.as_ref().map(|rotation| rotation.when),
        }
    }
}

/// A recording for who watches while it is made.
///
/// What was recorded lately is kept in memory. SIGUSR2 has it written to a file, if
/// [`Signals::block_with_rotation`](crate::Signals::block_with_rotation) was called: the local time
/// is added to the name of the output.
#[derive(Clone, Debug)]
pub struct Live {
    /// Gets the recording in pipe form: first all that comes before the records, then whole
    /// records, at least once a second if there are any. Recording waits while it is full.
    pub stream: SyncSender<Vec<u8>>,
    /// Is told of each file that was written, or why it was not: recording goes on either way.
    pub written: Sender<Result<PathBuf, WriteError>>,
    /// What to keep: at least so much time, if it does not take more than `bytes`.
    pub time: Duration,
    /// The most to keep, in bytes of records.
    pub bytes: u64,
}

/// When to sample, from the start of the target to its end.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    /// When to begin.
    pub delay: Delay,
    /// Stop after this time, which begins with the target.
    pub duration: Option<Duration>,
    /// Who may enable and disable sampling.
    pub control: Option<Control>,
    /// How often to run the command once more when it has ended.
    pub again: u32,
    /// Is told how many records are left to be unwound and written, if that takes more than a
    /// second after the end of sampling.
    pub unfinished: Option<fn(usize)>,
}

/// When sampling begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delay {
    /// With the target.
    #[default]
    None,
    /// So much later.
    After(Duration),
    /// When [`Control`] says so.
    UntilTold,
}

/// By what means to sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backend {
    /// By events, or by stops where no event may be opened at all.
    #[default]
    Automatic,
    /// By events only (perf_event_open).
    Events,
    /// By stopping threads that run, for a moment, to see where they are (ptrace).
    Ptrace,
}

/// What to sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A program to start; it and all its children are sampled.
    Command(Program),
    /// Running processes, with all their threads and later children.
    Processes(Vec<Pid>),
    /// Running threads without the others of their processes, with their later children.
    Threads(Vec<Tid>),
    /// Whatever runs on CPUs.
    Cpus(CpuTarget),
}

/// Whatever runs on CPUs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuTarget {
    /// On which; on all that are online if `None`.
    pub cpus: Option<Vec<u32>>,
    /// Only what belongs to this cgroup: a path, absolute or below where cgroups are mounted.
    pub cgroup: Option<String>,
    /// A program to start; sampling ends with it.
    pub command: Option<Program>,
}

impl Target {
    /// The program that is started, if one is.
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
/// The file that is written has the name of the output; when it is complete, the local time is
/// added to that: `prof.data.2026112111034927`, as perf names them. SIGUSR2 completes it at any
/// time, if [`Signals::block_with_rotation`](crate::Signals::block_with_rotation) was called.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// What else completes a file.
    pub when: When,
    /// How many files to keep, the youngest ones; all if `None`.
    pub most_files: Option<usize>,
    /// Is told of each file that is complete.
    pub completed: Option<fn(&Path)>,
}

/// When to complete a file and go on in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Only when asked to.
    Asked,
    /// When it has so many bytes more than what it began with.
    Size(u64),
    /// After so much time.
    Every(Duration),
    /// When asked to; up to that moment records are kept in memory only, and older ones are
    /// forgotten.
    Snapshot {
        /// What to keep: at least so much time, if it does not take more than `bytes`.
        time: Duration,
        /// The most to keep.
        bytes: u64,
    },
}
