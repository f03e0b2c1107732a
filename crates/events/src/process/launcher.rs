//! Starting a command so that sampling begins with its first instruction.

use std::ffi::OsString;
use std::io::{self, IsTerminal, PipeReader, PipeWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};

use prof_model::{Pid, Tid};
use rustix::process::Signal;

use crate::process::ending::Ending;
use crate::process::limits::Limits;
use crate::process::poll::wait_readable;
use crate::process::signals::Signals;

/// A program to start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Program {
    /// Its name or path, then its arguments.
    pub argv: Vec<OsString>,
    /// Variables to set in its environment, which is otherwise ours.
    pub environment: Vec<(OsString, OsString)>,
    /// The directory to run it in, if not the current one.
    pub directory: Option<PathBuf>,
    /// Whether its standard output goes to its standard error output, because ours is used for
    /// something else.
    pub stdout_is_stderr: bool,
    /// Whether `/dev/null` replaces the terminal in its three standard descriptors, because we draw
    /// on the terminal and read from it.
    pub terminal_is_ours: bool,
}

impl Program {
    /// A program and its arguments, to run here and with our environment.
    pub fn new<A: Into<OsString>>(argv: impl IntoIterator<Item = A>) -> Self {
        Self {
            argv: argv.into_iter().map(A::into).collect(),
            ..Self::default()
        }
    }

    fn command(&self) -> io::Result<Command> {
        let (program, arguments) = self.argv.split_first().ok_or(io::ErrorKind::InvalidInput)?;
        let mut command = Command::new(program);
        command.args(arguments);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if self.stdout_is_stderr {
            command.stdout(io::stderr().as_fd().try_clone_to_owned()?);
        }
        if self.terminal_is_ours {
            if io::stdin().is_terminal() {
                command.stdin(Stdio::null());
            }
            if io::stdout().is_terminal() {
                command.stdout(Stdio::null());
            }
            if io::stderr().is_terminal() {
                command.stderr(Stdio::null());
            }
        }
        Ok(command)
    }
}

/// A thread of ours that forks commands and does nothing else, until it is dropped.
///
/// The command and all its children inherit events that are opened on it. These events themselves
/// count nothing, so they can be changed for later heirs.
#[derive(Debug)]
pub struct Launcher {
    tid: Tid,
    orders: Sender<Command>,
    /// The result of the request: the child, after its `exec`.
    spawned: Receiver<io::Result<Child>>,
}

impl Launcher {
    /// Starts the thread.
    ///
    /// # Errors
    ///
    /// When no more threads can be created.
    pub fn start() -> io::Result<Self> {
        let (orders, order) = channel::<Command>();
        let (report, spawned) = channel();
        let (say_tid, tid) = channel();
        std::thread::Builder::new()
            .name("launcher".into())
            .spawn(move || {
                let _ = say_tid.send(rustix::thread::gettid().as_raw_pid());
                // It lives until there are no more requests: its events must not end before those
                // that inherited them.
                while let Ok(mut command) = order.recv() {
                    let _ = report.send(command.spawn());
                }
            })?;
        let tid = tid.recv().map_err(|_| panicked())?;
        Ok(Self {
            tid,
            orders,
            spawned,
        })
    }

    /// The thread, to open events on.
    pub fn tid(&self) -> Tid {
        self.tid
    }

    /// Hears how the child fared.
    fn wait(&self) -> io::Result<Child> {
        self.spawned.recv().unwrap_or_else(|_| Err(panicked()))
    }
}

/// A command that was forked but has not called `exec` yet. Dropping it ends it.
///
/// ```text
///   us:     fork ── its pid ── open events ── "go" ──────────┬── running
///   child:   └── waits ...................... read "go" ── exec
///                                                            └─ fails: errno ── NotStarted
/// ```
#[derive(Debug)]
pub struct HeldCommand {
    pid: Pid,
    program: PathBuf,
    /// `None` after it is released.
    waiting: Option<Waiting>,
}

/// Our side of the wait for `go`.
#[derive(Debug)]
struct Waiting {
    end: Ending,
    /// Closing it without writing to it makes the child give up.
    go: PipeWriter,
    /// Waits for the child's `exec`, as the standard library does.
    launcher: Launcher,
}

/// A command that runs.
#[derive(Debug)]
pub struct RunningCommand {
    child: Child,
    end: Ending,
    launcher: Launcher,
}

