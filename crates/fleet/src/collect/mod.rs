//! `prof collect`: records without an end, and pushes each minute.
//!
//! ```text
//!   recorder ──each minute──> spool ──> pusher ──> destination
//! ```
//! Recordings that cannot be pushed wait in the spool, and are still there after a restart.

mod affordable_rate;
mod labels;
mod pusher;

use std::env;
use std::io;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use prof_events::wait_readable;
use prof_model::counted;
use prof_recorder::{
    CallGraph, EventRequest, GroupRequest, Options, Rate, ResourceLimits, Rotation, Signals,
    Storage, Target, When,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::error::Error;
use crate::run::{Labels, Origin};
use crate::spool::Spool;
use affordable_rate::{AffordableRate, CpuUse};
use pusher::Pusher;

/// What to collect, and the destination.
pub(crate) struct Collection {
    /// The target.
    pub(crate) target: Target,
    /// Samples a second of each CPU; `None`: 19, or as many as the bound on CPU time allows.
    pub(crate) hertz: Option<u64>,
    /// How long each recording is.
    pub(crate) rotation: Duration,
    /// When to end; never if `None`.
    pub(crate) duration: Option<Duration>,
    /// Whose recordings they are.
    pub(crate) origin: Origin,
    /// The destination of recordings; `None`: they stay in the spool.
    pub(crate) url: Option<String>,
    /// The folder in which they wait.
    pub(crate) spool: PathBuf,
    /// The most bytes of recordings there.
    pub(crate) spool_bytes: u64,
    /// Receives messages for people.
    pub(crate) report: fn(&str),
}

/// Why the recording has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ended {
    /// Somebody waits for this process to end.
    BySignal,
    /// The time is over, or all targets have ended.
    ByItself,
}

impl Collection {
    /// So many recordings, an hour's, come from one sampling. Then it starts anew, with the CPUs
    /// that are online then, the mappings of processes whose records were missed, and the rate that
    /// its cost allows.
    const AT_ONCE: u32 = 60;
    /// And from the first at a new rate: they show its cost.
    const AT_FIRST: u32 = 5;
    /// After a recording that could not be written: until the next try.
    const PAUSE: Duration = Duration::from_secs(10);
    /// After a signal, so long may the last push take: service managers and users wait.
    const LAST_PUSH: Duration = Duration::from_secs(10);
    /// The recorder's limit on memory that it keeps from sample to sample.
    const MEMORY: usize = 24 << 20;
    /// And its memory for names: half of it suffices for 30,000 functions of a process.
    const NAMES: usize = 12 << 20;
    /// The size of all rings together, unless each would be smaller than its smallest size.
    const ALL_RINGS: u64 = 16 << 20;
    /// A second's dumps of one CPU fit into the largest.
    const RING: (u64, u64) = (256 << 10, 1 << 20);
    /// How long samples wait in the rings.
    const POLL_INTERVAL: Duration = Duration::from_millis(200);

    /// Collects until a signal comes, the time is over, or all targets have ended.
    ///
    /// # Errors
    /// The spool cannot be used, the destination is none, or nothing can be recorded.
    pub(crate) fn run(self, signals: &Signals) -> Result<(), Error> {
        let spool = Arc::new(Spool::open(&self.spool, self.spool_bytes, self.report)?);
        spool.begin(&self.origin)?;
        let pusher = Pusher::new(&self, Arc::clone(&spool))?;
        let (going, ended) = mpsc::channel::<()>();
        let (pushing, pushed) = mpsc::channel::<()>();
        let thread = thread::Builder::new().name("pusher".into());
        let thread = thread.spawn(move || {
            let _stop = StopIfPanicking;
            let _pushing = pushing;
            pusher.run(&ended);
        });
        let thread = thread.map_err(|source| spool.unusable(source))?;
        let recorded = self.record(&spool, signals);
        drop(going);
        if let Ok(Ended::BySignal) = recorded
            && pushed.recv_timeout(Self::LAST_PUSH) == Err(RecvTimeoutError::Timeout)
        {
            // The thread ends with the process.
            let left = spool.count().map_err(|source| spool.unusable(source))?;
            (self.report)(&format!(
                "left {} in the spool: pushing takes more than {} s",
                counted(left, "recording"),
                Self::LAST_PUSH.as_secs()
            ));
            return Ok(());
        }
        // It has reported its errors, other than a panic.
        let pushed = thread.join().map_err(|_| Error::Pusher);
        // One that was left would end this process before it can say why.
        while signals.next().is_some() {}
        recorded.and(pushed)
    }

