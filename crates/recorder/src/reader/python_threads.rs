//! Threads that read the Python frames of samples at once, one on each CPU.
//!
//! A reader that wakes on another CPU comes 25 µs after the sample: by then, the sampled thread has
//! called and returned. A reader that wakes on the sample's own CPU runs in the place of the
//! sampled thread, which cannot go on meanwhile.

use std::io::{self, PipeReader, PipeWriter, Read, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use prof_events::system::{self, Ahead};
use prof_events::{AllowedCpus, CpuRing, RingWatch};
use prof_model::Tid;
use prof_perfdata::{Record, RecordFormat};

use crate::python::maps_interpreter;
use crate::python::reader::PythonReader;
use crate::python::readings::PythonReadings;
use crate::queue::message::SampledThread;
use crate::reader::last_sleep::LastSleep;
use crate::source::Source;

/// The threads; dropping it ends them.
#[derive(Debug)]
pub(crate) struct PythonThreads {
    shared: Arc<Shared>,
    threads: Vec<(Tid, JoinHandle<()>)>,
    forwarded: PipeReader,
}

#[derive(Debug)]
struct Shared {
    format: RecordFormat,
    readings: Arc<PythonReadings>,
    /// Whether the reader of the rings, too, is to come with each sample.
    forwards: AtomicBool,
    /// Whether it was woken: whether there is a byte in the pipe.
    has_forwarded: AtomicBool,
    forward: PipeWriter,
    /// Whether the threads are to end.
    ends: AtomicBool,
}

impl PythonThreads {
    /// Starts a thread for each CPU that is sampled, of those at `home`. From now on they get the
    /// signals of samples.
    ///
    /// # Errors
    ///
    /// When the process has no more descriptors or threads.
    pub(crate) fn start(
        source: &mut Source,
        format: &RecordFormat,
        readings: &Arc<PythonReadings>,
        home: Option<AllowedCpus>,
    ) -> io::Result<Self> {
        let (forwarded, forward) = io::pipe()?;
        source.watch(forwarded.as_fd())?;
        let mut threads = Self {
            shared: Arc::new(Shared {
                format: format.clone(),
                readings: Arc::clone(readings),
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
            system::raise_thread_priority(Ahead::OfThese);
            there.map(|there| there.run_there());
            let watch = ring.watch();
            let _ = ready.send(RingWatch::this_thread());
            shared.run(watch);
        };
        let thread = thread::Builder::new().name("python".into()).spawn(run)?;
        let tid = is_ready.recv();
        let tid = tid.map_err(|_| io::Error::other("a thread ended before it began"))?;
        self.threads.push((tid, thread));
        Ok(tid)
    }

    /// Whether each sample is to wake the reader of the rings, after its Python frames were read:
    /// otherwise only if a ring fills, or something is urgent.
    pub(crate) fn forward(&self, on: bool) {
        self.shared.forwards.store(on, Ordering::Relaxed);
    }

    /// The reader of the rings has come.
    pub(crate) fn clear(&self) {
        if self.shared.has_forwarded.swap(false, Ordering::AcqRel) {
            let _ = (&self.forwarded).read(&mut [0]);
        }
    }
}

impl Shared {
    fn run(&self, mut watch: RingWatch) {
        let mut reader = PythonReader::new(Arc::clone(&self.readings));
        loop {
            let sleep = LastSleep::begin();
            watch.wait();
            if self.ends.load(Ordering::Acquire) {
                return;
            }
            let mut is_urgent = false;
            let is_filling = watch.look(|bytes| match self.format.parse(bytes) {
                Ok(Record::Sample(sample)) => {
                    if let Some(thread) = SampledThread::of(&sample)
                        && let Some(time) = sample.time
                        && let Some(reading) = reader.read(&thread, sleep.ended_by(&sample))
                    {
                        is_urgent |= reader.leave((sample.tid, time), reading);
                    }
                }
                // Its process is not known to run Python before this is drained.
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

impl Drop for PythonThreads {
    fn drop(&mut self) {
        self.shared.ends.store(true, Ordering::Release);
        for (tid, thread) in self.threads.drain(..) {
            RingWatch::wake(tid);
            // A panic there has been printed to the standard error output.
            let _ = thread.join();
        }
    }
}
