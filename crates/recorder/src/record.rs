//! A whole recording, from opening the events to closing the file.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Instant;

use prof_events::{
    HeldCommand, Launcher, Opened, OpenedEvent, Request, Signals, Threads, Toggling, Weight,
};
use prof_model::{Budget, Pid, UnseenProcesses};
use prof_perfdata::{Attr, EventDescription, RecordFormat, WriteError};

use crate::coverage::CoverageTracker;
use crate::coverage::probes::ProbeCoverage;
use crate::error::Error;
use crate::lifecycle::Running;
use crate::lifecycle::launch::{self, Starting};
use crate::live::readings::LiveReadings;
use crate::offcpu::blocked_threads::BlockedThreadSampler;
use crate::options::{Delay, Options, ResourceLimits, Schedule, Target};
use crate::output::file::is_stdout;
use crate::output::output_files::OutputFiles;
use crate::queue::record_queue::RecordQueue;
use crate::reader::drain;
use crate::reader::{Outcome, Reader, ReaderInput};
use crate::session::duplicates::Duplicates;
use crate::session::events::SessionEvents;
use crate::session::finish::Finished;
use crate::session::read_budget::ReadBudget;
use crate::session::unwind::ChainBuilder;
use crate::session::{Session, SessionInput, Trackers};
use crate::settings::settings;
use crate::source::Source;
use crate::source::hotplug::Hotplug;
use crate::summary::{Summary, Wakeups};

/// Memory for samples that wait to be unwound.
const BUDGET: usize = 64 << 20;

/// Records by `options` until the target ends, the time is up, or a signal comes.
///
/// Nothing is started or written before everything that can be checked has been checked; an
/// existing file at `options.output` is kept with `.old` added to its name.
///
/// A signal from the terminal reaches a command directly, any other is passed on to it; the
/// recording ends with the command. Running processes are left running. After a signal when
/// sampling has ended, the remaining samples are written without unwinding.
///
/// # Errors
///
/// See [`Error`]. If it fails after recording has begun, the records so far are still written.
pub fn record(options: &Options, signals: &Signals) -> Result<Summary, Error> {
    if options.storage.rotation.is_some() && is_stdout(&options.output) {
        return Err(Error::OnePipe);
    }
    let launcher = launch::launcher(&options.target)?;
    let request = request(options, launcher.as_ref())?;
    let before = launch::children(&options.target, &BTreeSet::new());
    let source = Source::open(&request, options.backend, signals)?;
    if options.schedule.again > 0 && matches!(source, Source::Ptrace(_)) {
        return Err(Error::OnlyOnce);
    }
    let (source, command) = match (&options.target, launcher) {
        (Target::Command(program), Some(launcher)) if source.opened().excludes_children() => {
            if options.schedule.again > 0 {
                return Err(Error::OnlyFirstRun);
            }
            drop(source);
            let held = launch::hold(launcher, program, signals)?;
            let source = open_on_command(options, &held, request, signals)?;
            (source, Some(Starting::Command(held)))
        }
        (_, launcher) => (source, launcher.map(Starting::Launcher)),
    };
    let mut opened = source.opened().clone();
    let at_once = options.schedule.delay == Delay::None;
    let named = matches!(options.target, Target::Processes(_) | Target::Threads(_));
    let attached = at_once && named;
    let blocked_threads = BlockedThreadSampler::new(&mut opened, attached);
    let rings = descriptions(&opened)?;
    let format = RecordFormat::new(&rings)?;
    let live = source.live_readings();
    let mut session = session(options, &opened, &rings, Arc::clone(&live))?;
    let held = launch::held(&options.target, command, signals)?;
    if opened
        .events
        .iter()
        .any(|event| event.setup.spec.modifiers.kernel)
    {
        session.begin_kernel().map_err(writing(options))?;
    }
    if let Some(command) = &held {
        session
            .begin_command(command.pid())
            .map_err(writing(options))?;
    }
    if matches!(options.target, Target::Cpus(_)) {
        // Among this many, some will have ended before they can be examined once sampling begins.
        let running = launch::running(&options.target);
        session
            .begin_processes(&running)
            .map_err(writing(options))?;
    }
    let start = |source: &mut Source| start(options, held, source);
    let input = ReaderInput {
        source,
        format,
        read_tail: options.unwind,
        limits: options.limits,
        blocked_threads,
        live,
        target: &options.target,
    };
    let environment = Environment {
        options,
        signals,
        before: &before,
    };
    let recorded = run(&environment, input, session, start)?;
    summary(options, &opened, recorded)
}

