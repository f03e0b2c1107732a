//! Opening a sampler's events and rings.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use prof_model::{Fallback, Tid};
use rustix::event::epoll;
use rustix::io::Errno;

use crate::attr::definition::Definition;
use crate::attr::sample_period::is_time;
use crate::attr::setup::{Scope, Setup};
use crate::error::Error;
use crate::kernel;
use crate::kernel::exit_reports;
use crate::kernel::probe_reach::ProbeReach;
use crate::kernel::ring::Ring;
use crate::plan::fallback;
use crate::plan::fallback::{Accepted, Refused};
use crate::plan::measured_period;
use crate::plan::refusal;
use crate::plan::sample_cost;
use crate::plan::{self, Planned};
use crate::request::Request;
use crate::request::sizes::{BufferRequest, Sizes};
use crate::sampler::exit_counters::ExitCounters;
use crate::sampler::opened::{Opened, OpenedEvent};
use crate::sampler::run_times::RunTimes;
use crate::sampler::{Sampler, Stream, StreamEvent};
use crate::system;
use crate::system::System;

impl Sampler {
    /// Opens the events, taking the next best where the machine or its settings refuse, and
    /// their rings. Raises the soft limits on locked memory and open files.
    ///
    /// # Errors
    ///
    /// See [`Error`]: each says what was refused and what to do.
    pub fn open(request: &Request) -> Result<Self, Error> {
        let sampler = open(request)?;
        for (number, stream) in sampler.streams.iter().enumerate() {
            let waiting = sampler.wait_for(number, stream);
            waiting
                .and_then(|()| sampler.wait_for_exits(stream))
                .map_err(|errno| Error::System {
                    what: "wait for events",
                    source: errno.into(),
                })?;
        }
        Ok(sampler)
    }
}

/// Opens the events and their rings, with the next smaller size as long as they cannot be mapped.
pub(crate) fn open(request: &Request) -> Result<Sampler, Error> {
    system::raise_limits();
    let system = System::read().map_err(|source| Error::System {
        what: "read the list of CPUs",
        source,
    })?;
    request.threads.check()?;
    let opening = Opening::new(request, &system)?;
    let wanted = opening.buffer_request.sizes();
    let mut sizes = wanted;
    loop {
        match opening.open(sizes) {
            Ok(mut sampler) => {
                let said = size_fallbacks(wanted, sizes, opening.buffer_request);
                sampler.opened.fallbacks.extend(said);
                return Ok(sampler);
            }
            Err(error @ Error::Ring { errno, .. }) => {
                let out_of_memory = matches!(errno, Errno::PERM | Errno::NOMEM | Errno::AGAIN);
                let smaller = opening
                    .buffer_request
                    .smaller(sizes)
                    .filter(|_| out_of_memory);
                sizes = smaller.ok_or(error)?;
            }
            Err(error) => return Err(error),
        }
    }
}

/// The requests that the kernel accepts, one for each event.
struct Probed {
    // Closing the last event of a uprobe takes the kernel long: these are kept until there are
    // others, and closed before their definition is removed.
    _fds: Vec<OwnedFd>,
    events: Vec<OpenedEvent>,
    fallbacks: Vec<Fallback>,
}

/// The part of opening that does not change between attempts.
struct Opening<'a> {
    request: &'a Request,
    system: &'a System,
    cpus: Vec<u32>,
    buffer_request: BufferRequest,
}

impl<'a> Opening<'a> {
    fn new(request: &'a Request, system: &'a System) -> Result<Self, Error> {
        let cpus = request.threads.cpus(&system.cpus)?;
        Ok(Self {
            request,
            system,
            buffer_request: plan::buffer_request(request, system, cpus.len()),
            cpus,
        })
    }

