//! Events open on every CPU for every thread of the targets, and the rings they write to.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use prof_model::{Fallback, Pid, Tid};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

use crate::advice::{Refusal, advice};
use crate::error::Error;
use crate::event::{CallGraph, Event, Rate};
use crate::ring::{Drained, Ring};
use crate::setup::{Sampling, Setup, Stacks};
use crate::sizes::{Sizes, Wishes};
use crate::system::System;
use crate::{kernel, ladder, system};

/// What to sample and how.
#[derive(Clone, Debug)]
pub struct Request {
    /// Which threads.
    pub threads: Threads,
    /// What to sample by.
    pub event: Event,
    /// How often.
    pub rate: Rate,
    /// How callers are found.
    pub call_graph: CallGraph,
    /// Bytes of each CPU's ring; what suits the rest if `None`.
    pub ring_bytes: Option<u64>,
}

/// Which threads to sample. Their later children, threads and processes, always belong to them.
#[derive(Clone, Debug)]
pub enum Threads {
    /// One that waits to call `exec`, which is when sampling begins.
    UntilExec(Tid),
    /// All threads of running processes; sampling begins with [`Sampler::enable`].
    Of(Vec<Pid>),
}

/// Events open on every CPU for every thread of the targets. Dropping it ends the sampling.
#[derive(Debug)]
pub struct Sampler {
    streams: Vec<Stream>,
    opened: Opened,
}

/// What was opened in the end.
#[derive(Clone, Debug)]
pub struct Opened {
    /// What the kernel accepted.
    pub setup: Setup,
    /// The ids of the events, which their samples carry, and which thread each was opened for.
    pub ids: Vec<(u64, Tid)>,
    /// Threads that were found only after others of their process had been opened. An older
    /// thread may have made them, so that they are sampled through it as well.
    pub late: Vec<Tid>,
    /// Sizes of rings and dumps.
    pub sizes: Sizes,
    /// Where less was taken than asked for.
    pub fallbacks: Vec<Fallback>,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Whether all threads that were sampled have ended.
    pub all_ended: bool,
}

/// One CPU's events and the ring they share.
#[derive(Debug)]
struct Stream {
    ring: Ring,
    /// The first made the ring. None is closed before the sampler is dropped, because a closed
    /// event forgets what its threads' children do.
    events: Vec<OwnedFd>,
    /// The event to wait for: the first whose threads have not all ended.
    waiting: usize,
}

