//! Threads that read what only the live target shows, one on each CPU.
//!
//! A thread that wakes on another CPU comes 25 µs after the sample: by then, the sampled thread has
//! called and returned. A thread that wakes on the sample's own CPU runs in the place of the
//! sampled thread, which cannot go on meanwhile.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead, Priority};
use prof_events::{AllowedCpus, CpuRing, RingWatch};
use prof_model::Tid;
use prof_perfdata::{Record, RecordFormat, Sample};

use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::job_thread::waits_for_cpu;
use crate::live::last_sleep::LastSleep;
use crate::live::maps_interpreter;
use crate::live::readings::{LiveReading, LiveReadings};
use crate::live::stack_tail::TailReader;
use crate::live::target_memory::{MEMORY_TIME_OUT, Reads};
use crate::queue::message::{SampledThread, StackCopy, StackTail};
use crate::reader::watched_reading::WatchedReading;
use crate::source::Source;

/// The threads; dropping it ends them, except those that hang.
#[derive(Debug)]
pub(crate) struct Watchers {
    shared: Arc<Shared>,
    threads: Vec<Watcher>,
    forwarded: PipeReader,
    /// Where threads of this process may run.
    home: Option<AllowedCpus>,
    /// How many threads may still be replaced.
    more: u32,
}

/// One of the threads.
#[derive(Debug)]
struct Watcher {
    cpu: u32,
    tid: Tid,
    thread: JoinHandle<()>,
    reading: Arc<WatchedReading>,
    /// Disconnected when it has ended.
    ended: Receiver<()>,
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
    /// How many threads are replaced, because they hang.
    const REPLACED: u32 = 8;

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
            home,
            more: Self::REPLACED,
        };
        threads.add(source, |_| true)?;
        Ok(threads)
    }

    /// Starts a thread for each of these CPUs.
    fn add(&mut self, source: &mut Source, is_needed: impl Fn(u32) -> bool) -> io::Result<()> {
        let mut watches = Vec::new();
        for ring in source.cpu_rings() {
            let cpu = ring.cpu();
            if is_needed(cpu) {
                let there = self.home.and_then(|home| home.only(cpu));
                let watcher = self.shared.start(ring, there)?;
                watches.push((cpu, watcher.tid));
                self.threads.push(watcher);
            }
        }
        source.signal_watches(&watches)
    }

    /// Replaces threads that hang: the processes that they read do not answer.
    pub(crate) fn replace_hanging(&mut self, source: &mut Source) {
        let silent = self.shared.readings.silent();
        let (hang, go_on) = std::mem::take(&mut self.threads)
            .into_iter()
            .partition(|it| {
                let hangs = it.reading.hangs().filter(|_| !waits_for_cpu(it.tid));
                if let Some(pid) = hangs {
                    silent.add(pid);
                    it.reading.leave();
                }
                hangs.is_some()
            });
        self.threads = go_on;
        for Watcher { cpu, .. } in hang {
            if let Some(more) = self.more.checked_sub(1) {
                self.more = more;
                // Without one, the reader reads the tails of that CPU's stacks.
                let _ = self.add(source, |it| it == cpu);
            }
        }
    }

    pub(crate) fn set_duty(&self, duty: WatcherDuty) {
        let WatcherDuty {
            read_tails,
            forward,
        } = duty;
        self.shared.reads_tails.store(read_tails, Ordering::Relaxed);
        self.shared.forwards.store(forward, Ordering::Relaxed);
    }

    /// Whether one of them reads samples just now.
    pub(crate) fn are_looking(&self) -> bool {
        (self.threads.iter()).any(|watcher| watcher.reading.is_about_to_end())
    }

    /// The reader of the rings has come.
    pub(crate) fn clear(&self) {
        if self.shared.has_forwarded.swap(false, Ordering::AcqRel) {
            let _ = (&self.forwarded).read(&mut [0]);
        }
    }
}

impl Shared {
    fn start(self: &Arc<Self>, ring: CpuRing, there: Option<AllowedCpus>) -> io::Result<Watcher> {
        let shared = Arc::clone(self);
        let cpu = ring.cpu();
        let reading = Arc::new(WatchedReading::default());
        let of_thread = Arc::clone(&reading);
        let (ready, is_ready) = mpsc::channel();
        let (ends, ended) = mpsc::channel();
        let run = move || {
            let priority = system::raise_thread_priority(Ahead::OfThese);
            there.map(|there| there.run_there());
            let watch = ring.watch();
            let _ = ready.send(RingWatch::this_thread());
            shared.run(watch, priority, &of_thread);
            drop::<mpsc::Sender<()>>(ends);
        };
        let thread = thread::Builder::new().name("watcher".into()).spawn(run)?;
        let tid = is_ready.recv();
        let tid = tid.map_err(|_| io::Error::other("a thread ended before it began"))?;
        Ok(Watcher {
            cpu,
            tid,
            thread,
            reading,
            ended,
        })
    }

    fn run(&self, mut watch: RingWatch, priority: Priority, reading: &WatchedReading) {
        let mut readers = Readers {
            sleep: LastSleep::of_this_thread(priority),
            interpreters: InterpreterReader::new(Arc::clone(&self.readings), Reads::Directly),
            tails: TailReader::new(self.settings.tail_limit, Reads::Directly),
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
            reading.set_looks(true);
            let is_filling = watch.look(|bytes| match self.settings.format.parse(bytes) {
                Ok(Record::Sample(_)) if reading.is_left() => {}
                Ok(Record::Sample(sample)) => {
                    reading.begin(sample.pid);
                    let read = readers.read(&sample, read_tails);
                    reading.end();
                    if let (Some(read), Some(time)) = (read, sample.time) {
                        is_urgent |= self.readings.leave((sample.tid, time), read);
                    }
                }
                // Its process is not known to run an interpreter before this is drained.
                Ok(record) => is_urgent |= maps_interpreter(&record),
                Err(_) => {}
            });
            reading.set_looks(false);
            if reading.is_left() {
                return;
            }
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
        let readings = self.interpreters.readings();
        let is_silent = readings.silent().contains(sample.pid);
        let copy = StackCopy::full(sample).filter(|_| read_tails && !is_silent);
        let tail = copy.and_then(|copy| {
            let mut bytes = readings.buffer();
            let read = || self.tails.read(&copy, &mut bytes);
            let tail = readings.shares().within(copy.pid, read)??;
            let is_prompt = is_prompt && self.sleep.still_preempts(copy.pid, copy.tid);
            Some((StackTail { is_prompt, ..tail }, bytes))
        });
        (interpreted.is_some() || tail.is_some()).then_some(LiveReading { interpreted, tail })
    }
}

impl Drop for Watchers {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        let threads = std::mem::take(&mut self.threads);
        for watcher in &threads {
            RingWatch::wake(watcher.tid);
        }
        let begin = Instant::now();
        for watcher in threads {
            watcher.wait_for_end(begin);
        }
    }
}

impl Watcher {
    /// Waits until it has ended, or hangs.
    fn wait_for_end(self, begin: Instant) {
        loop {
            let left = MEMORY_TIME_OUT.saturating_sub(begin.elapsed());
            match self.ended.recv_timeout(left) {
                Err(RecvTimeoutError::Timeout) if waits_for_cpu(self.tid) => thread::yield_now(),
                Err(RecvTimeoutError::Timeout) => return,
                // A panic there has been printed to the standard error output.
                _ => return drop(self.thread.join()),
            }
        }
    }
}
