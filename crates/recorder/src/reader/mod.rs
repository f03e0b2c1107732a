//! The thread that drains the rings, and decides when recording ends.

pub(crate) mod affinity;
pub(crate) mod context_pin;
pub(crate) mod drain;
pub(crate) mod short_threads;
pub(crate) mod stack_tail;
pub(crate) mod wakeup;

use std::io;
use std::process::ExitStatus;
use std::thread;
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead};
use prof_events::{Signals, Wake};
use prof_perfdata::{Record, RecordFormat, Sample, encode};

use crate::error::Error;
use crate::launch;
use crate::lifecycle::{RecordingControl, Running};
use crate::offcpu::blocked_threads::BlockedThreadSampler;
use crate::options::{Delay, Schedule, Target};
use crate::queue::message::{Known, Message};
use crate::queue::record_queue::{Batch, CUT_STACK, Pressure, ReaderCounts, RecordQueue, Room};
use crate::reader::affinity::ReaderAffinity;
use crate::reader::short_threads::PeriodRandomizer;
use crate::reader::stack_tail::{StackCopy, TailReader};
use crate::reader::wakeup::{OverflowSignalPolicy, WakeupPolicy};
use crate::source::Source;

/// Drains the rings into the backlog.
pub(crate) struct Reader<'a> {
    source: Source,
    /// Where stacks are in samples.
    /// Of the records in the rings.
    format: RecordFormat,
    /// Whether stacks are read on beyond the kernel's copy.
    read_tail: bool,
    tail_reader: TailReader,
    affinity: ReaderAffinity,
    wakeup_policy: WakeupPolicy,
    overflow_signal: OverflowSignalPolicy,
    /// Whether each sample is looked at as soon as it comes.
    at_once: bool,
    queue: &'a RecordQueue,
    counts: ReaderCounts,
    /// Varies the periods, where they are ours.
    period_randomizer: Option<PeriodRandomizer>,
    /// Looks at threads that sleep, where the kernel tells of none.
    blocked_threads: Option<BlockedThreadSampler>,
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

/// What is read.
pub(crate) struct Input<'a> {
    pub(crate) source: Source,
    /// Of the records in the rings.
    pub(crate) format: RecordFormat,
    /// Whether stacks that go on beyond the kernel's copy are read on.
    pub(crate) read_tail: bool,
    pub(crate) blocked_threads: Option<BlockedThreadSampler>,
    /// What may have run before it was sampled.
    pub(crate) target: &'a Target,
}

impl<'a> Reader<'a> {
    /// Percent of the backlog: from here on the session cannot be sure to keep up.
    const MANY: usize = 12;

