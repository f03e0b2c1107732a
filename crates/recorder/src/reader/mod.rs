//! The thread that drains the rings, and decides when recording ends.

pub(crate) mod batch_filler;
mod batch_sender;
pub(crate) mod context_pin;
pub(crate) mod drain;
pub(crate) mod short_threads;
mod sleep;
mod stack_evidence;
pub(crate) mod wakeup;
mod watchers;

use std::process::ExitStatus;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead};
use prof_events::{AllowedCpus, Signals};
use prof_perfdata::RecordFormat;

use crate::error::Error;
use crate::lifecycle::launch;
use crate::lifecycle::{RecordingControl, Running};
use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::readings::LiveReadings;
use crate::live::stack_tail::TailReader;
use crate::offcpu::blocked_threads::{BlockedThreadSampler, LiveReads};
use crate::options::{Delay, ResourceLimits, Schedule, Target};
use crate::queue::batch::Batch;
use crate::queue::message::{Message, MessageKind};
use crate::queue::pressure::Pressure;
use crate::queue::record_queue::RecordQueue;
use crate::reader::batch_filler::BatchFiller;
use crate::reader::batch_sender::BatchSender;
use crate::reader::short_threads::PeriodRandomizer;
use crate::reader::sleep::ReaderSleep;
use crate::reader::wakeup::PassSummary;
use crate::reader::watchers::{WatcherSettings, Watchers};
use crate::source::Source;
use crate::summary::Wakeups;

/// Drains the rings into the queue.
pub(crate) struct Reader<'a> {
    source: Source,
    /// The format of the records in the rings.
    format: RecordFormat,
    target_memory: TargetMemory,
    watchers: WatcherState,
    sleep: ReaderSleep,
    sender: BatchSender<'a>,
    /// Varies the periods, if prof chooses them.
    period_randomizer: Option<PeriodRandomizer>,
    /// Samples blocked threads, if the kernel samples no waits.
    blocked_threads: Option<BlockedThreadSampler>,
    /// When sampling was enabled or disabled, until the session knows.
    toggles: Vec<Message>,
    /// The target that may have run before sampling, until it was examined.
    earlier: Option<&'a Target>,
}

/// What is read of the live target.
struct TargetMemory {
    /// What watchers read.
    readings: Arc<LiveReadings>,
    /// Whether stack tails are read.
    reads_tails: bool,
    tails: TailReader,
    /// For blocked threads.
    interpreters: InterpreterReader,
}

/// Whether there are watchers.
enum WatcherState {
    /// Not yet: they are started once stacks or interpreters need them, on these CPUs, where
    /// threads of this process may run.
    NotNeeded(Option<AllowedCpus>),
    Running(Watchers),
    /// They cannot be started, or have ended.
    None,
}

/// How recording ended.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// How the command ended, if there is one that has ended.
    pub(crate) exit: Option<ExitStatus>,
    /// The signal that ended it, if one did.
    pub(crate) stopped_by: Option<i32>,
    /// Whether it ended because the command did, without a request to end.
    pub(crate) ended_with_command: bool,
    /// Whether the command was left running.
    pub(crate) left_running: bool,
    /// Whether sampling was ever enabled.
    pub(crate) was_enabled: bool,
    /// How long it took.
    pub(crate) duration: Duration,
    /// When sampling ended, by the clock of the records.
    pub(crate) ended: u64,
    /// Lost records, by the kernel's own count if it has one.
    pub(crate) lost: u64,
    /// The name of a program that ran without its privileges, if one did.
    pub(crate) unprivileged: Option<Box<str>>,
    /// The count of each event, by its id.
    pub(crate) counts: Vec<(u64, u64)>,
    /// How often the reader woke, by reason.
    pub(crate) wakeups: Wakeups,
}

/// The input of the reader.
pub(crate) struct ReaderInput<'a> {
    pub(crate) source: Source,
    /// The format of the records in the rings.
    pub(crate) format: RecordFormat,
    /// Whether stack tails are read.
    pub(crate) read_tail: bool,
    /// Limits on resources; `None`: as much as whole stacks need.
    pub(crate) limits: Option<ResourceLimits>,
    pub(crate) blocked_threads: Option<BlockedThreadSampler>,
    /// What is read of the live target.
    pub(crate) live: Arc<LiveReadings>,
    /// The target that may have run before sampling.
    pub(crate) target: &'a Target,
}

