//! The thread that drains the rings, and decides when recording ends.

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::Signals;
use prof_events::system::{self, Ahead};
use prof_model::Pid;

use crate::backlog::{Backlog, Batch, CUT_STACK, Pressure, ReaderCounts, Room};
use crate::deep::DeepStacks;
use crate::error::Error;
use crate::haste::Haste;
use crate::launch;
use crate::layout::{self, Layouts, SwitchPart};
use crate::lives::Lives;
use crate::nearby::Nearby;
use crate::options::{Course, Delay, Target};
use crate::sleepers::Sleepers;
use crate::source::Source;
use crate::steering::{Running, Steering};

/// Drains the rings into the backlog.
pub(crate) struct Reader<'a> {
    source: Source,
    /// Where stacks are in samples.
    layouts: Layouts,
    /// Whether stacks are read on beyond the kernel's copy.
    read_on: bool,
    deep: DeepStacks,
    nearby: Nearby,
    haste: Haste,
    backlog: &'a Backlog,
    counts: ReaderCounts,
    /// Varies the periods, where they are ours.
    lives: Option<Lives>,
    /// Looks at threads that sleep, where the kernel tells of none.
    sleepers: Option<Sleepers>,
    /// When sampling was switched on or off, until the session is told.
    switches: Vec<(bool, u64)>,
    /// What may have run before it was sampled, until it was looked at.
    earlier: Option<&'a Target>,
    /// When the rings were last looked at.
    last: Instant,
    /// Whether the last pass found anything: then another must follow for the order of time.
    found: bool,
}

/// How recording ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How the command ended, if there is one and it has.
    pub(crate) exit: Option<ExitStatus>,
    /// The signal that ended it, if one did.
    pub(crate) stopped_by: Option<i32>,
    /// How long it took.
    pub(crate) duration: Duration,
    /// Records that found a ring full, by the kernel's own count if it has one.
    pub(crate) lost: u64,
    /// What each event counted, by its id.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(
        source: Source,
        read_on: bool,
        sleepers: Option<Sleepers>,
        earlier: &'a Target,
        backlog: &'a Backlog,
    ) -> Self {
        Self {
            layouts: Layouts::new(source.opened()),
            haste: Haste::new(source.opened(), Instant::now()),
            lives: source.opened().pace().map(Lives::new),
            sleepers,
            switches: Vec::new(),
            earlier: Some(earlier),
            last: Instant::now(),
            source,
            read_on,
            deep: DeepStacks::default(),
            nearby: Nearby::new(),
            backlog,
            counts: ReaderCounts::default(),
            found: false,
        }
    }

    /// Lets the target go with `start`, then drains until recording ends: because the target did,
    /// the time is over, or a signal came. Closes the backlog however it ends.
    pub(crate) fn run(
        mut self,
        start: impl FnOnce(&mut Source) -> Result<Running, Error>,
        signals: &Signals,
        course: &Course,
    ) -> Result<Outcome, Error> {
        let backlog = self.backlog;
        let _closing = Closing(backlog);
        // Before anything is sampled: the rings do not hold for long.
        system::raise_thread_priority(Ahead::OfThese);
        if course.delay != Delay::None {
            self.switches.push((false, system::monotonic_now()));
        }
        let running = start(&mut self.source)?;
        let begin = Instant::now();
        let mut steering = Steering::new(running, course, signals, begin);
        steering.watch(&mut self.source).map_err(refused)?;
        // Who sleeps already does so from here on.
        self.pass();
        while !self.step(&mut steering)? {}
        self.source.end();
        self.pass();
        // What was recorded is written while we wait for a command that takes its time to end.
        backlog.close();
        system::lower_thread_priority();
        let duration = begin.elapsed();
        Ok(Outcome {
            lost: self.source.lost(),
            counts: self.source.counts(),
            exit: steering.wait_for_command().map_err(refused)?,
            stopped_by: steering.stopped_by(),
            duration,
        })
    }

    /// Waits, drains, and looks whether recording ends here.
    fn step(&mut self, steering: &mut Steering<'_>) -> Result<bool, Error> {
        let mut patience = steering.patience(self.found);
        if let Some(soon) = self.lives.as_ref().and_then(Lives::patience) {
            patience = patience.min(soon);
        }
        let wake = self.source.wait(patience).map_err(refused)?;
        self.pause();
        self.pass();
        if let Some(lives) = &mut self.lives {
            lives.vary(|id, period| self.source.set_period(id, period));
        }
        let failed = self.backlog.is_given_up();
        if failed {
            steering.terminate();
        }
        let over = steering.is_over(&mut self.source, wake.all_ended)?;
        self.switches.extend(steering.take_switches());
        if steering.take_switch() {
            self.backlog.ask_to_switch(system::monotonic_now());
        }
        Ok(over || failed)
    }

    /// Where the ring wakes us with each record, lets a few come together.
    fn pause(&mut self) {
        const SHORTEST: Duration = Duration::from_micros(200);
        if let Some(sleepers) = &self.sleepers {
            if sleepers.are_urgent() {
                thread::sleep(SHORTEST.saturating_sub(self.last.elapsed()));
                self.last = Instant::now();
            }
            return;
        }
        let now = Instant::now();
        if self.backlog.take_haste() {
            self.haste.needed(now);
        }
        if let Some(nap) = self.haste.nap(now) {
            thread::sleep(match &self.lives {
                Some(lives) => lives.shortened(nap),
                None => nap,
            });
        }
    }

    /// Adds records of when sampling was switched on or off.
    fn tell_switches(&mut self, batch: &mut Batch) {
        let Some(&(id, _)) = self.source.opened().ids().next() else {
            return;
        };
        for (on, time) in self.switches.drain(..) {
            if let Some(sleepers) = &mut self.sleepers {
                sleepers.switch(on);
            }
            let switch = SwitchPart {
                pid: std::process::id() as Pid,
                tid: layout::SAMPLING,
                time,
                cpu: 0,
                out: !on,
                preempted: false,
            };
            batch.push(|bytes| layout::append_switch(bytes, &switch, id));
        }
    }

    /// One pass over all rings.
    fn pass(&mut self) {
        let (mut batch, room) = self.backlog.start();
        self.tell_switches(&mut batch);
        if let Some(sleepers) = &mut self.sleepers {
            let earlier = self.earlier.take().map(launch::threads_now);
            sleepers.begin(&earlier.unwrap_or_default(), &mut batch);
        }
        let Self {
            source,
            layouts,
            read_on,
            deep,
            nearby,
            counts,
            lives,
            sleepers,
            ..
        } = self;
        let mut take = Take {
            layouts,
            deep: read_on.then_some((&mut *deep, &mut *nearby)),
            lives: lives.as_mut(),
            sleepers: sleepers.as_mut(),
            counts,
        };
        let drained = source.drain(|_, record| take.record(record, &mut batch, &room));
        if let Some(sleepers) = sleepers
            && room.pressure(&batch) == Pressure::Low
        {
            sleepers.look(deep, &mut batch);
        }
        nearby.settle();
        self.counts.corrupt += u64::from(drained.corrupt);
        let found = !batch.is_empty();
        // Once after the last find, an empty batch tells that all before it is complete.
        if found || self.found {
            batch.counts = self.counts;
            self.backlog.push(batch);
        } else {
            self.backlog.return_unused(batch);
        }
        self.found = found;
    }
}

