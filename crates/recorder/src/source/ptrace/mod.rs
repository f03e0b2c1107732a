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
mod shared;
mod tracees;
mod tracer_cpu;
mod tracing_thread;

use std::io::{self, PipeReader, PipeWriter, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use prof_events::system::{self, Ahead};
use prof_events::tracing::Tracer;
use prof_events::{ChildSignals, Drained, Opened, Signals, Stacks, Threads, Wake, wait_readable};
use prof_model::Pid;
use prof_perfdata::Attr;

use crate::error::Error;
use crate::live::interpreted::InterpreterReader;
use crate::live::readings::LiveReadings;
use record_builder::RecordBuilder;
use shared::Shared;
use tracees::Tracees;
use tracing_thread::{seize, trace};

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
            shared: Arc::new(Shared::new(arrived)),
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
