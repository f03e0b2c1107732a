//! Sources of records: rings that the kernel fills, or threads that we stop.

pub(crate) mod hotplug;
pub(crate) mod ptrace;

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

use prof_events::Trial;
use prof_events::parsing::Catalog;
use prof_events::{
    CallGraph, CpuRing, Drained, EventRequest, Features, MAX_STACK_DUMP, Opened, OpenedEvent, Rate,
    Reports, Request, SampleSignal, Sampler, Sampling, Setup, Signals, Sizes, Stacks, Toggling,
    Tracking, Wake, Weight, WithDump,
};
use prof_model::{CallGraphSettings, Fallback, Pid, Tid};

use crate::error::Error;
use crate::live::readings::LiveReadings;
use crate::options::Backend;
use crate::source::ptrace::PtraceSampler;

/// A source of records.
pub(crate) enum Source {
    /// Events, and the rings that they write to.
    Rings(Box<Sampler>),
    /// Threads that are stopped at intervals.
    Ptrace(Box<PtraceSampler>),
}

impl Source {
    /// Opens the requested source, or a fallback.
    pub(crate) fn open(
        request: &Request,
        backend: Backend,
        signals: &Signals,
    ) -> Result<Self, Error> {
        if backend == Backend::Ptrace {
            return Self::ptrace(request, None, signals);
        }
        match Sampler::open(request) {
            Ok(sampler) => Ok(Self::Rings(Box::new(sampler))),
            // Nothing may be opened, not even for ourselves: so neither the target nor the event is
            // the reason.
            Err(prof_events::Error::Open { errno, advice, .. })
                if backend == Backend::Automatic
                    && !request.threads.are_all()
                    && suits_ptrace(request).is_some()
                    && Trial::UserCode.run().is_err() =>
            {
                let reason = format!("{errno}: {advice}");
                Self::ptrace(request, Some(reason), signals)
            }
            Err(error) => Err(error.into()),
        }
    }

    fn ptrace(request: &Request, reason: Option<String>, signals: &Signals) -> Result<Self, Error> {
        if request.threads.are_all() {
            return Err(Error::NotOfCpus);
        }
        let event = suits_ptrace(request).ok_or(Error::NotByPtrace)?;
        if event.spec.terms.inherit == Some(false) {
            return Err(Error::FollowsChildren);
        }
        let hertz = match event.rate {
            Rate::Hertz(hertz) => hertz.min(FASTEST),
            Rate::Maximum => FASTEST,
            Rate::Period(period) => (1_000_000_000 / period.max(1)).clamp(1, FASTEST),
        };
        let opened = opened_for_ptrace(event, hertz, request.user_chains, reason)?;
        let threads = request.threads.clone();
        let mut ptrace = PtraceSampler::new(opened, hertz, threads, signals)?;
        ptrace.set_sampling(request.toggling != Toggling::BeginsDisabled);
        Ok(Self::Ptrace(Box::new(ptrace)))
    }

    pub(crate) fn opened(&self) -> &Opened {
        match self {
            Self::Rings(sampler) => sampler.opened(),
            Self::Ptrace(ptrace) => ptrace.opened(),
        }
    }

    /// Begins to sample running targets, and prepares for a command that waits to exec.
    pub(crate) fn begin(&mut self, held: Option<Pid>) -> Result<(), Error> {
        match self {
            // Its events are enabled by the exec.
            Self::Rings(sampler) if held.is_some() && !sampler.is_cpu_wide() => Ok(()),
            Self::Rings(sampler) => sampler.enable().map_err(|errno| Error::Sampling {
                source: errno.into(),
            }),
            Self::Ptrace(ptrace) => ptrace.begin(held),
        }
    }

    /// Enables or disables sampling; threads and mappings are reported in any case.
    pub(crate) fn set_sampling(&mut self, on: bool) -> Result<(), Error> {
        match self {
            Self::Rings(sampler) => sampler.set_sampling(on).map_err(|errno| Error::Sampling {
                source: errno.into(),
            }),
            Self::Ptrace(ptrace) => {
                ptrace.set_sampling(on);
                Ok(())
            }
        }
    }

    /// Ends sampling. Remaining records can still be drained.
    pub(crate) fn end(&mut self) {
        match self {
            Self::Rings(sampler) => sampler.disable(),
            Self::Ptrace(ptrace) => ptrace.end(),
        }
    }

    pub(crate) fn drain(&mut self, each: impl FnMut(usize, &[u8])) -> Drained {
        match self {
            Self::Rings(sampler) => sampler.drain(each),
            Self::Ptrace(ptrace) => ptrace.drain(each),
        }
    }

