//! A progress line on the terminal, and Ctrl-C to skip downloads.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, Once, PoisonError};

use prof_symbols::{Progress, Watch};
use signal_hook::consts::SIGINT;

use crate::progress::{Bar, Mebibytes, with_line};

/// Runs `work`, which reports its progress to the given watch. If the standard error output is a
/// terminal and the work takes longer than a moment, a line there shows the progress. During
/// downloads, Ctrl-C skips all of them; another one ends the program as usual.
pub(super) fn shown<T>(work: impl FnOnce(Watch<'_>) -> T) -> T {
    let interrupts = &*INTERRUPTS;
    let line = ProgressLine::default();
    let progress = |progress: Progress| {
        interrupts.note(&progress);
        line.update(progress);
    };
    let watch = Watch {
        progress: Some(&progress),
        skip_downloads: Some(&interrupts.skip),
    };
    let outcome = with_line(|| line.lock().to_string(), || work(watch));
    interrupts.done();
    outcome
}

/// The effect of Ctrl-C. There is one for the whole program, because signal handlers stay
/// installed: they decide by these flags.
struct Interrupts {
    skip: Arc<AtomicBool>,
    /// Whether Ctrl-C ends the program.
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
        // In this order: the first handler ends the program only if an earlier Ctrl-C set the flag.
        // If they cannot be installed, Ctrl-C simply ends the program.
        let _ = signal_hook::flag::register_conditional_default(SIGINT, Arc::clone(&self.fatal))
            .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&self.fatal)))
            .and_then(|_| signal_hook::flag::register(SIGINT, Arc::clone(&self.skip)));
    }

    /// Makes Ctrl-C end the program again.
    fn done(&self) {
        self.fatal.store(true, Ordering::Relaxed);
    }
}

/// Whether our parent made us ignore this signal, as shells do with background jobs.
fn is_ignored(signal: i32) -> bool {
    let status = prof_procfs::Task::this_process().status();
    status.is_ok_and(|status| status.ignores(signal))
}

/// The progress line and its content.
#[derive(Default)]
struct ProgressLine {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// The number of symbolized addresses, and their total.
    resolved: Option<(usize, usize)>,
    /// The current ones.
    downloads: Vec<Download>,
}

struct Download {
    module: String,
    /// Bytes so far, and in all.
    received: u64,
    total: Option<u64>,
}

impl ProgressLine {
    fn update(&self, progress: Progress) {
        let mut state = self.lock();
        match progress {
            Progress::Resolved { done, total } => state.resolved = Some((done, total)),
            Progress::Download {
                module,
                received,
                total,
            } => {
                state.downloads.retain(|download| download.module != module);
                state.downloads.push(Download {
                    module,
                    received,
                    total,
                });
            }
            _ => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.resolved, &self.downloads[..]) {
            (Some((done, total)), _) => {
                let done = (done as u64, total as u64);
                write!(
                    f,
                    "{}",
                    Bar {
                        what: "naming",
                        done
                    }
                )
            }
            (None, []) => f.write_str("looking for debug info"),
            (None, downloads) => {
                write!(f, "downloading debug info (Ctrl-C skips)")?;
                for download in downloads.iter().rev() {
                    write!(f, " {} {}", download.module, Mebibytes(download.received))?;
                    if let Some(total) = download.total {
                        write!(f, "/{}", Mebibytes(total))?;
                    }
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_line_says() {
        let line = ProgressLine::default();
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
