//! When to sample, and when recording ends.

pub(crate) mod launch;

use std::io;
use std::os::fd::AsFd;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use prof_events::system::{self, Ahead};
use prof_events::{Interrupt, Program, RunningCommand, Signals};

use crate::control::{Command, ControlPipe};
use crate::error::Error;
use crate::options::{Delay, Schedule};
use crate::queue::message::{Message, MessageKind};
use crate::source::Source;

/// The target, as far as the end of recording depends on it.
pub(crate) enum Running {
    /// A command that we started. Recording ends with it, or with its last run.
    Command(RunningCommand, Program),
    /// Processes started by others. Recording ends when all have ended, and never ends them.
    Others,
}

/// Decides when sampling is enabled and disabled, and when recording ends.
pub(crate) struct RecordingControl<'a> {
    target: RunningTarget,
    sampling: SamplingState,
    deadline: Option<Instant>,
    commands: Option<ControlPipe>,
    stop_requested: bool,
    rotation_requested: bool,
    signals: &'a Signals,
    stop: Option<Stop>,
}

/// The target, and how far it is from its end.
struct RunningTarget {
    running: Running,
    /// How many more times the command is to run.
    again: u32,
    /// How the command ended: in the last run that failed, or else in the last run.
    exit: Option<ExitStatus>,
    /// Whether the command got a signal to end.
    was_asked_to_end: bool,
    /// Whether the recording ended without it.
    left_running: bool,
}

/// Whether samples are taken.
struct SamplingState {
    is_enabled: bool,
    was_ever_enabled: bool,
    /// When it is enabled after a delay.
    begins: Option<Instant>,
    /// Its changes, until the reader takes them.
    toggles: Vec<Message>,
}

/// The signal that ends the recording.
#[derive(Clone, Copy, Debug)]
struct Stop {
    signal: i32,
    /// When the first one came.
    first: Instant,
}

impl<'a> RecordingControl<'a> {
    pub(crate) fn new(
        running: Running,
        schedule: &Schedule,
        signals: &'a Signals,
        begin: Instant,
    ) -> Self {
        Self {
            target: RunningTarget {
                running,
                again: schedule.again,
                exit: None,
                was_asked_to_end: false,
                left_running: false,
            },
            sampling: SamplingState {
                is_enabled: schedule.delay == Delay::None,
                was_ever_enabled: schedule.delay == Delay::None,
                begins: match schedule.delay {
                    Delay::After(time) => begin.checked_add(time),
                    Delay::None | Delay::UntilEnabled => None,
                },
                toggles: Vec::new(),
            },
            deadline: schedule.duration.and_then(|time| begin.checked_add(time)),
            commands: schedule.control.clone().map(ControlPipe::new),
            stop_requested: false,
            rotation_requested: false,
            signals,
            stop: None,
        }
    }

    /// Whether sampling was ever enabled.
    pub(crate) fn was_enabled(&self) -> bool {
        self.sampling.was_ever_enabled
    }

    /// The signal that ended the recording, if one did.
    pub(crate) fn stopped_by(&self) -> Option<i32> {
        self.stop.map(|stop| stop.signal)
    }

    /// Whether the recording ended because the command did, and nothing asked that to end.
    pub(crate) fn ended_with_command(&self) -> bool {
        self.target.exit.is_some() && !self.target.was_asked_to_end
    }

    /// Whether the command did not end, and a second signal ended the recording without it.
    pub(crate) fn left_running(&self) -> bool {
        self.target.left_running
    }

    /// Whether another file was requested since the last call.
    pub(crate) fn take_rotation(&mut self) -> bool {
        std::mem::take(&mut self.rotation_requested)
    }

    /// When sampling was enabled or disabled, since the last call.
    pub(crate) fn take_toggles(&mut self) -> impl Iterator<Item = Message> {
        self.sampling.toggles.drain(..)
    }

    /// Makes waits for records end when a decision is due.
    pub(crate) fn watch(&self, source: &mut Source) -> io::Result<()> {
        source.watch_signals(self.signals.as_fd())?;
        if let Some(commands) = &self.commands {
            source.watch(commands.as_fd())?;
        }
        match &self.target.running {
            Running::Command(command, _) => source.watch(command.as_fd()),
            Running::Others => Ok(()),
        }
    }

    /// The time until the next decision.
    pub(crate) fn timeout(&self) -> Duration {
        let moments = [self.deadline, self.sampling.begins].into_iter().flatten();
        let soonest = moments.map(|moment| moment.saturating_duration_since(Instant::now()));
        soonest.min().unwrap_or(Duration::MAX)
    }

