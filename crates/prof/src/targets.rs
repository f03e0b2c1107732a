//! Targets, and running processes by their names.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use prof_console::Console;
use prof_procfs::{Task, descendants, newest, processes};
use prof_recorder::{Signals, Target};
use prof_report::Pattern;

/// The requested target.
pub(crate) enum TargetRequest {
    /// A known target.
    Known(Target),
    /// Running processes with a matching name, or the first one to start.
    Named {
        /// The pattern for their name.
        pattern: Pattern,
        /// Whether to wait for one.
        wait: bool,
    },
    /// Running processes with the children that they have already.
    WithSubprocesses(Box<TargetRequest>),
}

impl TargetRequest {
    /// Finds processes by their names, if requested.
    ///
    /// # Errors
    ///
    /// No process matches.
    pub(crate) fn find(&self, signals: &Signals, console: Console) -> Result<Target> {
        match self {
            Self::Known(Target::Processes(ids)) => {
                Ok(Target::Processes(processes_of(ids, console)))
            }
            Self::Known(target) => Ok(target.clone()),
            Self::Named { pattern, wait } => named(pattern, *wait, signals).map(Target::Processes),
            Self::WithSubprocesses(parents) => Ok(match parents.find(signals, console)? {
                Target::Processes(pids) => Target::Processes(with_subprocesses(&pids)),
                other => other,
            }),
        }
    }

    /// Whether others take the place of processes that end before they can be sampled.
    pub(crate) fn is_by_name(&self) -> bool {
        match self {
            Self::Known(_) => false,
            Self::Named { .. } => true,
            Self::WithSubprocesses(parents) => parents.is_by_name(),
        }
    }
}

/// The processes that these ids mean, each once. As in perf, the id of a thread means its process:
/// `top -H` shows those.
pub(crate) fn processes_of(ids: &[i32], console: Console) -> Vec<i32> {
    let mut pids = Vec::new();
    for &id in ids {
        let pid = Task::of(id).process().unwrap_or(id);
        if pid != id {
            console.say(format_args!(
                "{id} is a thread of process {pid}: -p takes the whole process, -t only the thread"
            ));
        }
        if !pids.contains(&pid) {
            pids.push(pid);
        }
    }
    pids
}

/// Processes with their children that run already, and theirs.
pub(crate) fn with_subprocesses(pids: &[i32]) -> Vec<i32> {
    /// Each look finds those that were born during the one before. A process that forks all the
    /// time never ends: its later children inherit what samples it.
    const LOOKS: usize = 16;
    let mut all: BTreeSet<i32> = pids.iter().copied().collect();
    for _ in 0..LOOKS {
        let parents: Vec<i32> = all.iter().copied().collect();
        let new = descendants(&parents, &all);
        if new.is_empty() {
            break;
        }
        all.extend(new);
    }
    all.into_iter().collect()
}

/// The processes with a matching name, in ascending order; if there is none and `wait` is set,
/// waits for one.
///
/// # Errors
///
/// There is none, or a signal arrived while waiting.
fn named(pattern: &Pattern, wait: bool, signals: &Signals) -> Result<Vec<i32>> {
    let mut schedule = SearchSchedule::new(Instant::now());
    loop {
        // Also if each process that is found ends before it can be sampled.
        if signals.next().is_some_and(|signal| !signal.rotates()) {
            bail!("no process that matches '{pattern}' started");
        }
        let begin = Instant::now();
        if schedule.is_due(newest(), begin) {
            let found = matching(pattern);
            if !found.is_empty() {
                return Ok(found);
            }
            schedule.searched(begin, Instant::now());
        }
        if !wait {
            bail!(
                "no process matches '{pattern}': this regular expression must match its name as \
                 in `ps -e`, or the name of its program (--wait waits for one)"
            );
        }
        std::thread::sleep(SearchSchedule::INTERVAL);
    }
}

/// When to search all processes for a new one. A search reads files of each process, so it waits
/// until one has started.
struct SearchSchedule {
    /// The process or thread that started last.
    newest: Option<i32>,
    /// When it was seen first.
    last_start: Instant,
    last_search: Instant,
    /// How long that took.
    duration: Duration,
}

impl SearchSchedule {
    /// Short enough not to miss much of a new process.
    const INTERVAL: Duration = Duration::from_millis(5);
    /// How long a new process may still have its parent's name: until it calls execve.
    const NAMING: Duration = Duration::from_millis(200);
    /// The time between searches if none has started: old ones may change their names, too.
    const SELDOM: Duration = Duration::from_millis(500);
    /// Searches take at most one part in this many of a CPU where processes start all the time.
    const PART: u32 = 20;

