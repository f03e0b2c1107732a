//! Running `prof`, as root or as a plain user, in a directory of its own.

use std::cell::Cell;
use std::ffi::{OsStr, OsString};
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use tempfile::TempDir;

use crate::stacks::Stacks;
use crate::target;

/// Options to sample user code only, by CPU time, which every machine can; weights are nanoseconds.
pub const USER_CODE: &[&str] = &["-e", "cpu-clock:u", "-F", "1999"];

/// The user who runs prof.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum User {
    /// The user who runs the tests, mostly root.
    Us,
    /// The user of this id, without groups and capabilities.
    Plain(u32),
}

/// Held by all sessions: many may run at once, or one alone.
static MACHINE: RwLock<()> = RwLock::new(());

thread_local! {
    /// Whether this test holds [`MACHINE`].
    static IN_SESSION: Cell<bool> = const { Cell::new(false) };
}

#[expect(dead_code, reason = "held until the session ends")]
enum Turn {
    Shared(RwLockReadGuard<'static, ()>, Held),
    Alone(RwLockWriteGuard<'static, ()>, Held),
}

/// A test holds one session at a time: two tests with two sessions each could deadlock.
struct Held;

impl Held {
    fn new() -> Self {
        let held_already = IN_SESSION.replace(true);
        assert!(!held_already, "this test has a session already");
        Self
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        IN_SESSION.set(false);
    }
}

/// A directory that everybody may read and write, and a user to run prof as.
pub struct Session {
    directory: TempDir,
    user: User,
    prof: PathBuf,
    _turn: Turn,
}

impl Session {
    /// A session as our own user, at the same time as other tests.
    pub fn new() -> Self {
        Self::start(User::Us, shared())
    }

    /// A session as a plain user, at the same time as other tests.
    pub fn plain_user() -> Self {
        Self::start(plain_user(), shared())
    }

    /// A session of a plain user with the machine to itself: a plain user's rings are small.
    pub fn plain_user_alone() -> Self {
        Self::start(plain_user(), alone())
    }

    /// A session with the machine to itself, for tests in which nothing may be lost.
    pub fn alone() -> Self {
        Self::start(User::Us, alone())
    }

    fn start(user: User, turn: Turn) -> Self {
        // Not below the target directory, which other users may not be allowed to enter.
        let directory = tempfile::Builder::new()
            .prefix("prof-test-")
            .tempdir()
            .unwrap();
        let open = |path: &Path, mode| {
            std::fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        };
        open(directory.path(), 0o777);
        let mut prof = target::prof().to_path_buf();
        if let User::Plain(_) = user {
            let copy = directory.path().join("prof");
            copy_executable(&prof, &copy);
            prof = copy;
        }
        Self {
            directory,
            user,
            prof,
            _turn: turn,
        }
    }

    /// The directory that prof runs in.
    pub fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// A path in the directory that prof runs in.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory().join(name)
    }

    /// Writes a file for prof to read.
    pub fn write(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }

    /// A copy of a program in our directory, where any user can run it.
    pub fn install(&self, program: &Path) -> PathBuf {
        let copy = self.path(&program.file_name().unwrap().to_string_lossy());
        copy_executable(program, &copy);
        copy
    }

    /// `prof` with these arguments, ready to be started by our user in our directory.
    pub fn prof<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Command {
        self.command(&self.prof, arguments)
    }

    /// The program `prof`.
    pub fn binary(&self) -> &Path {
        &self.prof
    }

    /// `prof` with these arguments, started by a launcher: its own path and arguments come first.
    pub fn prof_under<A: AsRef<OsStr>>(
        &self,
        launcher: &[OsString],
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        let (first, rest) = launcher.split_first().expect("a launcher");
        let mut command = self.command(Path::new(first), rest);
        command.arg(&self.prof).args(arguments);
        command
    }

    /// Any program, ready to be started by our user in our directory.
    pub fn command<A: AsRef<OsStr>>(
        &self,
        program: &Path,
        arguments: impl IntoIterator<Item = A>,
    ) -> Command {
        // Shells have background jobs ignore SIGINT, and the tests may be run by one.
        let mut command = Command::new("env");
        command.arg("--default-signal=INT,QUIT,HUP");
        if let User::Plain(user) = self.user {
            let ids = ["--reuid", "--regid"].map(|id| format!("{id}={user}"));
            command.arg("setpriv").args(ids);
            command.args(["--clear-groups", "--inh-caps=-all"]);
            command.env("HOME", "/nonexistent");
        }
        command
            .arg(program)
            .args(arguments)
            .current_dir(self.directory())
            .stdin(Stdio::null());
        command
    }

    /// Runs `prof` to its end.
    pub fn run<A: AsRef<OsStr>>(&self, arguments: impl IntoIterator<Item = A>) -> Outcome {
        Outcome::of(self.prof(arguments))
    }

    /// `prof record OPTIONS -- COMMAND`, which must go well.
    ///
    /// # Panics
    /// If it does not end with status 0.
    pub fn record<A: AsRef<OsStr>>(&self, options: &[&str], command: &[A]) -> Recorded<'_> {
        let mut arguments: Vec<&OsStr> = vec![OsStr::new("record")];
        arguments.extend(options.iter().map(OsStr::new));
        arguments.push(OsStr::new("--"));
        arguments.extend(command.iter().map(AsRef::as_ref));
        let outcome = self.run(arguments);
        outcome.assert_code(0);
        let mut options = options.iter();
        let named = options
            .find(|option| **option == "-o")
            .and_then(|_| options.next());
        Recorded {
            session: self,
            file: self.path(named.unwrap_or(&"prof.data")),
            outcome,
        }
    }
}

