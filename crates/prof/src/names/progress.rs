//! A line on the terminal for those who wait, and a Ctrl-C that ends the waiting.

use std::fmt;
use std::io::{self, IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use prof_model::printable;
use prof_symbols::{Progress, Watch};
use signal_hook::consts::SIGINT;

/// What is over sooner needs no line.
const PATIENCE: Duration = Duration::from_secs(1);
const REFRESH: Duration = Duration::from_millis(100);

/// Does `work`, which reports to the watch that it is given. Where the standard error output is a
/// terminal and it takes longer than a moment, a line there tells how far it is. While files are
/// being downloaded, Ctrl-C skips all downloads; another one ends the program as usual.
pub(super) fn shown<T>(work: impl FnOnce(Watch<'_>) -> T) -> T {
    let interrupts = &*INTERRUPTS;
    let line = Line::default();
    let progress = |progress: Progress| {
        interrupts.note(&progress);
        line.update(progress);
    };
    let watch = Watch {
        progress: Some(&progress),
        skip_downloads: Some(&interrupts.skip),
    };
    let outcome = thread::scope(|scope| {
        // However the work ends, the thread that shows the line must end, too.
        let _finishing = Finishing(&line);
        if io::stderr().is_terminal() {
            scope.spawn(|| line.show());
        }
        work(watch)
    });
    interrupts.done();
    outcome
}

/// What Ctrl-C does. There is one for the whole program, because handlers stay: once there, they
/// decide by these flags.
struct Interrupts {
    skip: Arc<AtomicBool>,
    /// Whether it ends the program.
    fatal: Arc<AtomicBool>,
    handle: Once,
}

static INTERRUPTS: LazyLock<Interrupts> = LazyLock::new(|| Interrupts {
    skip: Arc::new(AtomicBool::new(false)),
    fatal: Arc::new(AtomicBool::new(true)),
    handle: Once::new(),
});

impl Interrupts {
    fn note(&self, progress: &Progress) {
        let downloading = matches!(progress, Progress::Download { .. });
        let skipping = self.skip.load(Ordering::Relaxed);
        self.fatal
            .store(!downloading || skipping, Ordering::Relaxed);
        if downloading {
            self.handle.call_once(|| self.handle());
        }
    }

    fn handle(&self) {
        if is_ignored(SIGINT) {
            return;
        }
        // In this order: the first one ends the program only if an earlier Ctrl-C said so. If
        // they can't be had, Ctrl-C simply ends the program.
        let _ = signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&self.fatal))
            .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&self.fatal)))
            .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&self.skip)));
    }

    /// From now on Ctrl-C ends the program.
    fn done(&self) {
        self.fatal.store(true, Ordering::Relaxed);
    }
}

/// Whether whoever started us wants us not to heed this signal, as shells do with what runs in the
/// background.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
}

/// The line and what it says.
#[derive(Default)]
struct Line {
    state: Mutex<State>,
    finished: Condvar,
}

#[derive(Default)]
struct State {
    finished: bool,
    /// Addresses named, of so many.
    resolved: Option<(usize, usize)>,
    /// The files that are being downloaded: name, bytes here, bytes in all.
    downloads: Vec<(String, u64, Option<u64>)>,
}

impl Line {
    fn update(&self, progress: Progress) {
        let mut state = self.lock();
        match progress {
            Progress::Resolved { done, total } => state.resolved = Some((done, total)),
            Progress::Download {
                module,
                received,
                total,
            } => {
                state.downloads.retain(|(name, ..)| *name != module);
                state.downloads.push((module, received, total));
            }
            _ => {}
        }
    }

    fn show(&self) {
        let start = Instant::now();
        let mut shown = false;
        let mut state = self.lock();
        while !state.finished {
            let waited = self.finished.wait_timeout(state, REFRESH);
            (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
            if start.elapsed() >= PATIENCE && !state.finished {
                shown = true;
                print(&state);
            }
        }
        if shown {
            erase();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Finishing<'a>(&'a Line);

impl Drop for Finishing<'_> {
    fn drop(&mut self) {
        self.0.lock().finished = true;
        self.0.finished.notify_all();
    }
}

// Nobody misses a line that could not be shown.

fn print(state: &State) {
    let (width, _) = terminal_size::terminal_size_of(io::stderr())
        .unwrap_or((terminal_size::Width(80), terminal_size::Height(0)));
    let room = usize::from(width.0).saturating_sub(1);
    let line = state.to_string();
    let line: String = printable(&line).chars().take(room).collect();
    let _ = write!(io::stderr(), "\r{line}\x1b[K");
}

fn erase() {
    let _ = write!(io::stderr(), "\r\x1b[K");
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const WIDTH: usize = 30;
        match (self.resolved, &self.downloads[..]) {
            (Some((done, total)), _) => {
                let filled = (done * WIDTH).checked_div(total).unwrap_or(0).min(WIDTH);
                let percent = (done * 100).checked_div(total).unwrap_or(0);
                write!(f, "naming [{:<WIDTH$}] {percent} %", "#".repeat(filled))
            }
            (None, []) => f.write_str("looking for debug info"),
            (None, downloads) => {
                write!(f, "downloading debug info (Ctrl-C skips)")?;
                for (name, received, total) in downloads.iter().rev() {
                    write!(f, " {name} {}", Mebibytes(*received))?;
                    if let Some(total) = total {
                        write!(f, "/{}", Mebibytes(*total))?;
                    }
                }
                Ok(())
            }
        }
    }
}

struct Mebibytes(u64);

impl fmt::Display for Mebibytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1} MiB", self.0 as f64 / f64::from(1 << 20))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_line_says() {
        let line = Line::default();
        let check = |expected: &str| assert_eq!(line.lock().to_string(), expected);
        let download = |module: &str, received, total| Progress::Download {
            module: module.into(),
            received,
            total,
        };
        check("looking for debug info");
        line.update(download("libc.so.6", 0, None));
        check("downloading debug info (Ctrl-C skips) libc.so.6 0.0 MiB");
        line.update(download("libm.so.6", 1 << 20, Some(3 << 19)));
        line.update(download("libc.so.6", 1 << 19, None));
        check("downloading debug info (Ctrl-C skips) libc.so.6 0.5 MiB libm.so.6 1.0 MiB/1.5 MiB");
        line.update(Progress::Resolved { done: 1, total: 3 });
        check("naming [##########                    ] 33 %");
    }
}