    /// Records, again and again: each hour, and if writing fails.
    fn record(&self, spool: &Spool, signals: &Signals) -> Result<Ended, Error> {
        let end = self
            .duration
            .and_then(|time| Instant::now().checked_add(time));
        let unusable = |source| spool.unusable(source);
        let mut reported = false;
        let mut rate = AffordableRate::of_this_machine();
        let mut recordings = match self.hertz {
            Some(_) => Self::AT_ONCE,
            None => Self::AT_FIRST,
        };
        loop {
            spool.adopt_unfinished().map_err(unusable)?;
            let begin = Instant::now();
            let left = end.map(|end| end.saturating_duration_since(begin));
            if left.is_some_and(|left| left.is_zero()) {
                return Ok(Ended::ByItself);
            }
            let length = self.rotation.saturating_mul(recordings);
            let length = left.map_or(length, |left| left.min(length));
            let hertz = self.hertz.unwrap_or(rate.hertz());
            let options = self.options(&spool.recording(), hertz, length);
            let cpu = CpuUse::begin();
            let error = match prof_recorder::record(&options, signals) {
                Ok(ended) if ended.stopped_by.is_none() && begin.elapsed() >= length => {
                    recordings = Self::AT_ONCE;
                    let goes_on = end.is_none_or(|end| Instant::now() < end);
                    if goes_on
                        && self.hertz.is_none()
                        && let Some(change) = rate.adapt(cpu.so_far())
                    {
                        (self.report)(&change);
                        recordings = Self::AT_FIRST;
                    }
                    continue;
                }
                Ok(ended) if ended.stopped_by.is_some() => return Ok(Ended::BySignal),
                Ok(_) => return Ok(Ended::ByItself),
                Err(error) => error,
            };
            if !passes(&error) {
                return Err(error.into());
            }
            // Of repeated failures at the start, only the first is reported.
            reported &= begin.elapsed() < Self::PAUSE;
            if !std::mem::replace(&mut reported, true) {
                (self.report)(&format!("{error}; prof tries again every 10 s"));
            }
            let waits = wait_readable(&[signals.as_fd()], Some(Self::PAUSE)).map_err(unusable)?;
            if waits && signals.next().is_some() {
                return Ok(Ended::BySignal);
            }
        }
    }

    fn options(&self, output: &Path, hertz: u64, duration: Duration) -> Options {
        let dump = CallGraph::Dwarf {
            dump: Some(prof_recorder::MAX_STACK_DUMP),
        };
        let event = EventRequest::usual(Rate::Hertz(hertz), dump);
        let cpus = thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64);
        let (smallest, largest) = Self::RING;
        let mut options = Options::new(self.target.clone(), output);
        options.groups = vec![GroupRequest::alone(event)];
        options.ring_bytes = Some((Self::ALL_RINGS / cpus).clamp(smallest, largest));
        options.schedule.duration = Some(duration);
        options.storage = Storage {
            compression: Some(1),
            rotation: Some(Rotation {
                when: When::Every(self.rotation),
                most_files: None,
                completed: None,
            }),
            ..Storage::default()
        };
        options.limits = Some(ResourceLimits {
            poll_interval: Self::POLL_INTERVAL,
            memory: Self::MEMORY,
            names: Self::NAMES,
        });
        options
    }
}

/// Ends the recording, as a signal from outside would, when its thread panics: nobody would push or
/// bound the spool any longer.
struct StopIfPanicking;

impl Drop for StopIfPanicking {
    fn drop(&mut self) {
        if thread::panicking() {
            let _ = kill_process(getpid(), Signal::TERM);
        }
    }
}

/// Labels of the target that need not be given; those in `stated` replace them. Of all that runs on
/// the CPUs, prof's own pod tells the node only.
pub(crate) fn labels(target: &Target, pod: &Path, stated: Labels) -> Labels {
    let cgroup = match target {
        Target::Cpus(cpus) => cpus.cgroup.as_deref().map(labels::of_cgroup),
        Target::Processes(pids) => Some(labels::of_processes(pids)),
        Target::Command(_) | Target::Threads(_) => None,
    };
    let mut labels = labels::of_environment(|name| env::var(name).ok());
    match cgroup {
        Some(cgroup) => {
            labels.extend(labels::of_pod(pod));
            labels.extend(cgroup);
        }
        None => labels.retain(|name, _| name == labels::NODE),
    }
    labels.extend(stated);
    labels
}

/// Whether the error may pass, as when there is disk space again.
fn passes(error: &prof_recorder::Error) -> bool {
    match error {
        prof_recorder::Error::Write { .. } => true,
        prof_recorder::Error::Output { source, .. } => matches!(
            source.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
        ),
        _ => false,
    }
}
