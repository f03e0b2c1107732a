//! Events open on every CPU for every thread of the targets, and the rings they write to.

pub(crate) mod exit_counters;
pub(crate) mod opened;
mod opening;
pub(crate) mod overflow_signal;
pub(crate) mod ring_watch;
pub(crate) mod run_times;
pub(crate) mod wait;

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use prof_model::Tid;
use rustix::io::Errno;

use crate::attr::setup::{Scope, Setup};
use crate::kernel;
use crate::kernel::probe_reach::ProbeReach;
use crate::kernel::ring::{Drained, Ring};
use crate::process::signals::ThreadSignal;
use crate::request::Toggling;
use exit_counters::ExitCounters;
use opened::Opened;
use overflow_signal::OverflowSignal;
use ring_watch::CpuRing;
use run_times::RunTimes;

/// Events open on every CPU for every thread of the targets. Dropping it ends the sampling.
#[derive(Debug)]
pub struct Sampler {
    pub(crate) streams: Vec<Stream>,
    /// Context pins, which keep each event on its thread (`kernel::open_context_pin`).
    pub(crate) context_pins: Vec<OwnedFd>,
    /// Makes probes reach every program.
    pub(crate) reach: ProbeReach,
    /// By event id: the index of its stream, and its own index there.
    pub(crate) places: HashMap<u64, (usize, usize)>,
    pub(crate) opened: Opened,
    pub(crate) toggling: Toggling,
    pub(crate) overflow_signal: Option<OverflowSignal>,
    pub(crate) run_times: RunTimes,
    /// Waits for one event of each stream, and for what [`Sampler::watch`] added. It holds
    /// nothing open, so it may be closed before or after the events.
    pub(crate) waiter: OwnedFd,
    /// The signals to this process, if they are watched.
    pub(crate) signals: Option<OwnedFd>,
    /// Whether rings that fill do not end a wait: threads watch them.
    pub(crate) leaves_rings: bool,
}

/// Which threads each sample wakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SampleSignal {
    /// None.
    Off,
    /// Those that [watch](Sampler::signal_watches) rings.
    Watches,
    /// These, and the one that [waits](Sampler::wait).
    All,
}

/// One CPU's events and the ring they share.
#[derive(Debug)]
pub(crate) struct Stream {
    pub(crate) cpu: u32,
    /// A thread on that CPU may look at it, too.
    pub(crate) ring: Ring,
    /// The first one owns the ring. None is closed before the sampler is dropped, because a closed
    /// event loses the counts of its threads' children.
    pub(crate) events: Vec<StreamEvent>,
    /// The exit counters.
    pub(crate) exit_counters: ExitCounters,
    /// The event to wait for: the first whose threads have not all ended.
    pub(crate) waiting: usize,
}

/// An event of one thread on one CPU.
#[derive(Debug)]
pub(crate) struct StreamEvent {
    pub(crate) fd: OwnedFd,
    /// Its index among the opened events.
    pub(crate) number: usize,
}

impl Sampler {
    /// The opened events.
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// Whether all that runs on CPUs is sampled.
    pub fn is_cpu_wide(&self) -> bool {
        let mut events = self.opened.events.iter();
        events.any(|event| event.setup.scope == Scope::Cpu)
    }

    /// Number of rings: one for each CPU.
    pub fn rings(&self) -> usize {
        self.streams.len()
    }

    /// Starts sampling threads that are running already, unless it is to be off in the beginning.
    ///
    /// # Errors
    ///
    /// Never seen: when the kernel refuses all of a sudden.
    pub fn enable(&self) -> Result<(), Errno> {
        self.tracking().try_for_each(kernel::enable)?;
        match self.toggling {
            Toggling::BeginsDisabled => Ok(()),
            Toggling::Never | Toggling::BeginsEnabled => {
                self.sampling().try_for_each(kernel::enable)
            }
        }
    }

    /// Starts or stops sampling while the tracking of threads and mappings continues. This needs a
    /// [`Toggling`].
    ///
    /// # Errors
    ///
    /// As [`enable`](Self::enable).
    pub fn set_sampling(&self, on: bool) -> Result<(), Errno> {
        let set = if on { kernel::enable } else { kernel::disable };
        self.sampling().try_for_each(set)
    }

    /// Stops sampling and tracking. Remaining records can still be drained.
    pub fn disable(&self) {
        for event in self.sampling().chain(self.tracking()) {
            // A thread that has ended samples nothing any more.
            let _ = kernel::disable(event);
        }
    }

    /// Says which threads each sample wakes, besides the samples that fill a ring to its watermark.
    /// It costs the target 2 to 4 µs a sample. All threads that inherit an event share its signal:
    /// it cannot be enabled for some of them only. From then on, only this thread may call
    /// [`wait`](Self::wait).
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors.
    pub fn signal_each_overflow(&mut self, to: SampleSignal) -> io::Result<()> {
        let wakes_anyway = self.opened.wakes_with_each_record();
        let is_watched = (self.overflow_signal.as_ref()).is_some_and(|it| it.goes_to_watches());
        if !self.opened.can_signal_watches() || wakes_anyway && !is_watched {
            return Ok(());
        }
        let mut signal = self.take_overflow_signal()?;
        let set = signal.set(to != SampleSignal::Off, self.signalling());
        let to_watches = signal.goes_to_watches();
        self.overflow_signal = Some(signal);
        set?;
        let leaves_rings = to == SampleSignal::Watches && to_watches && !wakes_anyway;
        Ok(self.leave_rings(leaves_rings)?)
    }

