//! Threads that read what only the live target shows, one on each CPU.
//!
//! A thread that wakes on another CPU comes 25 µs after the sample: by then, the sampled thread has
//! called and returned. A thread that wakes on the sample's own CPU runs in the place of the
//! sampled thread, which cannot go on meanwhile.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead, Priority};
use prof_events::{AllowedCpus, CpuRing, RingWatch};
use prof_model::Tid;
use prof_perfdata::{Record, RecordFormat, Sample};

use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::last_sleep::LastSleep;
use crate::live::maps_interpreter;
use crate::live::readings::{LiveReading, LiveReadings};
use crate::live::stack_tail::TailReader;
use crate::queue::message::{SampledThread, StackCopy, StackTail};
use crate::source::Source;

/// The threads; dropping it ends them.
#[derive(Debug)]
pub(crate) struct Watchers {
    shared: Arc<Shared>,
    threads: Vec<(Tid, JoinHandle<()>)>,
    forwarded: PipeReader,
}

/// What the threads need to know.
#[derive(Clone, Debug)]
pub(crate) struct WatcherSettings {
    /// The format of the records in the rings.
    pub(crate) format: RecordFormat,
    /// The most bytes of a stack's tail that are read.
    pub(crate) tail_limit: u64,
    /// The least time between two looks at a ring.
    pub(crate) shortest: Duration,
}

/// What the threads do with a sample besides reading interpreted frames.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WatcherDuty {
    /// Read the tails of stacks.
    pub(crate) read_tails: bool,
    /// Wake the reader of the rings: otherwise only if a ring fills, or something is urgent.
    pub(crate) forward: bool,
}

#[derive(Debug)]
struct Shared {
    settings: WatcherSettings,
    readings: Arc<LiveReadings>,
    /// The [`WatcherDuty`].
    reads_tails: AtomicBool,
    forwards: AtomicBool,
    /// Whether the reader of the rings was woken: whether there is a byte in the pipe.
    has_forwarded: AtomicBool,
    forward: PipeWriter,
    /// Whether the threads are to end.
    ends: AtomicBool,
}

impl Watchers {
    /// Starts a thread for each CPU that is sampled, of those at `home`. From now on they get the
    /// signals of samples.
    ///
    /// # Errors
    ///
    /// When the process has no more descriptors or threads.
    pub(crate) fn start(
        source: &mut Source,
        settings: WatcherSettings,
        readings: &Arc<LiveReadings>,
        home: Option<AllowedCpus>,
    ) -> io::Result<Self> {
        let (forwarded, forward) = io::pipe()?;
        source.watch(forwarded.as_fd())?;
        let mut threads = Self {
            shared: Arc::new(Shared {
                settings,
                readings: Arc::clone(readings),
                reads_tails: AtomicBool::new(false),
                forwards: AtomicBool::new(true),
                has_forwarded: AtomicBool::new(false),
                forward,
                ends: AtomicBool::new(false),
            }),
            threads: Vec::new(),
            forwarded,
        };
        let mut watches = Vec::new();
        for ring in source.cpu_rings() {
            let cpu = ring.cpu();
            let there = home.and_then(|home| home.only(cpu));
            watches.push((cpu, threads.add(ring, there)?));
        }
        source.signal_watches(&watches)?;
        Ok(threads)
    }

    fn add(&mut self, ring: CpuRing, there: Option<AllowedCpus>) -> io::Result<Tid> {
        let shared = Arc::clone(&self.shared);
        let (ready, is_ready) = mpsc::channel();
        let run = move || {
            let priority = system::raise_thread_priority(Ahead::OfThese);
            there.map(|there| there.run_there());
            let watch = ring.watch();
            let _ = ready.send(RingWatch::this_thread());
            shared.run(watch, priority);
        };
        let thread = thread::Builder::new().name("watcher".into()).spawn(run)?;
        let tid = is_ready.recv();
        let tid = tid.map_err(|_| io::Error::other("a thread ended before it began"))?;
        self.threads.push((tid, thread));
        Ok(tid)
    }

    pub(crate) fn set_duty(&self, duty: WatcherDuty) {
        let WatcherDuty {
            read_tails,
            forward,
        } = duty;
        self.shared.reads_tails.store(read_tails, Ordering::Relaxed);
        self.shared.forwards.store(forward, Ordering::Relaxed);
    }

    /// The reader of the rings has come.
    pub(crate) fn clear(&self) {
        if self.shared.has_forwarded.swap(false, Ordering::AcqRel) {
            let _ = (&self.forwarded).read(&mut [0]);
        }
    }
}

impl Shared {
    fn run(&self, mut watch: RingWatch, priority: Priority) {
        let mut readers = Readers {
            sleep: LastSleep::of_this_thread(priority),
            interpreters: InterpreterReader::new(Arc::clone(&self.readings)),
            tails: TailReader::new(self.settings.tail_limit),
        };
        let mut looked: Option<Instant> = None;
        loop {
            readers.sleep.begin();
            watch.wait();
            let since = looked.map_or(Duration::MAX, |looked| looked.elapsed());
            let early = self.settings.shortest.saturating_sub(since);
            if !early.is_zero() {
                thread::sleep(early);
                readers.sleep.begin();
            }
            readers.sleep.end();
            looked = Some(Instant::now());
            // Where context switches are sampled, this thread has just caused such a sample by
            // taking the CPU: it must not wake for that again and again.
            watch.clear();
            if self.ends.load(Ordering::Acquire) {
                return;
            }
            let read_tails = self.reads_tails.load(Ordering::Relaxed);
            let mut is_urgent = false;
            let is_filling = watch.look(|bytes| match self.settings.format.parse(bytes) {
                Ok(Record::Sample(sample)) => {
                    let reading = readers.read(&sample, read_tails);
                    if let (Some(reading), Some(time)) = (reading, sample.time) {
                        is_urgent |= self.readings.leave((sample.tid, time), reading);
                    }
                }
                // Its process is not known to run an interpreter before this is drained.
                Ok(record) => is_urgent |= maps_interpreter(&record),
                Err(_) => {}
            });
            if (is_urgent || is_filling || self.forwards.load(Ordering::Relaxed))
                && !self.has_forwarded.swap(true, Ordering::AcqRel)
            {
                let _ = (&self.forward).write(&[0]);
            }
        }
    }
}

/// What a thread reads with.
struct Readers {
    /// Of this thread.
    sleep: LastSleep,
    interpreters: InterpreterReader,
    tails: TailReader,
}

impl Readers {
    /// Reads what belongs to a sample.
    fn read(&mut self, sample: &Sample<'_>, read_tails: bool) -> Option<LiveReading> {
        let is_prompt = self.sleep.ended_by(sample);
        let thread = SampledThread::of(sample)?;
        let since_sample = match is_prompt {
            true => SinceSample::Preempted(&self.sleep),
            false => SinceSample::MayHaveRun,
        };
        let interpreted = self.interpreters.read(&thread, since_sample);
        let copy = StackCopy::full(sample).filter(|_| read_tails);
        let tail = copy.and_then(|copy| {
            let mut bytes = self.interpreters.readings().buffer();
            let tail = self.tails.read(&copy, &mut bytes)?;
            let is_prompt = is_prompt && self.sleep.still_preempts(copy.pid, copy.tid);
            Some((StackTail { is_prompt, ..tail }, bytes))
        });
        (interpreted.is_some() || tail.is_some()).then_some(LiveReading { interpreted, tail })
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        for (tid, thread) in self.threads.drain(..) {
            RingWatch::wake(tid);
            // A panic there has been printed to the standard error output.
            let _ = thread.join();
        }
    }
}