impl<'a> Reader<'a> {
    /// How long the kernel may take from a sample's time to its record in the ring, in nanoseconds.
    const WRITING: u64 = 10_000_000;

    pub(crate) fn new(input: ReaderInput<'a>, queue: &'a RecordQueue) -> Self {
        let ReaderInput {
            source,
            format,
            read_tail,
            limits,
            blocked_threads,
            live,
            target,
        } = input;
        let can_watch = matches!(source, Source::Rings(_)) && source.opened().can_signal_watches();
        let tail_limit = limits.map_or(TailReader::USUAL_LIMIT, |_| TailReader::SMALL_LIMIT);
        Self {
            format,
            sleep: ReaderSleep::new(source.opened(), limits.map(|limits| limits.poll_interval)),
            period_randomizer: source.opened().sample_period().map(PeriodRandomizer::new),
            blocked_threads,
            toggles: Vec::new(),
            earlier: Some(target),
            source,
            target_memory: TargetMemory {
                interpreters: InterpreterReader::new(Arc::clone(&live)),
                readings: live,
                reads_tails: read_tail,
                tails: TailReader::new(tail_limit),
            },
            watchers: match can_watch {
                true => WatcherState::NotNeeded(AllowedCpus::of_this_thread()),
                false => WatcherState::None,
            },
            sender: BatchSender::new(queue),
        }
    }

    /// Starts the target with `start`, then drains until recording ends: because the target has
    /// ended, the time is over, or a signal came. Closes the queue in any case.
    pub(crate) fn run(
        mut self,
        start: impl FnOnce(&mut Source) -> Result<Running, Error>,
        signals: &Signals,
        schedule: &Schedule,
    ) -> Result<Outcome, Error> {
        let queue = self.sender.queue;
        let _closing = Closing(queue);
        // Before sampling starts: the rings soon fill up.
        system::raise_thread_priority(Ahead::OfThese);
        if schedule.delay != Delay::None {
            self.toggles.push(Message {
                time: system::monotonic_now(),
                what: MessageKind::Disabled,
            });
        }
        let running = start(&mut self.source)?;
        let begin = Instant::now();
        let mut control = RecordingControl::new(running, schedule, signals, begin);
        control.watch(&mut self.source).map_err(Error::sampling)?;
        // Threads that are blocked already count as blocked from here on.
        self.pass();
        while !self.step(&mut control)? {}
        self.source.end();
        self.watchers = WatcherState::None;
        let ended = system::monotonic_now();
        self.pass();
        // The session writes its records while we wait for a command that is slow to end.
        queue.close();
        system::lower_thread_priority();
        let duration = begin.elapsed();
        Ok(Outcome {
            lost: self.source.lost(),
            unprivileged: self.source.unprivileged(),
            counts: self.source.counts(),
            exit: control.wait_for_command().map_err(Error::sampling)?,
            ended_with_command: control.ended_with_command(),
            stopped_by: control.stopped_by(),
            left_running: control.left_running(),
            was_enabled: control.was_enabled(),
            duration,
            ended,
            wakeups: self.sleep.wakeups,
        })
    }

    /// Waits, drains, and checks whether recording ends.
    fn step(&mut self, control: &mut RecordingControl<'_>) -> Result<bool, Error> {
        let mut timeout = control.timeout();
        if let Some(soon) = self
            .period_randomizer
            .as_ref()
            .and_then(PeriodRandomizer::timeout)
        {
            timeout = timeout.min(soon);
        }
        let has_interpreters = self.target_memory.readings.has_interpreters();
        let plan = self.sleep.plan(self.sender.queue, has_interpreters);
        if (plan.tails || has_interpreters) && self.start_watchers() {
            // For samples that came meanwhile.
            self.pass();
        }
        let wants_each =
            (self.blocked_threads.as_ref()).is_some_and(BlockedThreadSampler::are_urgent);
        let plan = plan.at_most(timeout).or_each_if(wants_each);
        let wake = (self.sleep)
            .wait(plan, &mut self.source, self.watchers.running())
            .map_err(Error::sampling)?;
        if self.pass().interpreters {
            // The session looks for the interpreter once another pass has shown the order of its
            // records.
            self.pass();
            self.start_watchers();
        }
        if let Some(period_randomizer) = &mut self.period_randomizer {
            period_randomizer.vary(|id, period| self.source.set_period(id, period));
        }
        let failed = self.sender.queue.is_given_up();
        if failed {
            control.terminate();
        }
        let over = control.is_over(&mut self.source, wake.all_ended)?;
        self.toggles.extend(control.take_toggles());
        if control.take_rotation() {
            self.rotate();
        }
        Ok(over || failed)
    }