    /// The signal, to be put back.
    fn take_overflow_signal(&mut self) -> io::Result<OverflowSignal> {
        if let Some(signal) = self.overflow_signal.take() {
            return Ok(signal);
        }
        let signal = OverflowSignal::begin(self.signalling())?;
        self.wait_for_overflow(&signal)?;
        Ok(signal)
    }

    /// The ring of each CPU, to be watched by a thread that runs there.
    pub fn cpu_rings(&self) -> Vec<CpuRing> {
        let rings = self.streams.iter();
        let watermark = self.opened.sizes.wakeup.into();
        let rings = rings.map(|stream| CpuRing::new(stream.cpu, &stream.ring, watermark));
        rings.collect()
    }

    /// From now on, sends the signal of each sample of a CPU, if
    /// [enabled](Self::signal_each_overflow), to the thread that watches its ring, instead of
    /// ending the wait: with each CPU, its thread.
    ///
    /// # Errors
    ///
    /// When there is no such thread, or the process has no more file descriptors.
    pub fn signal_watches(&mut self, watches: &[(u32, Tid)]) -> io::Result<()> {
        if !self.opened.can_signal_watches() {
            return Ok(());
        }
        let mut signal = self.take_overflow_signal()?;
        for &(cpu, tid) in watches {
            let streams = self.streams.iter().filter(|stream| stream.cpu == cpu);
            for event in streams.flat_map(|stream| &stream.events) {
                kernel::signal_thread(event.fd.as_fd(), tid, ThreadSignal::NUMBER)?;
            }
        }
        signal.leave_to_watches();
        self.overflow_signal = Some(signal);
        Ok(())
    }

    /// The counting events: those that sample, and the exit counters.
    fn sampling(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let exit_counters = self
            .streams
            .iter()
            .flat_map(|stream| stream.exit_counters.events());
        exit_counters
            .map(AsFd::as_fd)
            .chain(self.events_that(|setup| !setup.only_tracks()))
    }

    /// The events whose samples are signalled. Where each record wakes, Linux 6.10 signals all
    /// records of such an event: not those of switches, which the woken threads cause.
    fn signalling(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.events_that(|setup| !setup.only_tracks() && !setup.only_switches())
    }

    fn tracking(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.events_that(|setup| setup.only_tracks())
    }

    fn events_that(
        &self,
        wanted: fn(&Setup) -> bool,
    ) -> impl Iterator<Item = BorrowedFd<'_>> + Clone {
        let is_wanted = move |event: &&StreamEvent| {
            let opened = self.opened.events.get(event.number);
            opened.is_some_and(|opened| wanted(&opened.setup))
        };
        let events = self.events().filter(is_wanted);
        events.map(|event| event.fd.as_fd())
    }

    /// Passes on the records in the rings, with the index of the ring of each record.
    pub fn drain(&mut self, mut each: impl FnMut(usize, &[u8])) -> Drained {
        let mut total = Drained::default();
        for (number, stream) in self.streams.iter_mut().enumerate() {
            let drained = stream.ring.drain(|record| each(number, record));
            total.bytes += drained.bytes;
            total.corrupt |= drained.corrupt;
            let exits = &mut stream.exit_counters;
            exits.drain(number, &mut self.run_times, |record| each(number, record));
        }
        let streams = &self.streams;
        self.run_times.report(|number, record| {
            if (streams.get(number)).is_some_and(|stream| stream.exit_counters.rename(record)) {
                each(number, record);
            }
        });
        total
    }

    /// Gives the event of this id, and those that inherit it from now on, another period.
    ///
    /// # Errors
    ///
    /// When the kernel refuses, as it does when the period is out of bounds.
    pub fn set_period(&self, id: u64, period: u64) -> Result<(), Errno> {
        match self.event(id) {
            Some(event) => kernel::set_period(event, period),
            None => Ok(()),
        }
    }

    /// The count of each event, including events inherited from it, by the event's id.
    pub fn counts(&self) -> Vec<(u64, u64)> {
        let exit_counters = self.streams.iter().map(|stream| &stream.exit_counters);
        let reported: HashMap<u64, u64> = exit_counters.flat_map(ExitCounters::counts).collect();
        let count = |id| {
            reported
                .get(&id)
                .copied()
                .or_else(|| kernel::count(self.event(id)?))
        };
        let ids = self.opened.ids().map(|&(id, _)| id);
        ids.filter_map(|id| Some((id, count(id)?))).collect()
    }

    fn event(&self, id: u64) -> Option<BorrowedFd<'_>> {
        let &(stream, event) = self.places.get(&id)?;
        let event = self.streams.get(stream)?.events.get(event)?;
        Some(event.fd.as_fd())
    }

    /// Samples, and other records, that were lost because a ring was full, if the kernel counts
    /// them (Linux 6.0): including those that no later record reports.
    pub fn lost(&self) -> u64 {
        let lost = |event: &StreamEvent| {
            let opened = self.opened.events.get(event.number)?;
            kernel::lost(event.fd.as_fd(), &opened.setup)
        };
        self.events().filter_map(lost).sum()
    }

    fn events(&self) -> impl Iterator<Item = &StreamEvent> + Clone {
        self.streams.iter().flat_map(|stream| &stream.events)
    }
}