    pub(crate) fn watch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Rings(sampler) => sampler.watch(fd),
            Self::Ptrace(ptrace) => ptrace.watch(fd),
        }
    }

    /// Like [`watch`](Self::watch), of the signals to this process.
    pub(crate) fn watch_signals(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Rings(sampler) => sampler.watch_signals(fd),
            Self::Ptrace(ptrace) => ptrace.watch(fd),
        }
    }

    pub(crate) fn unwatch(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        match self {
            Self::Rings(sampler) => sampler.unwatch(fd),
            Self::Ptrace(ptrace) => {
                ptrace.unwatch(fd);
                Ok(())
            }
        }
    }

    pub(crate) fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        match self {
            Self::Rings(sampler) => sampler.wait(Some(timeout)),
            Self::Ptrace(ptrace) => ptrace.wait(timeout),
        }
    }

    /// Says which threads each sample wakes.
    pub(crate) fn signal_each_overflow(&mut self, to: SampleSignal) -> io::Result<()> {
        match self {
            Self::Rings(sampler) => sampler.signal_each_overflow(to),
            Self::Ptrace(ptrace) => {
                ptrace.signal_each(to != SampleSignal::Off);
                Ok(())
            }
        }
    }

    /// The ring of each CPU, for a thread on that CPU to watch.
    pub(crate) fn cpu_rings(&self) -> Vec<CpuRing> {
        match self {
            Self::Rings(sampler) => sampler.cpu_rings(),
            Self::Ptrace(_) => Vec::new(),
        }
    }

    /// Sends the signal of each sample of a CPU to the thread that watches its ring.
    pub(crate) fn signal_watches(&mut self, watches: &[(u32, Tid)]) -> io::Result<()> {
        match self {
            Self::Rings(sampler) => sampler.signal_watches(watches),
            Self::Ptrace(_) => Ok(()),
        }
    }

    /// Where to store interpreted frames: the tracing thread does that, if there is one.
    pub(crate) fn live_readings(&self) -> Arc<LiveReadings> {
        match self {
            Self::Rings(_) => Arc::default(),
            Self::Ptrace(ptrace) => ptrace.live_readings(),
        }
    }

    /// Gives the event with this id, and events that inherit from it later, another period.
    pub(crate) fn set_period(&self, id: u64, period: u64) {
        if let Self::Rings(sampler) = self {
            // Refused only for events whose thread has ended: no other inherits from them.
            let _ = sampler.set_period(id, period);
        }
    }

    /// The count of each event, by its id; empty if nothing counts.
    pub(crate) fn counts(&self) -> Vec<(u64, u64)> {
        match self {
            Self::Rings(sampler) => sampler.counts(),
            Self::Ptrace(_) => Vec::new(),
        }
    }

    pub(crate) fn lost(&self) -> u64 {
        match self {
            Self::Rings(sampler) => sampler.lost(),
            Self::Ptrace(ptrace) => ptrace.lost(),
        }
    }

    /// The name of a program that ran without the privileges of its file, if one did.
    pub(crate) fn unprivileged(&self) -> Option<Box<str>> {
        match self {
            Self::Rings(_) => None,
            Self::Ptrace(ptrace) => ptrace.unprivileged(),
        }
    }
}

/// The most stops per second and thread: beyond this the target notices, and checking its threads
/// takes all of the time.
pub(crate) const FASTEST: u64 = 999;

/// The largest stack dump: the kernel limits its dumps in the same way.
const LARGEST_DUMP: u32 = MAX_STACK_DUMP - CallGraphSettings::RECORD_REST;

/// The event, if stops can replace it: time or cycles, of user code.
fn suits_ptrace(request: &Request) -> Option<&EventRequest> {
    let [group] = request.groups.as_slice() else {
        return None;
    };
    let [event] = group.events.as_slice() else {
        return None;
    };
    let by_time = event.replaceable || event.spec.is_clock();
    let by_time = by_time && event.weight == Weight::Period;
    (by_time && event.spec.modifiers.user).then_some(event)
}

/// The event that would do what stops do.
fn opened_for_ptrace(
    event: &EventRequest,
    hertz: u64,
    user_chain: bool,
    reason: Option<String>,
) -> Result<Opened, Error> {
    let groups = Catalog::system().parse("cpu-clock:u").ok();
    let spec = groups.and_then(|mut groups| Some(groups.first_mut()?.events.first()?.clone()));
    let dump = match event.call_graph {
        CallGraph::Dwarf { dump } => Some(dump.unwrap_or(LARGEST_DUMP).min(LARGEST_DUMP)),
        // Only we find callers here: unwind.
        CallGraph::FramePointers | CallGraph::LastBranches => Some(LARGEST_DUMP),
        CallGraph::None => None,
    };
    let setup = Setup {
        stacks: dump.map_or(Stacks::None, Stacks::Dump),
        with_dump: WithDump {
            user_chain,
            entry_registers: false,
        },
        reports: Reports {
            tracking: Tracking::Also,
            switches: false,
            exit_counts: true,
        },
        features: Features {
            build_ids: true,
            lost_counts: false,
        },
        ..Setup::new(spec.ok_or(Error::NotByPtrace)?, Sampling::Hertz(hertz))
    };
    Ok(Opened {
        events: vec![OpenedEvent {
            setup,
            leader: None,
            ids: vec![(PtraceSampler::ID, 0)],
        }],
        late: Vec::new(),
        cpus: Vec::new(),
        sizes: Sizes {
            ring: 0,
            dump,
            wakeup: 0,
        },
        fallbacks: vec![Fallback::Ptrace { reason, hertz }],
    })
}
