//! The terminal while we draw on it, and as it was before.

use std::io::{self, Stdout};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};

/// Has the terminal for itself until it is dropped, or a thread panics.
pub(super) struct Screen {
    pub terminal: Terminal<CrosstermBackend<Stdout>>,
}

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANICS: Once = Once::new();

impl Screen {
    /// Takes the terminal: no line editing, another screen, no cursor.
    pub(super) fn take() -> io::Result<Self> {
        PANICS.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // What it says would be lost with our screen.
                give_back();
                report(panic);
            }));
        });
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        // From here on, dropping this gives it back.
        let screen = Self {
            terminal: Terminal::new(CrosstermBackend::new(io::stdout()))?,
        };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Once only: afterwards, others write to it.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}
