//! Opening a sampler's events and rings.

use std::io;
use std::os::fd::AsFd;

use prof_model::{Fallback, Tid};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::access::{Seccomp, Standing};
use crate::advice::{Refusal, advice};
use crate::error::Error;
use crate::event::{CallGraph, Rate};
use crate::ring::Ring;
use crate::sampler::{Opened, Request, Sampler, Stream, Threads};
use crate::setup::{Sampling, Setup, Stacks};
use crate::sizes::{Sizes, Wishes};
use crate::system::System;
use crate::{kernel, ladder, system};

/// Opens the events and their rings, of the next smaller size as long as there is no room.
pub(crate) fn open(request: &Request) -> Result<Sampler, Error> {
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
                let said = less_room(wanted, sizes, opening.wishes);
                sampler.opened.fallbacks.extend(said);
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
        let waiter = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| Error::System {
            what: "make an epoll descriptor",
            source: errno.into(),
        })?;
        let mut sampler = Sampler {
            waiter,
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
        for &cpu in &self.system.cpus {
            for &tid in threads {
                match self.add(sampler, tid, cpu) {
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

    fn add(&self, sampler: &mut Sampler, tid: Tid, cpu: u32) -> Result<(), Error> {
        let setup = sampler.opened.setup;
        let refused = |errno| self.open_error(&setup, tid, cpu, errno);
        let event = kernel::open(&setup, tid, cpu).map_err(refused)?;
        let id = kernel::id(event.as_fd()).map_err(refused)?;
        sampler.opened.ids.push((id, tid));
        let mut streams = sampler.streams.iter_mut();
        if let Some(stream) = streams.find(|stream| stream.cpu == cpu)
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
            cpu,
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
        let standing = Standing::read().unwrap_or_default();
        Refusal {
            errno,
            paranoid: self.system.paranoid,
            kernel: setup.event.kernel,
            attach: matches!(self.request.threads, Threads::Of(_)),
            capable: standing.may_perfmon(),
            filtered: standing.seccomp == Seccomp::Filter,
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