    pub(crate) fn new(input: Input<'a>, queue: &'a RecordQueue) -> Self {
        let Input {
            source,
            format,
            read_tail,
            blocked_threads,
            target,
        } = input;
        Self {
            format,
            wakeup_policy: WakeupPolicy::new(source.opened(), Instant::now()),
            overflow_signal: OverflowSignalPolicy::new(source.opened()),
            period_randomizer: source.opened().sample_period().map(PeriodRandomizer::new),
            blocked_threads,
            switches: Vec::new(),
            earlier: Some(target),
            last: Instant::now(),
            source,
            read_tail,
            tail_reader: TailReader::default(),
            affinity: ReaderAffinity::new(),
            at_once: true,
            queue,
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
        schedule: &Schedule,
    ) -> Result<Outcome, Error> {
        let queue = self.queue;
        let _closing = Closing(queue);
        // Before anything is sampled: the rings do not hold for long.
        system::raise_thread_priority(Ahead::OfThese);
        if schedule.delay != Delay::None {
            self.switches.push((false, system::monotonic_now()));
        }
        let running = start(&mut self.source)?;
        let begin = Instant::now();
        let mut control = RecordingControl::new(running, schedule, signals, begin);
        control.watch(&mut self.source).map_err(refused)?;
        // Who sleeps already does so from here on.
        self.pass();
        while !self.step(&mut control)? {}
        self.source.end();
        let ended = system::monotonic_now();
        self.pass();
        // What was recorded is written while we wait for a command that takes its time to end.
        queue.close();
        system::lower_thread_priority();
        let duration = begin.elapsed();
        Ok(Outcome {
            lost: self.source.lost(),
            counts: self.source.counts(),
            exit: control.wait_for_command().map_err(refused)?,
            stopped_by: control.stopped_by(),
            duration,
            ended,
        })
    }

    /// Waits, drains, and looks whether recording ends here.
    fn step(&mut self, control: &mut RecordingControl<'_>) -> Result<bool, Error> {
        let mut timeout = control.timeout(self.found);
        if let Some(soon) = self
            .period_randomizer
            .as_ref()
            .and_then(PeriodRandomizer::timeout)
        {
            timeout = timeout.min(soon);
        }
        let wake = self.wait(timeout).map_err(refused)?;
        self.pass();
        if let Some(period_randomizer) = &mut self.period_randomizer {
            period_randomizer.vary(|id, period| self.source.set_period(id, period));
        }
        let failed = self.queue.is_given_up();
        if failed {
            control.terminate();
        }
        let over = control.is_over(&mut self.source, wake.all_ended)?;
        self.switches.extend(control.take_switches());
        if control.take_switch() {
            self.queue.ask_to_switch(system::monotonic_now());
        }
        Ok(over || failed)
    }

    /// Waits for the next sample, or until some have come together, if there is time for that.
    fn wait(&mut self, timeout: Duration) -> io::Result<Wake> {
        if let Some(blocked_threads) = &self.blocked_threads {
            let urgent = blocked_threads.are_urgent();
            return self.wait_for_records_and_blocked(urgent, timeout);
        }
        let now = Instant::now();
        if self.queue.take_wakeup_request() {
            self.wakeup_policy.needed(now);
        }
        let many = self.queue.percent_full() >= Self::MANY;
        let poll_interval = self.wakeup_policy.poll_interval(now, many);
        self.at_once = poll_interval.is_none();
        let Some(poll_interval) = poll_interval else {
            self.source.signal_each_overflow(true)?;
            return self.source.wait(timeout);
        };
        let poll_interval = (self.period_randomizer.as_ref())
            .map_or(poll_interval, |period_randomizer| {
                period_randomizer.shortened(poll_interval)
            });
        let tell = self.overflow_signal.is_wanted_after(self.samples);
        self.source.signal_each_overflow(tell)?;
        if !tell {
            // Others will come meanwhile. Should they be so many that a ring fills, that ends it.
            return self.source.wait(poll_interval);
        }
        let wake = self.source.wait(timeout)?;
        thread::sleep(poll_interval);
        Ok(wake)
    }

    /// Waits for the next record, if threads that sleep are looked at.
    fn wait_for_records_and_blocked(
        &mut self,
        urgent: bool,
        timeout: Duration,
    ) -> io::Result<Wake> {
        const SHORTEST: Duration = Duration::from_micros(200);
        self.source.signal_each_overflow(true)?;
        let wake = self.source.wait(timeout)?;
        if urgent {
            // The ring wakes us with each: lets a few come together.
            thread::sleep(SHORTEST.saturating_sub(self.last.elapsed()));
            self.last = Instant::now();
        }
        Ok(wake)
    }

    /// Says when sampling was enabled or disabled.
    fn report_toggles(&mut self, batch: &mut Batch) {
        for (on, time) in self.switches.drain(..) {
            if let Some(blocked_threads) = &mut self.blocked_threads {
                blocked_threads.switch(on);
            }
            let what = match on {
                true => Known::Enabled,
                false => Known::Disabled,
            };
            batch.push_message(Message { time, what });
        }
    }

    /// One pass over all rings.
    fn pass(&mut self) {
        let (mut batch, room) = self.queue.start();
        self.report_toggles(&mut batch);
        if let Some(blocked_threads) = &mut self.blocked_threads {
            let earlier = self.earlier.take().map(launch::threads_now);
            blocked_threads.begin(&earlier.unwrap_or_default(), &mut batch);
        }
        let Self {
            source,
            format,
            read_tail,
            tail_reader,
            affinity,
            at_once,
            counts,
            period_randomizer,
            blocked_threads,
            ..
        } = self;
        tail_reader.begin_pass();
        let mut take = BatchFiller {
            format,
            tail_reader: read_tail.then_some(&mut *tail_reader),
            affinity: (*at_once).then_some(&mut *affinity),
            period_randomizer: period_randomizer.as_mut(),
            blocked_threads: blocked_threads.as_mut(),
            counts,
            samples: 0,
        };
        let drained = source.drain(|_, record| take.record(record, &mut batch, &room));
        self.samples = take.samples;
        if let Some(blocked_threads) = blocked_threads
            && room.pressure(&batch) == Pressure::Low
        {
            blocked_threads.look(tail_reader, &mut batch);
        }
        affinity.apply();
        self.counts.corrupt += u64::from(drained.corrupt);
        let found = !batch.is_empty();
        // Once after the last find, an empty batch tells that all before it is complete.
        if found || self.found {
            batch.counts = self.counts;
            self.queue.push(batch);
        } else {
            self.queue.return_unused(batch);
        }
        self.found = found;
    }
}

/// Takes records from the rings into a batch.
struct BatchFiller<'a> {
    format: &'a RecordFormat,
    tail_reader: Option<&'a mut TailReader>,
    /// If each sample is looked at at once.
    affinity: Option<&'a mut ReaderAffinity>,
    period_randomizer: Option<&'a mut PeriodRandomizer>,
    blocked_threads: Option<&'a mut BlockedThreadSampler>,
    counts: &'a mut ReaderCounts,
    samples: usize,
}

