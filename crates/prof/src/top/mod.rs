//! `prof top`: what runs now, on a full screen or in tables.
//!
//! ```text
//!   recorder (a thread) ──pipe form──> Watched: StreamingProfile, NameCache ──> Picture ──> views
//!        └─ what it recorded lately ──the key w──> prof.data.TIME
//! ```
//! The recorder and the report meet here as they do in a file: in a recording.

mod app;
mod filters;
mod keys;
mod own;
mod picture;
mod plain;
mod screen;
mod style;
mod terminal;
#[cfg(test)]
mod testing;
mod views;
mod watched;

use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::sync::mpsc::{Sender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};
use prof_console::Console;
use prof_recorder::{
    Error, LiveNames, Options, ResourceLimits, Schedule, Signals, Storage, Streaming, Summary,
    Target,
};
use rustix::process::{Signal, getpid, kill_process};

use crate::exit;
use crate::flags::TopFlags;
use crate::record;
use screen::Ended;
use watched::{Sources, Watched};

/// Pieces of the recording that may wait for us: some 30 MB, which the recorder fills in seconds
/// only if we stop reading.
const PIECES: usize = 256;
/// How much the key `w` writes.
const KEPT: (Duration, u64) = (Duration::from_secs(3600), 32 << 20);

/// The limits for watching all processes. Waking for each sample costs twice as much with many
/// short processes, and completes one stack in a hundred.
const LIMITS: ResourceLimits = ResourceLimits {
    poll_interval: Duration::from_millis(50),
    memory: 256 << 20,
    names: ResourceLimits::USUAL_NAMES,
};

/// Shows what runs until the user quits.
///
/// # Errors
///
/// Nothing can be recorded, or the terminal cannot be used.
pub(crate) fn run(flags: TopFlags) -> Result<ExitCode> {
    let is_asked = flags.names_a_target();
    let (mut target, mut sampling, flags) = flags.split();
    let is_own = !is_asked && own::watch_instead(&mut target, &mut sampling)?;
    let note = is_own.then_some(own::NOTE);
    let full_screen = !flags.stdio && flags.iterations.is_none() && is_screen();
    // Before any thread starts: threads inherit the blocked signals.
    let signals = Signals::block_with_rotation().context("cannot watch for signals")?;
    prof_events::remove_leftovers();
    let mut target =
        record::target_request(target, !full_screen).find(&signals, Console::new(false, false))?;
    if full_screen {
        take_terminal_from(&mut target);
    }
    let (stream_in, stream) = sync_channel(PIECES);
    let (written_in, written) = channel();
    let (done_in, done) = channel();
    let arguments = std::env::args_os().collect();
    let names = LiveNames::default();
    let mut options = record::options(target, &sampling, Schedule::default(), arguments)?;
    options.storage = Storage {
        streaming: Some(Streaming {
            stream: stream_in,
            written: written_in,
            time: KEPT.0,
            bytes: KEPT.1,
            names: names.clone(),
        }),
        ..Storage::default()
    };
    if let Target::Cpus(_) = options.target {
        options.limits = Some(LIMITS);
    }
    let sources = Sources {
        stream,
        written,
        done,
        names,
    };
    let ended = thread::scope(|scope| {
        let recorder = thread::Builder::new().name("recorder".into());
        recorder
            .spawn_scoped(scope, || recorded(options, &signals, &done_in))
            .context("cannot start a thread")?;
        // However watching ends, the recorder must end, too. It may wait for us to read.
        let mut stopping = Stopping {
            watched: Some(Watched::new(sources)),
        };
        let watched = stopping.watched.as_mut().context("nothing is watched")?;
        match full_screen {
            true => screen::run(&flags, &signals, watched, note),
            false => plain::run(&flags, watched, note),
        }
    });
    // Pending signals would end us once they are unblocked.
    while signals.next().is_some() {}
    exit_code(ended?)
}

/// Records, and sends the outcome.
fn recorded(options: Options, signals: &Signals, done: &Sender<Result<Summary, Error>>) {
    let outcome = prof_recorder::record(&options, signals);
    // An error means that the receiver is gone: it knows that the recording ends.
    let _ = done.send(outcome);
}

/// Ends the recording when it is dropped.
struct Stopping {
    watched: Option<Watched>,
}

impl Drop for Stopping {
    fn drop(&mut self) {
        let has_ended = self
            .watched
            .take()
            .is_some_and(|watched| watched.has_ended());
        if !has_ended {
            // A command gets it, too. Signalling our own process cannot fail.
            let _ = kill_process(getpid(), Signal::TERM);
        }
    }
}

/// Makes the recorder write the records that it keeps.
fn request_file() -> Result<()> {
    Ok(kill_process(getpid(), Signal::USR2)?)
}

/// Whether there is a usable terminal.
fn is_screen() -> bool {
    let is_dumb = std::env::var_os("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    io::stdout().is_terminal() && !is_dumb
}

fn take_terminal_from(target: &mut Target) {
    match target {
        Target::Command(program) => program.terminal_is_ours = true,
        Target::Cpus(cpus) => {
            if let Some(program) = &mut cpus.command {
                program.terminal_is_ours = true;
            }
        }
        Target::Processes(_) | Target::Threads(_) => {}
    }
}

fn exit_code(ended: Ended) -> Result<ExitCode> {
    match ended {
        Some(Ok(summary)) => Ok(match summary.exit {
            Some(status) if summary.stopped_by.is_none() => exit::like(status),
            _ => ExitCode::SUCCESS,
        }),
        Some(Err(error)) => {
            let code = exit::code_of(&error);
            Console::error(&error.into());
            Ok(code)
        }
        None => Ok(ExitCode::SUCCESS),
    }
}
