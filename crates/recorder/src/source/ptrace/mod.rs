//! The other source of records, if perf_event_open is refused: a separate thread stops threads
//! briefly to read their stacks, and builds the kernel's records from /proc.
//!
//! ```text
//!   tracing thread                                     reader thread
//!   ─────────────────────────────────────────          ──────────────────────────
//!   at a rate: which threads run? interrupt them       take the records (drain)
//!   SIGCHLD: who has stopped? registers, stack, ──> records under a lock
//!            CPU time; resume; new mappings?
//! ```
//!
//! A sample weighs the CPU time of its thread since its last one, so shares are right at any actual
//! rate.

mod frame_pointers;
mod poll_interval;
mod record_builder;
mod tracees;
mod tracer_cpu;

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead};
use prof_events::tracing::{Errno, Tracer};
use prof_events::{ChildSignals, Drained, Opened, Signals, Stacks, Threads, Wake, wait_readable};
use prof_model::Pid;
use prof_perfdata::{Attr, record_type};
use prof_procfs::settings::setting;
use prof_procfs::{Status, Task};

use crate::error::Error;
use crate::live::interpreted::InterpreterReader;
use crate::live::readings::LiveReadings;
use poll_interval::PollInterval;
use record_builder::RecordBuilder;
use tracees::Tracees;

/// Threads that are stopped at intervals, as a source of records.
pub(crate) struct PtraceSampler {
    opened: Opened,
    hertz: u64,
    threads: Threads,
    attr: Attr,
    children: Option<ChildSignals>,
    shared: Arc<Shared>,
    /// Other descriptors that end a wait.
    watched: Vec<(RawFd, OwnedFd)>,
    arrivals: PipeReader,
    readings: Arc<LiveReadings>,
    tracing: Option<Tracing>,
    drained: Vec<u8>,
}

struct Tracing {
    thread: JoinHandle<()>,
    /// Closing it ends the thread.
    _stop: PipeWriter,
}

/// The state that both threads share.
struct Shared {
    records: Mutex<Records>,
    /// Holds a byte while the reader should wake.
    arrived: PipeWriter,
    /// Whether it should wake for each record.
    signals_each: AtomicBool,
    stop: AtomicBool,
    /// Whether sampling is disabled.
    off: AtomicBool,
    all_ended: AtomicBool,
    lost: AtomicU64,
    /// The name of a program that ran without its privileges.
    unprivileged: OnceLock<Box<str>>,
}

/// Records that wait for the reader.
#[derive(Default)]
struct Records {
    bytes: Vec<u8>,
    /// Whether the reader was woken for them.
    reported: bool,
}

impl Shared {
    /// With this many bytes of records, the reader should wake in any case.
    const MANY: usize = 2 << 20;
    /// With this many bytes of records that are not read, samples are dropped.
    const FULL: usize = 16 << 20;

    fn lock(&self) -> MutexGuard<'_, Records> {
        // Appending cannot panic midway.
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds records for the reader.
    fn append(&self, out: &mut Vec<u8>) {
        if out.is_empty() {
            return;
        }
        let mut records = self.lock();
        match records.bytes.len() > Self::FULL {
            true => self.append_all_but_samples(&mut records.bytes, out),
            false => records.bytes.extend_from_slice(out),
        }
        out.clear();
        let enough = match self.signals_each.load(Ordering::Relaxed) {
            true => !records.bytes.is_empty(),
            false => records.bytes.len() >= Self::MANY,
        };
        if enough && !records.reported {
            // Under the lock: the pipe holds a byte exactly while this is true.
            records.reported = (&self.arrived).write(&[1]).is_ok();
        }
    }

    fn append_all_but_samples(&self, records: &mut Vec<u8>, out: &[u8]) {
        for (kind, record) in prof_perfdata::records(out) {
            match kind {
                record_type::SAMPLE => {
                    self.lost.fetch_add(1, Ordering::Relaxed);
                }
                _ => records.extend_from_slice(record),
            }
        }
    }
}

impl PtraceSampler {
    /// The id of the only event.
    pub(crate) const ID: u64 = 1;

