//! The whole of a recording, from opening the events to closing the file.

use std::fs::File;
use std::io;
use std::sync::mpsc;
use std::thread;
use std::time::{SystemTime, UNIX_EPOCH};

use prof_events::{
    HeldCommand, Launcher, Opened, OpenedEvent, Request, Signals, Stacks, Switch, Weight, system,
};
use prof_model::StackEnd;
use prof_perfdata::{
    Attr, ClockData, CpuCounts, EventDescription, Features, RecordFormat, SampleType, WriteError,
    Writer,
};

use crate::backlog::Backlog;
use crate::coverage::Lifetimes;
use crate::duplicates::Duplicates;
use crate::error::Error;
use crate::launch;
use crate::options::{Course, Delay, Options, Summary, Target};
use crate::output::{Output, is_stdout};
use crate::reader::{Outcome, Reader};
use crate::session::{Finished, Session, SessionEvent, StackWork};
use crate::sleepers::Sleepers;
use crate::source::Source;
use crate::steering::Running;

/// Memory for samples that wait to be unwound.
const BUDGET: usize = 64 << 20;

/// Records as `options` say until the target ends, the time is up, or a signal comes.
///
/// Nothing is started or written before everything that can be checked has been checked; a
/// file that was at `options.output` is kept with `.old` added to its name.
///
/// A signal from the terminal reaches a command by itself, any other is passed on to it; the
/// recording ends with the command. Running processes are left running.
///
/// # Errors
///
/// See [`Error`]. Once recording has begun, what was recorded so far is still written.
pub fn record(options: &Options, signals: &Signals) -> Result<Summary, Error> {
    let launcher = launch::launcher(&options.target)?;
    let request = request(options, launcher.as_ref())?;
    let source = Source::open(&request, options.how, signals)?;
    if options.course.again > 0 && matches!(source, Source::Stops(_)) {
        return Err(Error::OnlyOnce);
    }
    let mut opened = source.opened().clone();
    let at_once = options.course.delay == Delay::None;
    let attached = at_once && matches!(options.target, Target::Processes(_));
    let sleepers = Sleepers::new(&mut opened, attached);
    let (mut output, file) = Output::create(&options.output)?;
    let mut session = session(options, &opened, file)?;
    let held = match (options.target.command(), launcher) {
        (Some(program), Some(launcher)) => Some(launch::hold(launcher, program, signals)?),
        _ => None,
    };
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
        // Among so many, some will have ended before they can be looked at once sampling begins.
        let running = launch::running(&options.target);
        session
            .begin_processes(&running)
            .map_err(writing(options))?;
    }
    let start = |source: &mut Source| {
        let running = start(options, held, source)?;
        // The target runs: from here on there is something to keep.
        output.keep();
        Ok(running)
    };
    let recorded = run(options, signals, (source, sleepers), session, start)?;
    finish(options, &opened, recorded)
}

fn request(options: &Options, launcher: Option<&Launcher>) -> Result<Request, Error> {
    Ok(Request {
        threads: launch::threads(&options.target, launcher)?,
        groups: options.groups.clone(),
        user_chains: options.unwind,
        ring_bytes: options.ring_bytes,
        switch: match &options.course {
            Course {
                delay: Delay::None,
                control: None,
                ..
            } => Switch::None,
            Course {
                delay: Delay::None, ..
            } => Switch::On,
            _ => Switch::Off,
        },
    })
}

/// An event as the rings have it.
fn description(event: &OpenedEvent) -> Result<EventDescription, prof_perfdata::Error> {
    Ok(EventDescription {
        attr: Attr::parse(&event.setup.attr_bytes())?,
        name: name(event),
        ids: event.ids.iter().map(|&(id, _)| id).collect(),
    })
}

/// What the event is called in the file.
fn name(event: &OpenedEvent) -> String {
    match event.setup.weight {
        Weight::Period => event.setup.spec.to_string(),
        // Modifiers say whose code was probed, which says nothing of what is weighed.
        Weight::OffCpu | Weight::Asleep | Weight::Allocation { .. } => {
            event.setup.spec.name.clone()
        }
    }
}

fn session(options: &Options, opened: &Opened, file: File) -> Result<Session, Error> {
    let rings: Vec<_> = (opened.events.iter())
        .map(description)
        .collect::<Result<_, _>>()?;
    let mut written: Vec<EventDescription> = Vec::new();
    let mut events = Vec::new();
    for (event, ring) in opened.events.iter().zip(&rings) {
        let stacks = match event.setup.stacks {
            Stacks::Dump(_) if options.unwind => StackWork::Unwind,
            Stacks::FramePointers | Stacks::LastBranches { .. } => {
                StackWork::Keep(StackEnd::FramePointersEnded)
            }
            Stacks::Dump(_) | Stacks::None => StackWork::Keep(StackEnd::NotRecorded),
        };
        let weight = event.setup.weight;
        let attr = match stacks {
            StackWork::Unwind => unwound(&ring.attr, weight),
            StackWork::Keep(_) => ring.attr.clone(),
        };
        let same = |other: &&mut EventDescription| {
            matches!(weight, Weight::Allocation { .. } | Weight::Asleep) && other.name == ring.name
        };
        let attr = match written.iter_mut().find(same) {
            // All functions that allocate are one event to the reader, and all waits.
            Some(other) => {
                other.ids.extend(&ring.ids);
                other.attr.clone()
            }
            None => {
                written.push(EventDescription {
                    attr: attr.clone(),
                    ..ring.clone()
                });
                attr
            }
        };
        events.push(SessionEvent {
            attr,
            stacks,
            weight,
        });
    }
    let format = RecordFormat::new(&rings)?;
    let writer = match is_stdout(&options.output) {
        true => Writer::create_pipe(file, &written, &about(options)),
        false => Writer::create(file, &written),
    };
    let writer = match options.storage.compression {
        Some(level) => writer.and_then(|writer| writer.compressed(level)),
        None => writer,
    }
    .map_err(writing(options))?;
    let duplicates = Duplicates::new(opened.ids(), &opened.late);
    let lifetimes = Lifetimes::new(opened);
    let session = Session::new(format, events, writer, duplicates, lifetimes);
    Ok(session.of_size(options.storage.max_size))
}