impl BatchFiller<'_> {
    fn record(&mut self, bytes: &[u8], batch: &mut Batch, room: &Room) {
        match self.format.parse(bytes) {
            Ok(Record::Sample(sample)) => self.sample(bytes, &sample, batch, room),
            Ok(record) => {
                if let Some(period_randomizer) = &mut self.period_randomizer {
                    period_randomizer.notice(&record);
                }
                if let Some(blocked_threads) = &mut self.blocked_threads {
                    blocked_threads.notice(&record);
                }
                batch.push(|out| out.extend_from_slice(bytes));
            }
            // The session counts it.
            Err(_) => batch.push(|out| out.extend_from_slice(bytes)),
        }
    }

    fn sample(&mut self, bytes: &[u8], sample: &Sample<'_>, batch: &mut Batch, room: &Room) {
        self.samples += 1;
        let pressure = room.pressure(batch);
        if pressure == Pressure::Full {
            self.counts.dropped += 1;
            return;
        }
        let weight = match &mut self.period_randomizer {
            Some(period_randomizer) => match period_randomizer.keep(sample) {
                None => return,
                kept => kept,
            },
            None => None,
        };
        let limit = match pressure {
            Pressure::Low | Pressure::Raised => usize::MAX,
            Pressure::High | Pressure::Full => CUT_STACK,
        };
        let copied = sample.user_stack.map_or(0, |stack| stack.bytes.len());
        self.counts.cut += u64::from(copied > limit);
        batch.push(|out| encode::shortened(out, bytes, sample, limit));
        if let (Some(weight), Some(attr)) = (weight, self.format.attr(sample.event)) {
            attr.set_sample_period(batch.last_mut(), weight);
        }
        // Under pressure the live target is asked later, when the stack is unwound, which comes
        // too late for some: those count as truncated or stale, not as cut.
        if let Some(tail_reader) = &mut self.tail_reader
            && pressure == Pressure::Low
            && let Some(copy) = StackCopy::full(sample)
        {
            read_tail(tail_reader, &copy, batch);
            if let (Some(affinity), Some(cpu)) = (&mut self.affinity, sample.cpu) {
                affinity.deep_stack(cpu);
            }
        }
    }
}

/// Adds what lies beyond the copy of the last sample's stack.
fn read_tail(tail_reader: &mut TailReader, stack: &StackCopy, batch: &mut Batch) {
    if let Some((beyond, at)) = tail_reader.read_in_pass(stack) {
        batch.share_beyond(beyond, at);
    } else if let Some((beyond, at)) = batch.push_beyond(|bytes| tail_reader.read(stack, bytes)) {
        tail_reader.share_in_pass(stack.pid, beyond, at);
    }
}

pub(crate) fn refused(source: io::Error) -> Error {
    Error::Sampling { source }
}

/// Closes the backlog when the reader is done with it, even by an error.
struct Closing<'a>(&'a RecordQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