    /// Prepares to trace; [`begin`](Self::begin) starts.
    pub(crate) fn new(
        opened: Opened,
        hertz: u64,
        threads: Threads,
        signals: &Signals,
    ) -> Result<Self, Error> {
        let refused = |source| Error::Sampling { source };
        let (arrivals, arrived) = io::pipe().map_err(refused)?;
        let setup = opened.events.first().map(|event| event.setup.attr_bytes());
        let attr = Attr::parse(&setup.unwrap_or_default())?;
        Ok(Self {
            hertz,
            threads,
            attr,
            opened,
            children: Some(signals.children().map_err(refused)?),
            shared: Arc::new(Shared {
                records: Mutex::default(),
                arrived,
                signals_each: AtomicBool::new(true),
                stop: AtomicBool::new(false),
                off: AtomicBool::new(false),
                all_ended: AtomicBool::new(false),
                lost: AtomicU64::new(0),
                unprivileged: OnceLock::new(),
            }),
            watched: Vec::new(),
            arrivals,
            readings: Arc::default(),
            tracing: None,
            drained: Vec::new(),
        })
    }

    pub(crate) fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Where the tracing thread stores interpreted frames.
    pub(crate) fn live_readings(&self) -> Arc<LiveReadings> {
        Arc::clone(&self.readings)
    }

    /// Starts to trace the targets, or a command that waits to exec.
    pub(crate) fn begin(&mut self, held: Option<Pid>) -> Result<(), Error> {
        if let Some(pid) = held {
            self.threads = Threads::UntilExec(pid);
        }
        let Some(children) = self.children.take() else {
            return Ok(());
        };
        let refused = |source| Error::Sampling { source };
        let (stopped, stop) = io::pipe().map_err(refused)?;
        let setup = self.opened.events.first().map(|event| &event.setup);
        let stacks = match setup.map(|setup| (setup.stacks, setup.has_chain())) {
            Some((Stacks::Dump(bytes), has_chain)) => (bytes as usize, has_chain),
            _ => (0, false),
        };
        let (attr, threads) = (self.attr.clone(), self.threads.clone());
        let shared = Arc::clone(&self.shared);
        let hertz = self.hertz;
        let interpreters = InterpreterReader::new(Arc::clone(&self.readings));
        let (seized, is_seized) = mpsc::channel();
        let thread = std::thread::Builder::new()
            .name("tracer".into())
            .spawn(move || {
                system::raise_thread_priority(Ahead::OfThese);
                let spared = match &threads {
                    Threads::UntilExec(tid) => Some(*tid),
                    _ => None,
                };
                let builder = RecordBuilder::new(attr, interpreters);
                let mut tracees = Tracees::new(Tracer::new(spared), builder, hertz, stacks);
                let result = seize(&mut tracees, &threads);
                let go = result.is_ok();
                let _ = seized.send(result);
                if go {
                    trace(tracees, &children, &stopped, hertz, &shared);
                }
            })
            .map_err(refused)?;
        self.tracing = Some(Tracing {
            thread,
            _stop: stop,
        });
        is_seized.recv().unwrap_or_else(|_| {
            let source = io::Error::other("the tracing thread panicked");
            Err(Error::Sampling { source })
        })
    }

    /// Releases the targets.
    pub(crate) fn end(&mut self) {
        if let Some(Tracing { thread, _stop }) = self.tracing.take() {
            self.shared.stop.store(true, Ordering::Release);
            drop(_stop);
            // A panic there has been printed to the standard error output.
            let _ = thread.join();
        }
    }

    pub(crate) fn drain(&mut self, mut each: impl FnMut(usize, &[u8])) -> Drained {
        self.drained.clear();
        {
            let mut records = self.shared.lock();
            std::mem::swap(&mut self.drained, &mut records.bytes);
            if std::mem::take(&mut records.reported) {
                let _ = self.arrivals.read(&mut [0]);
            }
        }
        for (_, record) in prof_perfdata::records(&self.drained) {
            each(0, record);
        }
        Drained {
            bytes: self.drained.len() as u64,
            corrupt: false,
        }
    }

    /// Like [`prof_events::Sampler::signal_each_overflow`].
    pub(crate) fn signal_each(&self, on: bool) {
        self.shared.signals_each.store(on, Ordering::Relaxed);
    }

    /// Enables or disables sampling.
    pub(crate) fn set_sampling(&mut self, on: bool) {
        self.shared.off.store(!on, Ordering::Release);
    }