/// Takes records from the rings into a batch.
struct Take<'a> {
    layouts: &'a Layouts,
    deep: Option<(&'a mut DeepStacks, &'a mut Nearby)>,
    lives: Option<&'a mut Lives>,
    sleepers: Option<&'a mut Sleepers>,
    counts: &'a mut ReaderCounts,
}

impl Take<'_> {
    fn record(&mut self, record: &[u8], batch: &mut Batch, room: &Room) {
        let sample = layout::kind(record) == Some(layout::RECORD_SAMPLE);
        let pressure = room.pressure(batch);
        if sample && pressure == Pressure::Full {
            self.counts.dropped += 1;
            return;
        }
        let stands_for = match &mut self.lives {
            Some(lives) if sample => match lives.keep(record) {
                None => return,
                kept => kept,
            },
            Some(lives) => {
                lives.notice(record);
                None
            }
            None => None,
        };
        if let Some(sleepers) = self.sleepers.as_mut().filter(|_| !sample) {
            sleepers.notice(record);
        }
        let stack = sample.then(|| self.layouts.stack(record)).flatten();
        let Some(stack) = stack else {
            batch.push(|bytes| bytes.extend_from_slice(record));
            weigh(batch.last_mut(), stands_for);
            return;
        };
        let limit = match pressure {
            Pressure::Low | Pressure::Raised => usize::MAX,
            Pressure::High | Pressure::Full => CUT_STACK,
        };
        self.counts.cut += u64::from(stack.copied > limit);
        batch.push(|bytes| layout::append_shortened(bytes, record, stack, limit));
        weigh(batch.last_mut(), stands_for);
        // Under pressure the live target is asked later, when the stack is unwound, which comes
        // too late for some: those count as truncated or stale, not as cut.
        if let Some((deep, nearby)) = &mut self.deep
            && stack.is_full()
            && pressure == Pressure::Low
        {
            batch.push_beyond(|bytes| deep.read(&stack, bytes));
            if let Some(cpu) = layout::cpu(record) {
                nearby.deep_stack(cpu);
            }
        }
    }
}

fn weigh(sample: &mut [u8], stands_for: Option<u64>) {
    if let Some(period) = stands_for {
        layout::set_period(sample, period);
    }
}

pub(crate) fn refused(source: io::Error) -> Error {
    Error::Sampling { source }
}

/// Closes the backlog when the reader is done with it, even by an error.
struct Closing<'a>(&'a Backlog);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