impl Default for Session {
    fn default() -> Self {
        Self::new()
    }
}

/// Copies a program so that everybody may execute it, at once. Another process copies: a file that
/// we have open for writing while another test forks is busy until that child has called exec.
///
/// # Panics
/// If it cannot be copied.
pub fn copy_executable(from: &Path, to: &Path) {
    let mut install = Command::new("install");
    install.args(["-m", "755"]).arg(from).arg(to);
    let status = install.status().expect("install can be started");
    assert!(status.success(), "{install:?}: {status}");
}

/// A plain user for one session, because all processes of a user share its limit of locked memory.
/// Its id is below 65,536, as most containers have no higher ones.
fn plain_user() -> User {
    static SESSIONS: AtomicU32 = AtomicU32::new(0);
    let session = SESSIONS.fetch_add(1, Ordering::Relaxed);
    let own = std::process::id().wrapping_mul(101).wrapping_add(session);
    User::Plain(20_000 + own % 40_000)
}

fn alone() -> Turn {
    let held = Held::new();
    Turn::Alone(
        MACHINE.write().unwrap_or_else(PoisonError::into_inner),
        held,
    )
}

fn shared() -> Turn {
    let held = Held::new();
    Turn::Shared(MACHINE.read().unwrap_or_else(PoisonError::into_inner), held)
}

/// How a run of `prof` ended.
#[derive(Debug)]
pub struct Outcome {
    /// The command line.
    pub line: String,
    /// How it ended.
    pub status: ExitStatus,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error output.
    pub stderr: String,
}

impl Outcome {
    /// Runs a command to its end.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn of(mut command: Command) -> Self {
        let output = command.output();
        let output = output.unwrap_or_else(|error| panic!("cannot start {command:?}: {error}"));
        Self::new(&command, output)
    }

    /// Runs a command to its end with this for its standard input.
    ///
    /// # Panics
    /// If it cannot be started.
    pub fn with_input(mut command: Command, input: &str) -> Self {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(input.as_bytes()).unwrap();
        drop(stdin);
        Self::new(&command, child.wait_with_output().unwrap())
    }

    /// The outcome of a command that has ended.
    pub fn new(command: &Command, output: Output) -> Self {
        let outcome = Self {
            line: format!("{command:?}"),
            status: output.status,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        };
        outcome.assert_calm();
        outcome
    }

    /// No input may cause a panic.
    fn assert_calm(&self) {
        let panicked = ["panicked at", "RUST_BACKTRACE", "internal error"];
        let calm = panicked.iter().all(|word| !self.stderr.contains(word));
        assert!(calm && self.status.code() != Some(101), "{self}");
    }

    /// # Panics
    /// If the exit status is another one.
    #[track_caller]
    pub fn assert_code(&self, code: i32) -> &Self {
        assert_eq!(self.status.code(), Some(code), "{self}");
        self
    }

    /// # Panics
    /// Unless it refused with status 1 or 2, said why in these words, and printed no result.
    #[track_caller]
    pub fn assert_refused(&self, words: &[&str]) -> &Self {
        assert!(matches!(self.status.code(), Some(1 | 2)), "{self}");
        self.assert_says(words)
    }

    /// # Panics
    /// If any of the words is missing from the standard error output.
    #[track_caller]
    pub fn assert_says(&self, words: &[&str]) -> &Self {
        let said = self.stderr.to_lowercase();
        for word in words {
            assert!(
                said.contains(&word.to_lowercase()),
                "nothing about {word:?}: {self}"
            );
        }
        self
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let signal = self.status.signal();
        let Self {
            line,
            status,
            stdout,
            stderr,
        } = self;
        write!(
            f,
            "{line}\n{status} {signal:?}\n-- stderr:\n{stderr}\n-- stdout:\n{stdout}"
        )
    }
}

/// A recording.
pub struct Recorded<'a> {
    session: &'a Session,
    /// The file.
    pub file: PathBuf,
    /// How `prof record` went.
    pub outcome: Outcome,
}

impl Recorded<'_> {
    /// How many samples prof says that it wrote.
    ///
    /// # Panics
    /// If it does not say.
    pub fn samples(&self) -> u64 {
        let said = &self.outcome.stderr;
        let before = said.split_once(" samples,").map(|(before, _)| before);
        let number = before.and_then(|before| before.rsplit(' ').next()?.parse().ok());
        number.unwrap_or_else(|| panic!("how many samples? {}", self.outcome))
    }

    /// `prof report` on the recording, which must go well.
    ///
    /// # Panics
    /// If it does not end with status 0.
    pub fn report(&self, options: &[&str]) -> Outcome {
        let file = self.file.as_os_str();
        let start = ["report", "-i"].map(OsStr::new).into_iter().chain([file]);
        let outcome = self
            .session
            .run(start.chain(options.iter().map(OsStr::new)));
        outcome.assert_code(0);
        outcome
    }

    /// All stacks, as `prof report --folded` prints them.
    pub fn stacks(&self) -> Stacks {
        Stacks::from_folded(&self.report(&["--folded", "-"]).stdout)
    }

    /// All stacks without inlined functions, as `perf script --no-inline` prints them too.
    pub fn physical_stacks(&self) -> Stacks {
        Stacks::from_folded(&self.report(&["--no-inline", "--folded", "-"]).stdout)
    }
}