impl HeldCommand {
    /// Forks. Standard input, output and error are ours, the signal mask and the ignored signals
    /// are what they were before `signals` was made, and limits that we raised are as before.
    ///
    /// # Errors
    ///
    /// When no more processes or descriptors can be created, or `argv` is empty or holds a NUL.
    pub fn fork(program: &Program, signals: &Signals) -> io::Result<Self> {
        Self::fork_by(Launcher::start()?, program, signals)
    }

    /// Forks from this thread, so that the command inherits the events that are open on it.
    ///
    /// # Errors
    ///
    /// As [`fork`](Self::fork).
    pub fn fork_by(launcher: Launcher, program: &Program, signals: &Signals) -> io::Result<Self> {
        let mut command = program.command()?;
        let (wait, go) = io::pipe()?;
        let (pid, report) = io::pipe()?;
        let state = signals.state_before();
        let limits = Limits::before();
        let held = Held {
            wait,
            go: go.as_raw_fd(),
            report,
        };
        // SAFETY: between fork and exec the closure makes system calls only: read, write, close,
        // setrlimit, sigaction and sigmask; it neither allocates nor takes locks. Closing `go` is
        // right: the child's copy of it is used by nobody.
        unsafe {
            command.pre_exec(move || {
                state.restore();
                limits.iter().for_each(Limits::restore);
                held.report_and_wait()
            });
        }
        // `spawn` returns after exec, which waits for us: so it must be another thread's.
        launcher.orders.send(command).map_err(|_| panicked())?;
        match read_pid(pid) {
            Ok((pid, end)) => {
                let waiting = Waiting { end, go, launcher };
                Ok(Self {
                    pid,
                    program: program.argv.first().map(PathBuf::from).unwrap_or_default(),
                    waiting: Some(waiting),
                })
            }
            Err(error) => {
                drop(go);
                match launcher.wait() {
                    // It did not come to reporting its number, and this is why.
                    Err(cause) if cause.raw_os_error() != Some(libc::ECANCELED) => Err(cause),
                    _ => Err(error),
                }
            }
        }
    }

    /// The process id.
    pub fn pid(&self) -> Pid {
        self.pid
    }

    /// Makes the child call `exec`.
    ///
    /// # Errors
    ///
    /// The error of `exec`: `NotFound` if there is no such program (a shell then exits 127), any
    /// other if it cannot be executed (126).
    pub fn release(mut self) -> io::Result<RunningCommand> {
        let waiting = self.waiting.take();
        let mut waiting = waiting.ok_or(io::ErrorKind::InvalidInput)?;
        // If it cannot be written, the child is gone, and `spawn` returns why.
        let _ = waiting.go.write_all(&[GO]);
        drop(waiting.go);
        let child = waiting
            .launcher
            .wait()
            .map_err(|error| match error.kind() {
                io::ErrorKind::PermissionDenied if !is_anywhere(&self.program) => {
                    io::ErrorKind::NotFound.into()
                }
                _ => error,
            })?;
        Ok(RunningCommand {
            child,
            end: waiting.end,
            launcher: waiting.launcher,
        })
    }
}

impl Drop for HeldCommand {
    fn drop(&mut self) {
        // The child must end before we do: it reports to us that it gave up.
        if let Some(waiting) = self.waiting.take() {
            drop(waiting.go);
            let _ = waiting.launcher.wait();
        }
    }
}

/// Whether the command is a path, or in a folder of $PATH. If not, `execvp` failed with EACCES for
/// a missing command because of a folder that we may not read.
fn is_anywhere(command: &Path) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    command.components().count() > 1
        || std::env::split_paths(&path).any(|folder| folder.join(command).exists())
}

fn panicked() -> io::Error {
    io::Error::other("the launching thread panicked")
}

impl RunningCommand {
    /// The launcher that started it, to start another one with the same events. The command is left
    /// running.
    pub fn into_launcher(self) -> Launcher {
        self.launcher
    }

    /// The process id.
    pub fn pid(&self) -> Pid {
        self.child.id() as Pid
    }

    /// Sends a signal; nothing happens if the command has ended.
    pub fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            self.end.signal(signal);
        }
    }

    /// Waits until it ends.
    ///
    /// # Errors
    ///
    /// Another caller has waited for it.
    pub fn wait(&mut self) -> io::Result<ExitStatus> {
        loop {
            if let Some(status) = self.try_wait()? {
                return Ok(status);
            }
            wait_readable(&[self.as_fd()], None)?;
        }
    }

    /// How it ended, or `None` if it still runs.
    ///
    /// Not for real-time threads: the kernel removes the command's /proc entries, and may spin
    /// until another thread, which then gets no CPU, has done its part.
    ///
    /// # Errors
    ///
    /// Another caller has waited for it.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        // For a process that we trace, waiting would also consume the stops, which belong to the
        // tracer.
        match self.has_ended()? {
            true => self.child.try_wait(),
            false => Ok(None),
        }
    }

    /// Whether it has ended. Its status is still to be waited for.
    ///
    /// # Errors
    ///
    /// When the system refuses to say, which does not happen.
    pub fn has_ended(&self) -> io::Result<bool> {
        self.end.has_come()
    }
}