    fn new(now: Instant) -> Self {
        Self {
            newest: None,
            last_start: now,
            last_search: now,
            duration: Duration::ZERO,
        }
    }

    fn searched(&mut self, begin: Instant, end: Instant) {
        self.last_search = end;
        self.duration = end.duration_since(begin);
    }

    /// Whether to search now, when this process or thread is the [newest].
    fn is_due(&mut self, newest: Option<i32>, now: Instant) -> bool {
        if newest != self.newest {
            self.newest = newest;
            self.last_start = now;
        }
        let pause = match now.duration_since(self.last_start) < Self::NAMING {
            true => (self.duration * Self::PART).min(Self::SELDOM),
            false => Self::SELDOM,
        };
        now.duration_since(self.last_search) >= pause
    }
}

fn matching(pattern: &Pattern) -> Vec<i32> {
    let own = std::process::id() as i32;
    let others = processes().into_iter().filter(|&pid| pid != own);
    others.filter(|&pid| is_named(pid, pattern)).collect()
}

/// Compares the name of its main thread, and the file name of its first argument: the former is cut
/// off after 15 bytes.
fn is_named(pid: i32, pattern: &Pattern) -> bool {
    let process = Task::of(pid);
    let has_ended = || process.threads().is_err();
    if process.stat().is_ok_and(|stat| stat.state.has_ended()) && has_ended() {
        return false;
    }
    let first = process.program();
    let program = Path::new(OsStr::from_bytes(&first)).file_name();
    let names = [
        String::from_utf8_lossy(&process.name()).into_owned(),
        program.map_or(String::new(), |name| name.to_string_lossy().into_owned()),
    ];
    names
        .iter()
        .any(|name| !name.is_empty() && pattern.matches(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_child_is_found_by_its_name_and_we_are_not() {
        // Nobody else's: `named` waits for the first process of this name.
        let name = format!("sleep{}", std::process::id());
        let directory = tempfile::tempdir().expect("a directory");
        let program = directory.path().join(&name);
        std::os::unix::fs::symlink("/bin/sleep", &program).expect("linked");
        let mut child = std::process::Command::new(&program)
            .arg("60")
            .spawn()
            .expect("started");
        let pattern: Pattern = format!("^{name}$").parse().expect("a pattern");
        let signals = Signals::block().expect("signals");
        let found = named(&pattern, true, &signals).expect("found");
        assert_eq!(found, [child.id() as i32]);
        child.kill().expect("killed");
        // It is a zombie until its parent waits for it.
        let ended = || {
            Task::of(child.id() as i32)
                .stat()
                .is_ok_and(|it| it.state.has_ended())
        };
        while !ended() {
            std::thread::yield_now();
        }
        assert!(matching(&pattern).is_empty());
        child.wait().expect("waited for");
        let nobody: Pattern = "^no-such-name$".parse().expect("a pattern");
        let error = named(&nobody, false, &signals).expect_err("nobody");
        assert!(error.to_string().contains("--wait"), "{error}");
        let all: Pattern = ".".parse().expect("a pattern");
        assert!(!matching(&all).contains(&(std::process::id() as i32)));
    }

    #[test]
    fn processes_are_searched_when_one_starts() {
        let millis = Duration::from_millis;
        let start = Instant::now();
        let mut schedule = SearchSchedule::new(start);
        let mut searches = |newest: fn(u64) -> i32, times: std::ops::Range<u64>| {
            let mut count = 0;
            for time in times.step_by(5) {
                let now = start + millis(time);
                if schedule.is_due(Some(newest(time)), now) {
                    schedule.searched(now, now + millis(4));
                    count += 1;
                }
            }
            count
        };
        assert_eq!(searches(|_| 1, 0..5), 1, "at once");
        searches(|_| 1, 5..1000);
        assert_eq!(searches(|_| 1, 1000..11_000), 20, "none starts");
        assert_eq!(searches(|_| 2, 11_000..11_005), 1, "one starts");
        assert_eq!(searches(|_| 2, 11_005..11_205), 2, "it may call execve");
        let all_the_time = searches(|time| time as i32, 20_000..30_000);
        assert!((100..=125).contains(&all_the_time), "{all_the_time}");
    }
}