/// Opens events that are not inherited on the command itself, which waits to call `exec`: it would
/// not get those of the thread that forks it.
fn open_on_command(
    options: &Options,
    held: &HeldCommand,
    request: Request,
    signals: &Signals,
) -> Result<Source, Error> {
    let request = Request {
        threads: Threads::UntilExec(held.pid()),
        ..request
    };
    Source::open(&request, options.backend, signals)
}

fn request(options: &Options, launcher: Option<&Launcher>) -> Result<Request, Error> {
    Ok(Request {
        threads: launch::threads(&options.target, launcher)?,
        groups: options.groups.clone(),
        user_chains: options.unwind,
        ring_bytes: options.ring_bytes,
        toggling: match &options.schedule {
            Schedule {
                delay: Delay::None,
                control: None,
                ..
            } => Toggling::Never,
            Schedule {
                delay: Delay::None, ..
            } => Toggling::BeginsEnabled,
            _ => Toggling::BeginsDisabled,
        },
    })
}

/// The events as the rings have them.
fn descriptions(opened: &Opened) -> Result<Vec<EventDescription>, prof_perfdata::Error> {
    let events = opened.events.iter().map(|event| {
        Ok(EventDescription {
            attr: Attr::parse(&event.setup.attr_bytes())?,
            name: name(event),
            ids: event.ids.iter().map(|&(id, _)| id).collect(),
        })
    });
    events.collect()
}

/// The event's name in the file.
fn name(event: &OpenedEvent) -> String {
    match event.setup.weight {
        Weight::Period => event.setup.spec.to_string(),
        // Modifiers say which code was probed, which does not matter for the weight.
        Weight::OffCpu | Weight::Blocked | Weight::Allocation { .. } => {
            event.setup.spec.name.clone()
        }
    }
}

fn session(
    options: &Options,
    opened: &Opened,
    rings: &[EventDescription],
    live: Arc<LiveReadings>,
) -> Result<Session, Error> {
    let (events, described) = SessionEvents::new(opened, rings, options.unwind)?;
    let output = OutputFiles::create(options, described, settings(opened, options))?;
    let trackers = Trackers {
        duplicates: Duplicates::new(opened.ids(), &opened.late),
        lifetimes: CoverageTracker::new(opened, covered_event(opened)),
        probes: ProbeCoverage::new(opened),
        hotplug: Hotplug::new(&opened.cpus, &options.target),
    };
    let names = options.limits.map(|limits| limits.names);
    let budget = Budget::new(names.unwrap_or(ResourceLimits::USUAL_NAMES));
    let reading = ReadBudget::new(Instant::now());
    Ok(Session::new(SessionInput {
        events,
        output,
        trackers,
        chain_builder: ChainBuilder::new(
            options.limits.map(|limits| limits.memory),
            options
                .storage
                .streaming
                .as_ref()
                .map(|it| it.names.clone()),
            &budget,
            reading.clone(),
        ),
        budget,
        reading,
        live,
    })
    .stored(&options.storage))
}

/// Starts the target, or starts sampling it.
fn start(
    options: &Options,
    held: Option<HeldCommand>,
    source: &mut Source,
) -> Result<Running, Error> {
    source.begin(held.as_ref().map(HeldCommand::pid))?;
    match (held, options.target.command()) {
        (Some(held), Some(program)) => {
            let command = launch::release(held, program)?;
            Ok(Running::Command(command, program.clone()))
        }
        _ => Ok(Running::Others),
    }
}

/// The state to finish, however the recording went.
struct Recorded {
    finished: Finished,
    written: Result<(), WriteError>,
    outcome: Result<Outcome, Error>,
    session_wakeups: u64,
}