    pub(crate) fn watch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.watched
            .push((fd.as_raw_fd(), fd.try_clone_to_owned()?));
        Ok(())
    }

    pub(crate) fn unwatch(&mut self, fd: BorrowedFd<'_>) {
        self.watched.retain(|(number, _)| *number != fd.as_raw_fd());
    }

    /// Like [`prof_events::Sampler::wait`].
    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        let fds: Vec<BorrowedFd<'_>> = (self.watched.iter().map(|(_, fd)| fd.as_fd()))
            .chain([self.arrivals.as_fd()])
            .collect();
        wait_readable(&fds, Some(timeout))?;
        Ok(Wake {
            all_ended: self.shared.all_ended.load(Ordering::Acquire),
        })
    }

    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }

    /// The name of a program that ran without its privileges, if one did.
    pub(crate) fn unprivileged(&self) -> Option<Box<str>> {
        self.shared.unprivileged.get().cloned()
    }
}

fn seize(tracees: &mut Tracees, threads: &Threads) -> Result<(), Error> {
    match threads {
        Threads::UntilExec(tid) => {
            let seized = tracees.seize_held(*tid);
            seized.map_err(|errno| refused(*tid, errno))
        }
        Threads::Of(pids) => pids.iter().try_for_each(|&pid| {
            let seized = tracees.seize_process(pid);
            seized.map_err(|errno| refused(pid, errno))
        }),
        Threads::Only(tids) => tids.iter().try_for_each(|&tid| {
            let seized = tracees.seize_thread(tid);
            seized.map_err(|errno| refused(tid, errno))
        }),
        // Refused before anything started.
        Threads::OnCpus(_) => Err(Error::NotOfCpus),
    }
}

/// The tracing thread's loop.
fn trace(
    mut tracees: Tracees,
    children: &ChildSignals,
    stopped: &PipeReader,
    hertz: u64,
    shared: &Shared,
) {
    let mut poll_interval = PollInterval::new(hertz, Instant::now());
    let mut was_off = false;
    loop {
        let rest = poll_interval.rest(Instant::now());
        if !rest.is_zero()
            && wait_readable(&[children.as_fd(), stopped.as_fd()], Some(rest)).is_err()
        {
            return;
        }
        if shared.stop.load(Ordering::Acquire) {
            tracees.finish();
            shared.append(&mut tracees.builder.out);
            return;
        }
        children.clear();
        tracees.attend();
        let begin = Instant::now();
        if poll_interval.rest(begin).is_zero() {
            let off = shared.off.load(Ordering::Acquire);
            if !off {
                if was_off {
                    tracees.forget_time();
                }
                tracees.poll();
            }
            was_off = off;
            poll_interval.polled(begin, Instant::now());
            tracees.attend();
        }
        let all_ended = tracees.all_ended();
        shared.all_ended.store(all_ended, Ordering::Release);
        if all_ended {
            // Their ends are among the records, and so is the end of the recording.
            shared.signals_each.store(true, Ordering::Relaxed);
        }
        shared.append(&mut tracees.builder.out);
        if let Some(program) = tracees.builder.unprivileged.take() {
            let _ = shared.unprivileged.set(program);
        }
        if all_ended {
            return;
        }
    }
}

/// The error if a process may not be traced.
fn refused(pid: Pid, errno: Errno) -> Error {
    let process = Task::of(pid);
    let has_ended = process.stat().is_ok_and(|stat| stat.state.has_ended());
    let status = process.status().ok().filter(|_| !has_ended);
    let scope = setting("kernel/yama/ptrace_scope").unwrap_or(0);
    let own = prof_events::system::Privileges::read().unwrap_or_default();
    let tracer = status.as_ref().and_then(Status::tracer);
    let user = status.as_ref().and_then(Status::users);
    let advice = match tracer {
        None => "it does not exist, or has ended".into(),
        Some(tracer) if tracer != 0 => {
            format!("process {tracer} traces it already (a debugger?)")
        }
        Some(_) if user.is_some_and(|user| user.real != own.user) => {
            "it belongs to another user: run prof as its user or as root".into()
        }
        Some(_) if scope > 0 => format!(
            "kernel.yama.ptrace_scope is {scope}: start the program with prof, or `sudo sysctl \
             kernel.yama.ptrace_scope=0`"
        ),
        Some(_) => "a sandbox forbids it, too (in Docker and Podman: start the container with \
                    --security-opt seccomp=unconfined, or --cap-add SYS_PTRACE)"
            .into(),
    };
    Error::Tracing {
        pid,
        source: errno.into(),
        advice,
    }
}