    /// Makes the session continue in another file.
    fn rotate(&mut self) {
        self.sender.rotate();
        // Samples of the time before should soon be in the first file.
        self.sleep.policy.changed(Instant::now());
    }

    /// Reports when sampling was enabled or disabled.
    fn report_toggles(&mut self, batch: &mut Batch) {
        for message in self.toggles.drain(..) {
            if let Some(blocked_threads) = &mut self.blocked_threads {
                blocked_threads.set_enabled(message.what == MessageKind::Enabled);
            }
            batch.push_message(message);
        }
    }

    /// Starts the watchers, and returns true, unless they run already. If they cannot start, each
    /// sample wakes this thread for its stack, and stacks lack their interpreted frames, and are
    /// marked.
    fn start_watchers(&mut self) -> bool {
        let WatcherState::NotNeeded(home) = self.watchers else {
            return false;
        };
        let settings = WatcherSettings {
            format: self.format.clone(),
            tail_limit: self.target_memory.tails.limit(),
            shortest: self.sleep.policy.shortest(),
        };
        let readings = &self.target_memory.readings;
        self.watchers = match Watchers::start(&mut self.source, settings, readings, home) {
            Ok(watchers) => WatcherState::Running(watchers),
            Err(_) => WatcherState::None,
        };
        true
    }

    /// One pass over all rings.
    fn pass(&mut self) -> PassSummary {
        let (mut batch, space) = self.sender.begin();
        self.report_toggles(&mut batch);
        if let Some(blocked_threads) = &mut self.blocked_threads {
            let earlier = self.earlier.take().map(launch::threads_now);
            blocked_threads.begin(&earlier.unwrap_or_default(), &mut batch);
        }
        let Self {
            source,
            format,
            target_memory,
            sender,
            period_randomizer,
            blocked_threads,
            sleep,
            watchers,
            ..
        } = self;
        let TargetMemory {
            readings,
            reads_tails,
            tails,
            interpreters,
        } = target_memory;
        let has_watchers = watchers.running().is_some();
        tails.begin_pass();
        let mut take = BatchFiller {
            format,
            tail_reader: reads_tails.then_some(&mut *tails),
            live: readings,
            period_randomizer: period_randomizer.as_mut(),
            blocked_threads: blocked_threads.as_mut(),
            counts: &mut sender.counts,
            summary: PassSummary::default(),
            races_watchers: sleep.races_watchers,
        };
        let drained = source.drain(|_, record| take.record(record, &mut batch, &space));
        let mut summary = take.summary;
        if has_watchers {
            readings.forget_before(batch.begun.saturating_sub(Self::WRITING));
        }
        summary.refused = tails.refused();
        if let Some(blocked_threads) = blocked_threads
            && space.pressure(&batch) == Pressure::Low
        {
            let mut read = LiveReads {
                tail: &mut |copy, out| tails.read(copy, out),
                // Its next switch shows whether it was blocked until the end of that.
                interpreted: &mut |thread| interpreters.read(thread, SinceSample::Stopped),
            };
            summary.blocked = blocked_threads.sample(&mut read, &mut batch);
        }
        self.sender.counts.corrupt += u64::from(drained.corrupt);
        let now = Instant::now();
        self.sleep.policy.pass_ended(summary, now);
        let at_once = self.sleep.policy.unwinds_at_once(summary, now);
        self.sender.send(batch, at_once);
        summary
    }
}

impl WatcherState {
    fn running(&self) -> Option<&Watchers> {
        match self {
            Self::Running(watchers) => Some(watchers),
            Self::NotNeeded(_) | Self::None => None,
        }
    }
}

/// Closes the queue when the reader is done, even after an error.
struct Closing<'a>(&'a RecordQueue);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}