/// What a recording happens in.
struct Environment<'a> {
    options: &'a Options,
    signals: &'a Signals,
    /// The target's children before the events were opened.
    before: &'a BTreeSet<Pid>,
}

/// Reads on another thread, and unwinds and writes on this one.
fn run(
    environment: &Environment<'_>,
    input: ReaderInput<'_>,
    mut session: Session,
    start: impl FnOnce(&mut Source) -> Result<Running, Error> + Send,
) -> Result<Recorded, Error> {
    let &Environment {
        options,
        signals,
        before,
    } = environment;
    let budget = options.limits.map_or(BUDGET, |limits| limits.memory / 4);
    let queue = RecordQueue::new(budget);
    let (started, is_started) = mpsc::channel();
    let start = move |source: &mut Source| {
        let running = start(source)?;
        let _ = started.send(());
        Ok(running)
    };
    thread::scope(|scope| {
        let reader = Reader::new(input, &queue);
        let reading = thread::Builder::new()
            .name("reader".into())
            .spawn_scoped(scope, || {
                let outcome = reader.run(start, signals, &options.schedule);
                drain::drain(&queue, signals, options.schedule.unfinished);
                outcome
            })
            .map_err(|source| Error::Sampling { source })?;
        // The state of processes must be read after the first record of a change to them. If
        // nothing could be started, nothing comes and the queue is closed. Children created after
        // the events were opened, and before their records were enabled, are sampled as well.
        if is_started.recv().is_ok() {
            session.retain();
        }
        let mut running = launch::running(&options.target);
        running.extend(launch::children(&options.target, before));
        let written = {
            let _done = Done(&queue);
            session
                .begin_processes(&running)
                .and_then(|()| session.run(&queue))
        };
        let session_wakeups = queue.session_wakeups();
        let outcome = reading.join().unwrap_or_else(|_| {
            let source = io::Error::other("the reading thread panicked");
            Err(Error::Sampling { source })
        });
        // Also after an error: the file so far can then be read.
        let by_command = matches!(options.target, Target::Command(_))
            && outcome.as_ref().is_ok_and(|it| it.ended_with_command);
        let unseen = UnseenProcesses {
            left_running: if by_command { session.running() } else { 0 },
            older_children: launch::unrequested(&options.target, before),
            stopped: launch::stopped(&options.target),
            ..UnseenProcesses::default()
        };
        let finished = session.finish(outcome.as_ref().ok(), unseen);
        Ok(Recorded {
            finished,
            written,
            outcome,
            session_wakeups,
        })
    })
}

/// Tells the reader that the session takes no more batches: because there will be none, because of
/// an error, or because the file is full.
struct Done<'a>(&'a RecordQueue);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.give_up();
    }
}

fn summary(options: &Options, opened: &Opened, recorded: Recorded) -> Result<Summary, Error> {
    let Recorded {
        finished,
        written,
        outcome,
        session_wakeups,
    } = recorded;
    let outcome = outcome?;
    written.and(finished.ended).map_err(writing(options))?;
    let mut quality = finished.quality;
    quality.set_settings(&settings(opened, options));
    Ok(Summary {
        samples: quality.samples,
        files: finished.written.files,
        bytes: finished.written.bytes,
        duration: outcome.duration,
        events: names(opened),
        quality,
        exit: outcome.exit,
        stopped_by: outcome.stopped_by,
        left_running: outcome.left_running,
        pinned: finished.pinned.into(),
        wakeups: Wakeups {
            session: session_wakeups,
            ..outcome.wakeups
        },
    })
}

/// The one of several events that coverage is of.
fn covered_event(opened: &Opened) -> Option<String> {
    let sampling = |event: &&OpenedEvent| !event.setup.only_tracks();
    let several = opened.events.iter().filter(sampling).count() > 1;
    opened.reported_event().filter(|_| several).map(name)
}

/// The names of the events, each once.
fn names(opened: &Opened) -> Vec<String> {
    let mut names: Vec<_> = opened.events.iter().map(name).collect();
    names.dedup();
    names
}

fn writing(options: &Options) -> impl FnOnce(WriteError) -> Error {
    let path = options.output.clone();
    move |source| Error::Write { path, source }
}