impl Sampler {
    /// Opens the events, taking the next best where the machine or its settings refuse, and
    /// their rings. Raises the soft limits on locked memory and open files.
    ///
    /// # Errors
    ///
    /// See [`Error`]: each says what was refused and what to do.
    pub fn open(request: &Request) -> Result<Self, Error> {
        system::raise_limits();
        let system = System::read().map_err(|source| Error::System {
            what: "read the list of CPUs",
            source,
        })?;
        let opening = Opening::new(request, &system);
        let wanted = opening.wishes.sizes();
        let mut sizes = wanted;
        loop {
            match opening.open(sizes) {
                Ok(mut sampler) => {
                    sampler
                        .opened
                        .fallbacks
                        .extend(less_room(wanted, sizes, opening.wishes));
                    return Ok(sampler);
                }
                Err(error @ Error::Ring { errno, .. }) => {
                    let out_of_room = matches!(errno, Errno::PERM | Errno::NOMEM | Errno::AGAIN);
                    let smaller = opening.wishes.smaller(sizes).filter(|_| out_of_room);
                    sizes = smaller.ok_or(error)?;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// What was opened.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Number of rings: one for each CPU.
    pub fn rings(&self) -> usize {
        self.streams.len()
    }

    /// Starts sampling threads that are running already.
    ///
    /// # Errors
    ///
    /// Never seen: when the kernel refuses all of a sudden.
    pub fn enable(&self) -> Result<(), Errno> {
        self.events().try_for_each(kernel::enable)
    }

    /// Stops sampling. What is in the rings can still be drained.
    pub fn disable(&self) {
        for event in self.events() {
            // A thread that has ended samples nothing any more.
            let _ = kernel::disable(event);
        }
    }

    /// Hands out what is in the rings, with the number of the ring that each record comes from.
    pub fn drain(&mut self, mut each: impl FnMut(usize, &[u8])) -> Drained {
        let mut total = Drained::default();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let drained = stream.ring.drain(|record| each(number, record));
            total.bytes += drained.bytes;
            total.corrupt |= drained.corrupt;
        }
        total
    }

    /// Waits until a ring has filled to its wake-up mark, one of `others` can be read, all
    /// sampled threads have ended, or the time is over.
    ///
    /// # Errors
    ///
    /// When the system refuses to wait, which does not happen.
    pub fn wait(
        &mut self,
        others: &[BorrowedFd<'_>],
        timeout: Option<Duration>,
    ) -> io::Result<Wake> {
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        let mut polled: Vec<PollFd<'_>> = Vec::with_capacity(self.streams.len() + others.len());
        let waiting = self
            .streams
            .iter()
            .filter_map(|stream| stream.events.get(stream.waiting));
        polled.extend(waiting.map(|event| PollFd::new(event, PollFlags::IN)));
        let events = polled.len();
        polled.extend(others.iter().map(|fd| PollFd::new(fd, PollFlags::IN)));
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
        let ended: Vec<bool> = polled
            .iter()
            .take(events)
            .map(|fd| fd.revents().intersects(PollFlags::HUP | PollFlags::ERR))
            .collect();
        let waiting = self
            .streams
            .iter_mut()
            .filter(|stream| stream.waiting < stream.events.len());
        for (stream, ended) in waiting.zip(ended) {
            stream.waiting += usize::from(ended);
        }
        let over = |stream: &Stream| stream.waiting >= stream.events.len();
        Ok(Wake {
            all_ended: self.streams.iter().all(over),
        })
    }

    fn events(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let streams = self.streams.iter();
        streams.flat_map(|stream| stream.events.iter().map(AsFd::as_fd))
    }
}

/// Waits until one of these can be read, or has ended.
///
/// # Errors
///
/// When the system refuses to wait, which does not happen.
pub fn wait_readable(fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut polled: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    match rustix::event::poll(&mut polled, None) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(errno) => Err(errno.into()),
    }
}

/// Everything about the opening that stays the same from one attempt to the next.
struct Opening<'a> {
    request: &'a Request,
    system: &'a System,
    wishes: Wishes,
}

impl<'a> Opening<'a> {
    fn new(request: &'a Request, system: &'a System) -> Self {
        let wishes = Wishes {
            ring: request.ring_bytes,
            dump: match request.call_graph {
                CallGraph::Dwarf { dump } => Some(dump),
                CallGraph::FramePointers | CallGraph::None => None,
            },
            rate: match request.rate {
                Rate::Hertz(hertz) => hertz.min(system.max_rate),
                Rate::Maximum => system.max_rate,
                // Unknown: think of a clock's nanoseconds, or of as many cycles.
                Rate::Period(period) => 1_000_000_000 / period.max(1),
            },
            cpus: system.cpus.len(),
            page: rustix::param::page_size() as u64,
        };
        Self {
            request,
            system,
            wishes,
        }
    }

    fn setup(&self, sizes: Sizes) -> Setup {
        let stacks = match (self.request.call_graph, sizes.dump) {
            (CallGraph::Dwarf { .. }, Some(dump)) => Stacks::Dump(dump),
            (CallGraph::FramePointers, _) => Stacks::FramePointers,
            (CallGraph::None | CallGraph::Dwarf { .. }, _) => Stacks::None,
        };
        Setup {
            event: self.request.event,
            sampling: match self.request.rate {
                Rate::Hertz(hertz) => Sampling::Hertz(hertz),
                Rate::Maximum => Sampling::Hertz(self.system.max_rate),
                Rate::Period(period) => Sampling::Period(period),
            },
            stacks,
            enable_on_exec: matches!(self.request.threads, Threads::UntilExec(_)),
            // A precise address is not from the same moment as the registers and the stack,
            // which unwinding must not mix.
            precise: if stacks == Stacks::None { 2 } else { 0 },
            build_ids: true,
            lost_counts: true,
            wakeup_bytes: sizes.wakeup,
        }
    }

    fn open(&self, sizes: Sizes) -> Result<Sampler, Error> {
        let cpus = &self.system.cpus;
        let threads = self.threads()?;
        let (Some(&first), Some(&cpu)) = (threads.first(), cpus.first()) else {
            return Err(Error::System {
                what: "find a CPU and a thread",
                source: io::ErrorKind::NotFound.into(),
            });
        };
        let setup = self.setup(sizes);
        let (_, setup, fallbacks) =
            ladder::descend(setup, self.system, |setup| kernel::open(setup, first, cpu))
                .map_err(|(errno, setup)| self.open_error(&setup, first, cpu, errno))?;
        let mut sampler = Sampler {
            streams: Vec::with_capacity(cpus.len()),
            opened: Opened {
                setup,
                ids: Vec::new(),
                late: Vec::new(),
                sizes,
                fallbacks,
            },
        };
        let mut known = Vec::new();
        self.add_threads(&mut sampler, &threads, &mut known)?;
        // Threads may have come while we were opening: look until there are no new ones.
        loop {
            let new: Vec<Tid> = self
                .threads()?
                .into_iter()
                .filter(|tid| known.binary_search(tid).is_err())
                .collect();
            if new.is_empty() {
                return Ok(sampler);
            }
            sampler.opened.late.extend(&new);
            self.add_threads(&mut sampler, &new, &mut known)?;
        }
    }

    fn threads(&self) -> Result<Vec<Tid>, Error> {
        let pids = match &self.request.threads {
            Threads::UntilExec(tid) => return Ok(vec![*tid]),
            Threads::Of(pids) => pids,
        };
        let mut threads = Vec::new();
        for &pid in pids {
            let found = system::threads(pid).map_err(|_| Error::NoProcess { pid })?;
            threads.extend(found);
        }
        threads.sort_unstable();
        threads.dedup();
        Ok(threads)
    }

    fn add_threads(
        &self,
        sampler: &mut Sampler,
        threads: &[Tid],
        known: &mut Vec<Tid>,
    ) -> Result<(), Error> {
        for (number, &cpu) in self.system.cpus.iter().enumerate() {
            for &tid in threads {
                match self.add(sampler, number, tid, cpu) {
                    // It ended while we were at it, or the CPU went offline.
                    Err(Error::Open { errno, .. })
                        if matches!(errno, Errno::SRCH | Errno::NODEV)
                            && (threads.len() > 1 || !known.is_empty()) => {}
                    result => result?,
                }
            }
        }
        known.extend(threads);
        known.sort_unstable();
        Ok(())
    }

    fn add(&self, sampler: &mut Sampler, number: usize, tid: Tid, cpu: u32) -> Result<(), Error> {
        let setup = sampler.opened.setup;
        let refused = |errno| self.open_error(&setup, tid, cpu, errno);
        let event = kernel::open(&setup, tid, cpu).map_err(refused)?;
        let id = kernel::id(event.as_fd()).map_err(refused)?;
        sampler.opened.ids.push((id, tid));
        if let Some(stream) = sampler.streams.get_mut(number)
            && let Some(leader) = stream.events.first()
        {
            kernel::redirect(event.as_fd(), leader.as_fd()).map_err(refused)?;
            stream.events.push(event);
            return Ok(());
        }
        let bytes = sampler.opened.sizes.ring;
        let ring = Ring::map(event.as_fd(), bytes).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            Error::Ring {
                bytes,
                cpus: self.system.cpus.len(),
                errno,
                advice: advice(self.refusal(&setup, errno, true)),
            }
        })?;
        sampler.streams.push(Stream {
            ring,
            events: vec![event],
            waiting: 0,
        });
        Ok(())
    }

