//! The terminal while we draw on it, and its restoration.

use std::io::{self, Stdout, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::Duration;

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::{Hide, Show};
use ratatui::crossterm::event::{self, Event};
use ratatui::crossterm::execute;
use ratatui::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGCONT, SIGTSTP};

/// Owns the terminal until it is dropped, or a thread panics.
pub(super) struct Screen {
    pub terminal: Terminal<CrosstermBackend<Output>>,
    jobs: JobControl,
}

/// Signals that have come: SIGTSTP, as a shell's `kill %1` sends it, and SIGCONT.
struct JobControl {
    is_to_stop: Arc<AtomicBool>,
    has_continued: Arc<AtomicBool>,
}

impl JobControl {
    fn watch() -> io::Result<Self> {
        let [is_to_stop, has_continued] = [SIGTSTP, SIGCONT].map(|signal| {
            let flag = Arc::new(AtomicBool::new(false));
            signal_hook::flag::register(signal, Arc::clone(&flag)).map(|_| flag)
        });
        Ok(Self {
            is_to_stop: is_to_stop?,
            has_continued: has_continued?,
        })
    }
}

/// Ignores errors of writing to a terminal that is gone: [`Keyboard::wait`] reports that. Ratatui
/// would print the error, and so panic.
pub(super) struct Output(Stdout);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_gone(self.0.write(bytes), bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        unless_gone(self.0.flush(), ())
    }
}

fn unless_gone<T>(result: io::Result<T>, otherwise: T) -> io::Result<T> {
    match result {
        Err(error) if Errno::from_io_error(&error) == Some(Errno::IO) => Ok(otherwise),
        result => result,
    }
}

/// Whether the terminal is ours.
static TAKEN: AtomicBool = AtomicBool::new(false);
static PANICS: Once = Once::new();

impl Screen {
    /// Takes over the terminal: no line editing, another screen, no cursor.
    pub(super) fn take() -> io::Result<Self> {
        PANICS.call_once(|| {
            let report = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |panic| {
                // A panic message would be lost with our screen.
                give_back();
                report(panic);
            }));
        });
        let jobs = JobControl::watch()?;
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        // From here on, dropping this restores the terminal.
        let screen = Self {
            terminal: blank()?,
            jobs,
        };
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }

    /// Stops prof if it is to stop, and takes over the terminal again when prof continues: it was
    /// another program's meanwhile. Returns whether everything is to be drawn again.
    pub(super) fn follow_jobs(&mut self) -> io::Result<bool> {
        if self.jobs.is_to_stop.swap(false, Ordering::SeqCst) {
            give_back();
            // Its handler has replaced the default.
            signal_hook::low_level::emulate_default_handler(SIGTSTP)?;
            self.jobs.has_continued.store(true, Ordering::SeqCst);
        }
        if !self.jobs.has_continued.swap(false, Ordering::SeqCst) {
            return Ok(false);
        }
        // SIGSTOP leaves no time to give it back; what a shell has set is replaced either way.
        disable_raw_mode()?;
        enable_raw_mode()?;
        TAKEN.store(true, Ordering::SeqCst);
        self.terminal = blank()?;
        let everything = Clear(ClearType::All);
        execute!(io::stdout(), EnterAlternateScreen, everything, Hide)?;
        Ok(true)
    }
}

/// A terminal on which nothing is drawn yet.
fn blank() -> io::Result<Terminal<CrosstermBackend<Output>>> {
    Terminal::new(CrosstermBackend::new(Output(io::stdout())))
}

/// Keys from the keyboard. They are read in a separate thread that nothing waits for: crossterm
/// reads forever from a terminal that is gone.
pub(super) struct Keyboard {
    events: Receiver<Event>,
}

/// The outcome of waiting for a key.
#[derive(Debug)]
pub(super) enum Waited {
    Event(Event),
    Nothing,
    /// The terminal is gone.
    Gone,
}

impl Keyboard {
    /// Starts reading.
    pub(super) fn read() -> io::Result<Self> {
        let (read, events) = channel();
        let reader = thread::Builder::new().name("keyboard".into());
        reader.spawn(move || {
            while let Ok(event) = event::read() {
                if read.send(event).is_err() {
                    break;
                }
            }
        })?;
        Ok(Self { events })
    }

    /// Waits for a key, at most this long.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<Waited> {
        Ok(match self.events.recv_timeout(timeout) {
            Ok(event) => Waited::Event(event),
            Err(RecvTimeoutError::Timeout) if is_there()? => Waited::Nothing,
            Err(_) => Waited::Gone,
        })
    }
}

/// Whether the terminal that we draw on still exists.
fn is_there() -> io::Result<bool> {
    let screen = io::stdout();
    let mut polled = [PollFd::new(&screen, PollFlags::IN)];
    poll(&mut polled, Some(&Timespec::default()))?;
    let gone = PollFlags::HUP | PollFlags::ERR;
    Ok(!polled[0].revents().intersects(gone))
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

/// Restores the terminal once: afterwards, others write to it.
fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // Errors are ignored: a terminal that is gone needs nothing.
        let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
        let _ = disable_raw_mode();
    }
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::Command;
    use std::thread;

    use super::*;

    /// Runs a program on a terminal of its own, prints its output, and fails if the terminal is not
    /// restored.
    const DRIVER: &str = r#"
import fcntl, os, select, sys, termios
master, slave = os.openpty()
before = termios.tcgetattr(slave)
pid = os.fork()
if pid == 0:
    os.setsid()
    fcntl.ioctl(slave, termios.TIOCSCTTY, 0)
    for descriptor in (0, 1, 2):
        os.dup2(slave, descriptor)
    os.execv(sys.argv[1], sys.argv[1:])
ended = 0
while not ended or select.select([master], [], [], 0)[0]:
    ended = ended or os.waitpid(pid, os.WNOHANG)[0]
    if select.select([master], [], [], 0.01)[0]:
        sys.stdout.buffer.write(os.read(master, 65536))
assert termios.tcgetattr(slave) == before, "the terminal is as it was"
"#;

    /// The terminal output of one of the tests below.
    fn on_a_terminal(test: &str) -> String {
        let program = env::current_exe().expect("this program");
        let mut driver = Command::new("python3");
        driver.args(["-c", DRIVER]).arg(program);
        driver.args(["--ignored", "--nocapture", "--exact"]);
        let output = driver
            .arg(format!("top::terminal::tests::{test}"))
            .output()
            .expect("python3");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Both end while they have the terminal.
    #[test]
    #[ignore = "run by the test below, on a terminal"]
    fn panics() {
        let _screen = Screen::take().expect("a terminal");
        panic!("on purpose");
    }

    #[test]
    #[ignore = "run by the test below, on a terminal"]
    fn another_thread_panics() {
        let _screen = Screen::take().expect("a terminal");
        let other: thread::JoinHandle<()> = thread::spawn(|| panic!("on purpose"));
        assert!(other.join().is_err());
    }

    #[test]
    fn the_terminal_is_whole_after_a_panic() {
        if !prof_needs::tools(&["python3"]) {
            return;
        }
        for test in ["panics", "another_thread_panics"] {
            let written = on_a_terminal(test);
            let last = |code: &str| written.rfind(code).expect("it had the terminal");
            let (taken, given_back) = (last("\u{1b}[?1049h"), last("\u{1b}[?1049l"));
            let message = last("on purpose");
            assert!(taken < given_back && given_back < message, "{written:?}");
            assert!(last("\u{1b}[?25l") < last("\u{1b}[?25h"), "{written:?}");
        }
    }
}
