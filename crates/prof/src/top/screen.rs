//! The full screen: its keys, new samples, and pictures of them.

use std::io;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use prof_model::printable;
use prof_recorder::{Error, Signals, Summary};
use prof_report::{Span, SymbolizedProfile};
use ratatui::crossterm::event::{Event, KeyEventKind};

use super::app::{App, View};
use super::keys::NextAction;
use super::picture::Picture;
use super::style::Look;
use super::terminal::{Keyboard, Screen, Waited};
use super::watched::Watched;
use super::{request_file, views};
use crate::flags::ShowFlags;

/// The longest wait for a key or the end, if nothing else is due.
const KEY_TIMEOUT: Duration = Duration::from_millis(200);

/// How long the recorder may take to end when the terminal is gone. The kernel sends it SIGHUP; a
/// second signal while it completes its files would abort that. If SIGHUP is ignored, the recording
/// is ended after this.
const HANGUP_TIMEOUT: Duration = Duration::from_secs(10);

/// The outcome of the recording, if it ended by itself.
pub(super) type Ended = Option<Result<Summary, Error>>;

/// Shows pictures until the user quits, or a signal ends the recording; first of all, `note`.
pub(super) fn run(
    flags: &ShowFlags,
    signals: &Signals,
    watched: &mut Watched,
    note: Option<&str>,
) -> Result<Ended> {
    watched.wait_for_begin()?;
    let look = Look::of(|name| std::env::var(name).ok());
    let mut shown = Shown {
        app: App::default(),
        profile: None,
        picture: Picture::default(),
    };
    shown.app.filters.no_kernel = flags.no_kernel;
    shown.app.message = note.map(str::to_owned);
    let mut ended = None;
    if watched.has_ended() && is_final(watched, &mut shown.app, &mut ended) {
        return Ok(ended);
    }
    let mut screen =
        Screen::take().context("cannot draw on this terminal (--stdio prints tables)")?;
    let keyboard = Keyboard::read()?;
    let mut next = Instant::now();
    let mut action = NextAction::Profile;
    loop {
        let had_ended = watched.has_ended();
        watched.receive()?;
        if watched.has_ended() && !had_ended {
            (next, action) = (Instant::now(), NextAction::Draw);
            if is_final(watched, &mut shown.app, &mut ended) {
                return Ok(ended);
            }
        }
        if had_ended && is_asked_to_end(signals) {
            return Ok(ended);
        }
        if shown.app.show_written(watched) && action == NextAction::Nothing {
            action = NextAction::Draw;
        }
        let is_due = Instant::now() >= next && !shown.app.frozen && !had_ended;
        if is_due || action == NextAction::Profile {
            (next, action) = (Instant::now() + flags.delay, NextAction::Profile);
            shown.take_profile(watched)?;
        } else if action == NextAction::Picture {
            shown.take_picture(watched);
        }
        if screen.follow_jobs()? && action == NextAction::Nothing {
            action = NextAction::Draw;
        }
        let drawn = match action {
            NextAction::Nothing => Ok(()),
            _ => shown.draw(&mut screen, look),
        };
        action = NextAction::Nothing;
        let next = Some(next).filter(|_| !shown.app.frozen && !watched.has_ended());
        match keyboard.wait(key_timeout(next))? {
            Waited::Event(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                action = shown.app.key(key, &shown.picture);
            }
            Waited::Event(_) => action = NextAction::Draw,
            Waited::Nothing => {}
            Waited::Gone => {
                watched.receive_until(Instant::now() + HANGUP_TIMEOUT)?;
                return Ok(ended);
            }
        }
        drawn?;
        match action {
            NextAction::Quit => return Ok(ended),
            NextAction::Write if ended.is_some() => {
                shown.app.message = Some("recording has ended".into());
            }
            NextAction::Write => request_file()?,
            _ => {}
        }
    }
}

/// How long to wait for a key, if the next picture is due then.
fn key_timeout(next: Option<Instant>) -> Duration {
    let left = next.map(|next| next.saturating_duration_since(Instant::now()));
    left.map_or(KEY_TIMEOUT, |left| left.min(KEY_TIMEOUT))
}

/// Reads signals that the recorder does not read, as it has ended.
fn is_asked_to_end(signals: &Signals) -> bool {
    signals.next().is_some_and(|signal| !signal.rotates())
}

/// Reads the outcome of the recording. Returns whether the last picture need not be shown: a signal
/// or an error ended the recording.
fn is_final(watched: &Watched, app: &mut App, ended: &mut Ended) -> bool {
    *ended = watched.outcome();
    match ended {
        Some(Ok(summary)) if summary.stopped_by.is_none() => {
            app.ended = Some(match summary.exit {
                Some(status) => format!("ENDED, {status}"),
                None => "ENDED".into(),
            });
            false
        }
        _ => true,
    }
}

impl App {
    /// Shows the result of writing a requested file. Returns whether there is something new.
    fn show_written(&mut self, watched: &Watched) -> bool {
        let Some(written) = watched.written() else {
            return false;
        };
        self.message = Some(match written {
            Ok(path) => format!("wrote {}", printable(&path.to_string_lossy())),
            // With its causes.
            Err(error) => format!("{:#}", anyhow::Error::from(error)),
        });
        true
    }
}

/// The content of the screen.
struct Shown {
    app: App,
    profile: Option<SymbolizedProfile>,
    picture: Picture,
}

impl Shown {
    fn draw(&mut self, screen: &mut Screen, look: Look) -> io::Result<()> {
        screen.terminal.draw(|frame| {
            let area = frame.area();
            views::draw(&mut self.app, &self.picture, look, area, frame.buffer_mut());
        })?;
        Ok(())
    }

    fn take_profile(&mut self, watched: &mut Watched) -> Result<()> {
        // The next one shares its symbols.
        self.profile = None;
        self.profile = watched.profile(self.app.span)?;
        self.take_picture(watched);
        Ok(())
    }

    fn take_picture(&mut self, watched: &Watched) {
        let Some(profile) = &self.profile else {
            return;
        };
        let threads = self.app.view == View::Threads;
        self.picture = Picture::new(profile, &self.app.filters.filter(), threads);
        if self.app.span == Span::All && self.app.filters.are_none() {
            self.picture.foot.left_out = watched.left_out(self.picture.total());
        }
    }
}
