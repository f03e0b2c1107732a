//! A progress line on the terminal.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use prof_model::printable;

/// Shorter work needs no line.
const SHOWN_AFTER: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(100);

/// Runs `work`. If the standard error output is a terminal and the work takes longer than a moment,
/// a line there shows the current `text`, if it is not empty, and is removed at the end.
pub(crate) fn with_line<T>(text: impl Fn() -> String + Sync, work: impl FnOnce() -> T) -> T {
    if !io::stderr().is_terminal() {
        return work();
    }
    let waiting = Waiting::default();
    thread::scope(|scope| {
        // However the work ends, the thread that shows the line must end, too.
        let _finishing = Finishing(&waiting);
        scope.spawn(|| waiting.show(&text));
        work()
    })
}

/// `naming [###    ] 42 %`
pub(crate) struct Bar {
    /// The kind of work.
    pub(crate) what: &'static str,
    /// How much is done, of how much.
    pub(crate) done: (u64, u64),
}

impl fmt::Display for Bar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: u64 = 30;
        let (done, total) = self.done;
        let part = |of: u64| {
            let part = u128::from(done) * u128::from(of);
            part.checked_div(total.into()).unwrap_or(0).min(of.into())
        };
        let filled = "#".repeat(part(WIDTH) as usize);
        let width = WIDTH as usize;
        write!(f, "{} [{filled:<width$}] {} %", self.what, part(100))
    }
}

/// A size in the unit of 1,048,576 bytes.
pub(crate) struct Mebibytes(pub(crate) u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

/// Whether the work is done.
#[derive(Default)]
struct Waiting {
    finished: Mutex<bool>,
    change: Condvar,
}

impl Waiting {
    fn show(&self, text: &dyn Fn() -> String) {
        let start = Instant::now();
        let mut shown = String::new();
        let mut finished = self.finished.lock().unwrap_or_else(PoisonError::into_inner);
        while !*finished {
            let waited = self.change.wait_timeout(finished, REFRESH);
            (finished, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if start.elapsed() >= SHOWN_AFTER && !*finished {
                let text = text();
                // Others may write to the terminal, too.
                if text != shown {
                    print(&text);
                    shown = text;
                }
            }
        }
        if !shown.is_empty() {
            erase();
        }
    }
}

struct Finishing<'a>(&'a Waiting);

impl Drop for Finishing<'_> {
    fn drop(&mut self) {
        let finished = self.0.finished.lock();
        *finished.unwrap_or_else(PoisonError::into_inner) = true;
        self.0.change.notify_all();
    }
}

// Errors are ignored: the line is not essential.

fn print(text: &str) {
    let (width, _) = terminal_size::terminal_size_of(io::stderr())
        .unwrap_or((terminal_size::Width(80), terminal_size::Height(0)));
    let space = usize::from(width.0).saturating_sub(1);
    let line: String = printable(text).chars().take(space).collect();
    let _ = write!(io::stderr(), "\r{line}\x1b[K");
}

fn erase() {
    let _ = write!(io::stderr(), "\r\x1b[K");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_progress() {
        let check = |done, expected: &str| {
            let bar = Bar { what: "x", done };
            assert_eq!(bar.to_string(), expected, "{done:?}");
        };
        check((0, 3), "x [                              ] 0 %");
        check((1, 3), "x [##########                    ] 33 %");
        check((3, 3), "x [##############################] 100 %");
        check((4, 3), "x [##############################] 100 %");
        check((0, 0), "x [                              ] 0 %");
        check(
            (u64::MAX / 2, u64::MAX),
            "x [##############                ] 49 %",
        );
    }
}
