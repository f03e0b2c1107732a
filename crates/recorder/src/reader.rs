//! The thread that drains the rings, and decides when recording ends.

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead};
use prof_events::{Signals, Wake};
use prof_model::Pid;

use crate::backlog::{Backlog, Batch, CUT_STACK, Pressure, ReaderCounts, Room};
use crate::deep::DeepStacks;
use crate::error::Error;
use crate::haste::{Haste, Telling};
use crate::launch;
use crate::layout::{self, Layouts, StackPart, SwitchPart};
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
    telling: Telling,
    /// Whether each sample is looked at as soon as it comes.
    at_once: bool,
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
    /// How many samples the last pass brought.
    samples: usize,
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
    /// When sampling ended, by the clock of the records.
    pub(crate) ended: u64,
    /// Records that found a ring full, by the kernel's own count if it has one.
    pub(crate) lost: u64,
    /// What each event counted, by its id.
    pub(crate) counts: Vec<(u64, u64)>,
}

impl<'a> Reader<'a> {
    /// Percent of the backlog: from here on the session cannot be sure to keep up.
    const MANY: usize = 12;

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
            telling: Telling::new(source.opened()),
            lives: source.opened().pace().map(Lives::new),
            sleepers,
            switches: Vec::new(),
            earlier: Some(earlier),
            last: Instant::now(),
            source,
            read_on,
            deep: DeepStacks::default(),
            nearby: Nearby::new(),
            at_once: true,
            backlog,
            counts: ReaderCounts::default(),
            samples: 0,
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
        let ended = system::monotonic_now();
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
            ended,
        })
    }

    /// Waits, drains, and looks whether recording ends here.
    fn step(&mut self, steering: &mut Steering<'_>) -> Result<bool, Error> {
        let mut patience = steering.patience(self.found);
        if let Some(soon) = self.lives.as_ref().and_then(Lives::patience) {
            patience = patience.min(soon);
        }
        let wake = self.wait(patience).map_err(refused)?;
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

    /// Waits for the next sample, or until some have come together, if there is time for that.
    fn wait(&mut self, patience: Duration) -> io::Result<Wake> {
        if let Some(sleepers) = &self.sleepers {
            let urgent = sleepers.are_urgent();
            return self.wait_beside_sleepers(urgent, patience);
        }
        let now = Instant::now();
        if self.backlog.take_haste() {
            self.haste.needed(now);
        }
        let many = self.backlog.percent_full() >= Self::MANY;
        let nap = self.haste.nap(now, many);
        self.at_once = nap.is_none();
        let Some(nap) = nap else {
            self.source.tell_of_samples(true)?;
            return self.source.wait(patience);
        };
        let nap = (self.lives.as_ref()).map_or(nap, |lives| lives.shortened(nap));
        let tell = self.telling.is_wanted_after(self.samples);
        self.source.tell_of_samples(tell)?;
        if !tell {
            // Others will come meanwhile. Should they be so many that a ring fills, that ends it.
            return self.source.wait(nap);
        }
        let wake = self.source.wait(patience)?;
        thread::sleep(nap);
        Ok(wake)
    }

    /// Waits for the next record, if threads that sleep are looked at.
    fn wait_beside_sleepers(&mut self, urgent: bool, patience: Duration) -> io::Result<Wake> {
        const SHORTEST: Duration = Duration::from_micros(200);
        self.source.tell_of_samples(true)?;
        let wake = self.source.wait(patience)?;
        if urgent {
            // The ring wakes us with each: lets a few come together.
            thread::sleep(SHORTEST.saturating_sub(self.last.elapsed()));
            self.last = Instant::now();
        }
        Ok(wake)
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
            at_once,
            counts,
            lives,
            sleepers,
            ..
        } = self;
        deep.begin_pass();
        let mut take = Take {
            layouts,
            deep: read_on.then_some(&mut *deep),
            nearby: (*at_once).then_some(&mut *nearby),
            lives: lives.as_mut(),
            sleepers: sleepers.as_mut(),
            counts,
            samples: 0,
        };
        let drained = source.drain(|_, record| take.record(record, &mut batch, &room));
        self.samples = take.samples;
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
    deep: Option<&'a mut DeepStacks>,
    /// If each sample is looked at at once.
    nearby: Option<&'a mut Nearby>,
    lives: Option<&'a mut Lives>,
    sleepers: Option<&'a mut Sleepers>,
    counts: &'a mut ReaderCounts,
    samples: usize,
}

impl Take<'_> {
    fn record(&mut self, record: &[u8], batch: &mut Batch, room: &Room) {
        let sample = layout::kind(record) == Some(layout::RECORD_SAMPLE);
        self.samples += usize::from(sample);
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
        if let Some(deep) = &mut self.deep
            && stack.is_full()
            && pressure == Pressure::Low
        {
            read_on(deep, &stack, batch);
            if let Some(nearby) = &mut self.nearby
                && let (Some(cpu), Some(time)) = (layout::cpu(record), layout::time(record))
            {
                if nearby.came_next(cpu, time) {
                    batch.note_standstill();
                }
                nearby.deep_stack(cpu);
            }
        }
    }
}

/// Adds what lies beyond the copy of the last sample's stack.
fn read_on(deep: &mut DeepStacks, stack: &StackPart, batch: &mut Batch) {
    if let Some((beyond, at)) = deep.read_in_pass(stack) {
        batch.share_beyond(beyond, at);
    } else if let Some((beyond, at)) = batch.push_beyond(|bytes| deep.read(stack, bytes)) {
        deep.share_in_pass(stack.pid, beyond, at);
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