    fn open_error(&self, setup: &Setup, tid: Tid, cpu: u32, errno: Errno) -> Error {
        Error::Open {
            event: setup.event.to_string(),
            tid,
            cpu,
            errno,
            advice: advice(self.refusal(setup, errno, false)),
        }
    }

    fn refusal(&self, setup: &Setup, errno: Errno, ring: bool) -> Refusal {
        Refusal {
            errno,
            paranoid: self.system.paranoid,
            kernel: setup.event.kernel,
            attach: matches!(self.request.threads, Threads::Of(_)),
            root: rustix::process::geteuid().is_root(),
            ring,
        }
    }
}

/// What to say when rings or dumps are smaller than asked for, or than is good.
fn less_room(wanted: Sizes, used: Sizes, wishes: Wishes) -> Vec<Fallback> {
    /// With less, samples are lost on any busy machine.
    const GOOD_RING: u64 = 256 << 10;
    /// What perf copies.
    const GOOD_DUMP: u32 = 8192;
    let mut fallbacks = Vec::new();
    if used.ring < wanted.ring && (wishes.ring.is_some() || used.ring < GOOD_RING) {
        fallbacks.push(Fallback::Rings {
            asked: wanted.ring,
            used: used.ring,
        });
    }
    let (asked, good) = match wishes.dump {
        Some(Some(asked)) => (Some(asked), asked),
        _ => (wanted.dump, GOOD_DUMP),
    };
    if let (Some(asked), Some(used)) = (asked, used.dump)
        && used < asked
        && used < good
    {
        fallbacks.push(Fallback::StackDump { asked, used });
    }
    fallbacks
}