/// The attribute of samples that this crate has unwound, and weighed.
fn unwound(ring: &Attr, weight: Weight) -> Attr {
    let mut attr = ring.unwound();
    attr.sample_type = attr.sample_type & !SampleType::REGS_INTR;
    attr.sample_regs_intr = 0;
    if weight != Weight::Period {
        attr.sample_type = attr.sample_type | SampleType::PERIOD;
    }
    attr
}

/// Lets the target go, or starts sampling it.
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

/// What there is to finish, however the recording went.
struct Recorded {
    finished: Finished,
    written: Result<(), WriteError>,
    outcome: Result<Outcome, Error>,
}

/// Reads on one thread, unwinds and writes on this one.
fn run(
    options: &Options,
    signals: &Signals,
    (source, sleepers): (Source, Option<Sleepers>),
    mut session: Session,
    start: impl FnOnce(&mut Source) -> Result<Running, Error> + Send,
) -> Result<Recorded, Error> {
    let backlog = Backlog::new(BUDGET);
    let earlier = match &options.target {
        Target::Processes(pids) => pids.as_slice(),
        _ => &[],
    };
    let (started, is_started) = mpsc::channel();
    let start = move |source: &mut Source| {
        let running = start(source)?;
        let _ = started.send(());
        Ok(running)
    };
    thread::scope(|scope| {
        let reader = Reader::new(source, options.unwind, sleepers, earlier, &backlog);
        let reading = thread::Builder::new()
            .name("reader".into())
            .spawn_scoped(scope, move || reader.run(start, signals, &options.course))
            .map_err(|source| Error::Sampling { source })?;
        // What is read of processes must be newer than the first record of a change to them. If
        // nothing could be started, nothing comes and the backlog is closed.
        let _ = is_started.recv();
        let written = session
            .begin_processes(&launch::running(&options.target))
            .and_then(|()| session.run(&backlog));
        if written.is_err() || session.is_full() {
            backlog.give_up();
        }
        let outcome = reading.join().unwrap_or_else(|_| {
            let source = io::Error::other("the reading thread panicked");
            Err(Error::Sampling { source })
        });
        let counts = outcome.as_ref().map_or(&[][..], |outcome| &outcome.counts);
        Ok(Recorded {
            finished: session.finish(counts),
            written,
            outcome,
        })
    })
}

/// Ends the file, also after an error: what was written before can then be read.
fn finish(options: &Options, opened: &Opened, recorded: Recorded) -> Result<Summary, Error> {
    let Recorded {
        finished,
        written,
        outcome,
    } = recorded;
    let mut quality = finished.quality;
    quality.fallbacks = opened.fallbacks.clone();
    if let Ok(outcome) = &outcome {
        // No record tells of what was lost after the last one.
        let losses = &mut quality.losses;
        losses.ring_full = losses.ring_full.max(outcome.lost);
    }
    let features = Features {
        build_ids: finished.build_ids,
        sample_time: finished.sample_time,
        quality: Some(quality.clone()),
        ..about(options)
    };
    let records = finished.writer.data_size();
    let ended = finished.writer.finish(&features);
    let outcome = outcome?;
    let file = written.and(ended).map_err(writing(options))?;
    let bytes = file.metadata().map_or(0, |found| found.len()).max(records);
    Ok(Summary {
        samples: quality.samples,
        bytes,
        duration: outcome.duration,
        events: names(opened),
        quality,
        exit: outcome.exit,
        stopped_by: outcome.stopped_by,
        kept: finished.kept.into(),
    })
}

/// What the events are called, each once.
fn names(opened: &Opened) -> Vec<String> {
    let mut names: Vec<_> = opened.events.iter().map(name).collect();
    names.dedup();
    names
}

/// What the file says of the machine and of this run.
fn about(options: &Options) -> Features {
    let cpus = system::System::read().ok().map(|system| CpuCounts {
        online: system.cpus.len() as u32,
        available: system.cpus.len() as u32,
    });
    let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH);
    Features {
        hostname: Some(system::host_name()),
        os_release: Some(system::kernel_release()),
        version: Some(format!("prof {}", env!("CARGO_PKG_VERSION"))),
        arch: Some(std::env::consts::ARCH.into()),
        nr_cpus: cpus,
        cpu_desc: system::cpu_description(),
        command_line: options.command_line.clone(),
        clock_resolution: Some(1),
        clock: since_1970.ok().map(|wall_clock| ClockData {
            clockid: CLOCK_MONOTONIC,
            wall_clock: wall_clock.as_nanos() as u64,
            clock: system::monotonic_now(),
        }),
        ..Features::default()
    }
}

const CLOCK_MONOTONIC: u32 = 1;

fn writing(options: &Options) -> impl FnOnce(WriteError) -> Error {
    let path = options.output.clone();
    move |source| Error::Write { path, source }
}