    /// Does what is due, and says whether recording ends.
    pub(crate) fn is_over(&mut self, source: &mut Source, all_ended: bool) -> Result<bool, Error> {
        while let Some(interrupt) = self.signals.next() {
            if interrupt.rotates() {
                self.rotation_requested = true;
            } else if self.interrupted(interrupt) {
                return Ok(true);
            }
        }
        let now = Instant::now();
        if self.sampling.begins.is_some_and(|begins| begins <= now) {
            self.set_sampling(source, true)?;
        }
        self.execute_commands(source)?;
        if self.stop_requested || self.deadline.is_some_and(|deadline| deadline <= now) {
            self.terminate();
            return Ok(true);
        }
        let Running::Command(command, _) = &mut self.target.running else {
            return Ok(all_ended);
        };
        if !command.has_ended().map_err(Error::sampling)? {
            return Ok(false);
        }
        if self.target.again == 0 || self.stop.is_some() {
            // Its status is collected when sampling has ended.
            return Ok(true);
        }
        system::lower_thread_priority();
        let status = command.wait().map_err(Error::sampling)?;
        self.target.ended(status);
        self.target.again -= 1;
        self.run_again(source)?;
        system::raise_thread_priority(Ahead::OfThese);
        Ok(false)
    }

    /// Executes the commands that have arrived.
    fn execute_commands(&mut self, source: &mut Source) -> Result<(), Error> {
        let Some(mut commands) = self.commands.take() else {
            return Ok(());
        };
        let more = commands.read(|command| -> Result<(), Error> {
            match command {
                Command::Enable => self.set_sampling(source, true)?,
                Command::Disable => self.set_sampling(source, false)?,
                Command::Ping => {}
                Command::Stop => self.stop_requested = true,
            }
            Ok(())
        })?;
        match more {
            true => self.commands = Some(commands),
            false => source.unwatch(commands.as_fd()).map_err(Error::sampling)?,
        }
        Ok(())
    }

    fn set_sampling(&mut self, source: &mut Source, on: bool) -> Result<(), Error> {
        self.sampling.is_enabled = on;
        self.sampling.was_ever_enabled |= on;
        self.sampling.begins = None;
        let before = system::monotonic_now();
        source.set_sampling(on)?;
        // The change took effect between these two times.
        let time = if on { before } else { system::monotonic_now() };
        let what = if on {
            MessageKind::Enabled
        } else {
            MessageKind::Disabled
        };
        self.sampling.toggles.push(Message { time, what });
        Ok(())
    }

    /// Starts the command again, from the thread whose events it inherits.
    fn run_again(&mut self, source: &mut Source) -> Result<(), Error> {
        let running = std::mem::replace(&mut self.target.running, Running::Others);
        let Running::Command(command, program) = running else {
            return Ok(());
        };
        let held = launch::hold(command.into_launcher(), &program, self.signals)?;
        let command = launch::release(held, &program)?;
        source.watch(command.as_fd()).map_err(Error::sampling)?;
        self.target.running = Running::Command(command, program);
        if !self.sampling.is_enabled {
            // Its exec has enabled the events.
            source.set_sampling(false)?;
        }
        Ok(())
    }

    /// A signal ends the recording of processes. A command gets it, too, and is recorded to its
    /// end; if it does not end, a second signal ends the recording without it.
    fn interrupted(&mut self, interrupt: Interrupt) -> bool {
        /// `timeout` signals prof, and then the whole group: both mean the same.
        const AT_ONCE: Duration = Duration::from_millis(100);
        let (now, before) = (Instant::now(), self.stop);
        self.stop = Some(Stop {
            signal: interrupt.signal,
            first: before.map_or(now, |stop| stop.first),
        });
        let target = &mut self.target;
        let Running::Command(command, _) = &target.running else {
            return true;
        };
        if before.is_some_and(|stop| now.duration_since(stop.first) < AT_ONCE) {
            return false;
        }
        if !interrupt.from_terminal {
            command.signal(interrupt.signal);
        }
        if target.was_asked_to_end {
            target.running = Running::Others;
            target.left_running = true;
        }
        std::mem::replace(&mut target.was_asked_to_end, true)
    }

    /// Asks the command to end (SIGTERM).
    pub(crate) fn terminate(&mut self) {
        if let Running::Command(command, _) = &self.target.running {
            self.target.was_asked_to_end = true;
            command.signal(SIGTERM);
        }
    }

    /// Waits for a command that was asked to end. A signal ends the wait.
    pub(crate) fn wait_for_command(&mut self) -> io::Result<Option<ExitStatus>> {
        loop {
            let Running::Command(command, _) = &mut self.target.running else {
                return Ok(self.target.exit);
            };
            if let Some(status) = command.try_wait()? {
                self.target.ended(status);
                return Ok(self.target.exit);
            }
            prof_events::wait_readable(&[command.as_fd(), self.signals.as_fd()], None)?;
            while let Some(interrupt) = self.signals.next() {
                if !interrupt.rotates() {
                    self.interrupted(interrupt);
                }
            }
        }
    }
}

impl RunningTarget {
    /// A run of the command has ended.
    fn ended(&mut self, status: ExitStatus) {
        if self.exit.is_none_or(|before| before.success()) || !status.success() {
            self.exit = Some(status);
        }
    }
}

const SIGTERM: i32 = 15;