/// Readable when the command has ended.
impl AsFd for RunningCommand {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.end.as_fd()
    }
}

const GO: u8 = 1;

/// The child's ends of the pipes.
struct Held {
    wait: PipeReader,
    /// The child's copy of our end: as long as it is open, our closing goes unnoticed.
    go: i32,
    report: PipeWriter,
}

impl Held {
    /// In the child: reports our id and waits for the signal to start. Makes system calls only.
    fn report_and_wait(&self) -> io::Result<()> {
        // SAFETY: nothing else in the child uses this descriptor; getpid cannot fail.
        let pid = unsafe {
            libc::close(self.go);
            libc::getpid()
        };
        (&self.report).write_all(&pid.to_ne_bytes())?;
        let mut go = [0];
        match (&self.wait).read(&mut go) {
            Ok(1) if go == [GO] => Ok(()),
            Ok(_) => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
            Err(error) => Err(error),
        }
    }
}

fn read_pid(mut pipe: PipeReader) -> io::Result<(Pid, Ending)> {
    let mut pid = [0; 4];
    pipe.read_exact(&mut pid)?;
    let pid = Pid::from_ne_bytes(pid);
    let id = rustix::process::Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidData)?;
    Ok((pid, Ending::of_child(id)?))
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;

    use super::*;

    fn fork(argv: &[&str]) -> io::Result<HeldCommand> {
        let signals = Signals::block().expect("signalfd");
        HeldCommand::fork(&Program::new(argv), &signals)
    }

    fn check_exit(argv: &[&str], expected: (Option<i32>, Option<i32>)) {
        let mut command = fork(argv)
            .and_then(HeldCommand::release)
            .expect("it starts");
        let status = command.wait().expect("it ends");
        assert_eq!((status.code(), status.signal()), expected, "{argv:?}");
    }

    #[test]
    fn exit_codes_and_signals_come_through() {
        check_exit(&["true"], (Some(0), None));
        check_exit(&["sh", "-c", "exit 42"], (Some(42), None));
        check_exit(&["sh", "-c", "kill -9 $$"], (None, Some(9)));
        check_exit(&["sh", "-c", "kill -TERM $$"], (None, Some(15)));
    }

    #[test]
    fn a_command_that_has_ended_is_left_to_be_waited_for() {
        let command = fork(&["true"]).and_then(HeldCommand::release);
        let mut command = command.expect("it starts");
        wait_readable(&[command.as_fd()], None).expect("it ends");
        assert!(command.has_ended().expect("an answer"));
        // Its number is still its own.
        let stat = prof_procfs::Task::of(command.child.id() as i32).stat();
        assert!(stat.expect("a zombie").state.has_ended());
        assert!(command.wait().expect("its status").success());
    }

    #[test]
    fn the_result_of_exec_is_known() {
        let kind = |argv: &[&str]| {
            let result = fork(argv).and_then(HeldCommand::release);
            result.err().map(|error| error.kind())
        };
        assert_eq!(kind(&["/no/such/program"]), Some(io::ErrorKind::NotFound));
        assert_eq!(
            kind(&["no-such-program-anywhere"]),
            Some(io::ErrorKind::NotFound)
        );
        assert_eq!(
            kind(&["/etc/passwd"]),
            Some(io::ErrorKind::PermissionDenied)
        );
        assert_eq!(kind(&["/"]), Some(io::ErrorKind::PermissionDenied));
        assert_eq!(kind(&["true"]), None);
        assert!(fork(&[]).is_err());
        assert!(fork(&["a\0b"]).is_err());
    }

    #[test]
    fn a_command_that_is_not_released_never_runs() {
        let marker = std::env::temp_dir().join(format!("prof-launcher-{}", std::process::id()));
        let path = marker.to_string_lossy().into_owned();
        drop(fork(&["touch", &path]).expect("it forks"));
        assert!(!marker.exists());
    }

    #[test]
    fn the_command_has_the_signal_mask_of_before() {
        let script =
            r#"test "$(sed -n 's/^SigBlk:[[:space:]]*//p' /proc/self/status)" = 0000000000000000"#;
        check_exit(&["sh", "-c", script], (Some(0), None));
    }
}