    fn open(&self, sizes: Sizes) -> Result<Sampler, Error> {
        let cpus = &self.cpus;
        let threads = self.request.threads.find()?;
        let (Some(&first), Some(&cpu)) = (threads.first(), cpus.first()) else {
            return Err(Error::System {
                what: "find a CPU and a thread",
                source: std::io::ErrorKind::NotFound.into(),
            });
        };
        let probed = self.probe(sizes, first, cpu)?;
        let waiter = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|errno| Error::System {
            what: "make an epoll descriptor",
            source: errno.into(),
        })?;
        let mut sampler = Sampler {
            waiter,
            signals: None,
            leaves_rings: false,
            streams: Vec::with_capacity(cpus.len()),
            context_pins: Vec::with_capacity(threads.len()),
            reach: ProbeReach::default(),
            places: HashMap::new(),
            toggling: self.request.toggling,
            overflow_signal: None,
            run_times: RunTimes::default(),
            opened: Opened {
                events: probed.events,
                late: Vec::new(),
                cpus: cpus.clone(),
                sizes,
                fallbacks: probed.fallbacks,
            },
        };
        sampler.opened.set_watermark();
        let mut known = Vec::new();
        self.add_threads(&mut sampler, &threads, &mut known)?;
        // Threads may have come while we were opening: look until there are no new ones.
        loop {
            let new: Vec<Tid> = (self.request.threads)
                .find()?
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

    /// Finds the request that the kernel accepts for each event, on one thread and CPU.
    fn probe(&self, sizes: Sizes, tid: Tid, cpu: u32) -> Result<Probed, Error> {
        let mut events: Vec<OpenedEvent> = Vec::new();
        let mut fds: Vec<OwnedFd> = Vec::new();
        let mut fallbacks = Vec::new();
        let planned = plan::events(self.request, self.system, sizes);
        let alone = plan::samples_one_event(&planned);
        for Planned { mut setup, leader } in planned {
            let leads = leader.and_then(|leader| events.get(leader));
            if let Some(leads) = leads {
                setup.follow(&leads.setup);
            }
            let group = leader.and_then(|leader| fds.get(leader)).map(AsFd::as_fd);
            let defined = Definition::new(&setup.spec).map(|defined| defined.map(Arc::new));
            setup.definition = defined.as_ref().ok().cloned().flatten();
            let open_in = |setup: &Setup, group| {
                let monitored = self.request.threads.monitored(tid, setup.only_tracks());
                kernel::open(&mut setup.attr(), monitored, Some(cpu), group)
            };
            let open = |setup: &Setup| open_in(setup, group);
            let asked = setup.sampling;
            let accepted = fallback::fall_back(setup, self.system, open).map_err(|refused| {
                let Refused { errno, setup } = refused;
                let alone = || open_in(&setup, None).is_ok();
                match leads {
                    Some(leads) if errno == Errno::INVAL && alone() => {
                        refusal::of_member(&setup.spec, &leads.setup.spec)
                    }
                    _ => self.open_error(&setup, tid, cpu, errno),
                }
            })?;
            // With the permission to probe, but not to define the probe, the target's `fork` would
            // fail.
            defined.map_err(|source| Error::System {
                what: "define the probe in tracefs, which must be mounted (mount -t tracefs nodev \
                       /sys/kernel/tracing)",
                source,
            })?;
            let Accepted {
                event: fd,
                setup,
                fallbacks: mut said,
            } = accepted;
            let (setup, slower) = sample_cost::limited(setup, asked);
            if let Some(slower) = slower {
                said.retain(|fallback| !matches!(fallback, Fallback::Rate { .. }));
                said.push(slower);
            }
            // Each event steps down by itself, for the same reasons.
            for fallback in said {
                if !fallbacks.contains(&fallback) {
                    fallbacks.push(fallback);
                }
            }
            fds.push(fd);
            let setup = match alone {
                true => measured_period::with_sample_period(setup, self.system, sizes),
                false => setup,
            };
            events.push(OpenedEvent {
                setup,
                leader,
                ids: Vec::new(),
            });
        }
        Ok(Probed {
            events,
            fallbacks,
            _fds: fds,
        })
    }

    fn add_threads(
        &self,
        sampler: &mut Sampler,
        threads: &[Tid],
        known: &mut Vec<Tid>,
    ) -> Result<(), Error> {
        // Without a context pin, the rest works, until threads swap events.
        let context_pins = threads.iter().map(|&tid| kernel::open_context_pin(tid));
        sampler.context_pins.extend(context_pins.flatten());
        let setups = sampler.opened.events.iter().map(|event| &event.setup);
        let inherited =
            setups.filter(|setup| setup.scope == Scope::Descendants && setup.definition.is_some());
        let probes: Vec<_> = inherited.map(Setup::attr).collect();
        sampler.reach.extend(threads, &probes);
        for &cpu in &self.cpus {
            for &tid in threads {
                match self.add(sampler, tid, cpu) {
                    // It ended meanwhile, or the CPU went offline.
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

    /// Opens all events for one thread on one CPU.
    fn add(&self, sampler: &mut Sampler, tid: Tid, cpu: u32) -> Result<(), Error> {
        // The index of this thread's first event in the stream.
        let streams = &sampler.streams;
        let stream = streams.iter().position(|stream| stream.cpu == cpu);
        let stream = stream.unwrap_or(streams.len());
        let first = streams.get(stream).map_or(0, |stream| stream.events.len());
        let place = stream;
        for number in 0..sampler.opened.events.len() {
            let Some(event) = sampler.opened.events.get_mut(number) else {
                break;
            };
            let refused = |errno| self.open_error(&event.setup, tid, cpu, errno);
            let stream = sampler.streams.iter_mut().find(|stream| stream.cpu == cpu);
            let leader = event.leader.and_then(|leader| {
                let opened = stream.as_ref()?.events.get(first + leader)?;
                Some(opened.fd.as_fd())
            });
            let monitored = self
                .request
                .threads
                .monitored(tid, event.setup.only_tracks());
            let fd = kernel::open(&mut event.setup.attr(), monitored, Some(cpu), leader)
                .map_err(refused)?;
            let id = kernel::id(fd.as_fd()).map_err(refused)?;
            if let Some(stream) = stream
                && let Some(ring) = stream.events.first()
            {
                kernel::redirect(fd.as_fd(), ring.fd.as_fd()).map_err(refused)?;
                stream.events.push(StreamEvent { fd, number });
            } else {
                let stream = self.stream(&event.setup, sampler.opened.sizes, cpu, fd)?;
                sampler.streams.push(stream);
            }
            event.ids.push((id, tid));
            sampler.places.insert(id, (place, first + number));
            if event.setup.reports.exit_counts
                && let Some(stream) = sampler.streams.get_mut(place)
            {
                // Without it, the work of each thread is unknown.
                let by_switches = is_time(&event.setup.spec) && !exit_reports::are_there();
                let _ = (stream.exit_counters).add(&event.setup, id, (tid, cpu), by_switches);
            }
        }
        Ok(())
    }

    /// A stream with its first event, which owns the ring.
    fn stream(&self, setup: &Setup, sizes: Sizes, cpu: u32, fd: OwnedFd) -> Result<Stream, Error> {
        let bytes = sizes.ring;
        let ring = Ring::map(fd.as_fd(), bytes).map_err(|error| {
            let errno = Errno::from_io_error(&error).unwrap_or(Errno::INVAL);
            Error::Ring {
                bytes,
                cpus: self.cpus.len(),
                errno,
                advice: refusal::of_ring(setup, errno, self.system),
            }
        })?;
        Ok(Stream {
            cpu,
            ring,
            events: vec![StreamEvent { fd, number: 0 }],
            exit_counters: ExitCounters::default(),
            waiting: 0,
        })
    }

    fn open_error(&self, setup: &Setup, tid: Tid, cpu: u32, errno: Errno) -> Error {
        let target = self.request.threads.are_others().then_some(tid);
        Error::Open {
            event: setup.spec.to_string(),
            tid,
            cpu,
            errno,
            advice: refusal::of_event(setup, errno, self.system, target),
        }
    }
}

/// The fallbacks if rings or dumps are smaller than requested, or than they should be. A smaller
/// dump of our own choice is not reported: the tail is read from the live target, which is reported
/// later.
fn size_fallbacks(wanted: Sizes, used: Sizes, buffer_request: BufferRequest) -> Vec<Fallback> {
    /// With less, samples are lost on any busy machine.
    const GOOD_RING: u64 = 256 << 10;
    let mut fallbacks = Vec::new();
    if used.ring < wanted.ring && (buffer_request.ring.is_some() || used.ring < GOOD_RING) {
        fallbacks.push(Fallback::Rings {
            asked: wanted.ring,
            used: used.ring,
        });
    }
    if let (Some(Some(asked)), Some(used)) = (buffer_request.dump, used.dump)
        && used < asked
    {
        fallbacks.push(Fallback::StackDump { asked, used });
    }
    fallbacks
}
