//! What to record.

use std::ffi::OsString;
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use prof_report::Pattern;

use super::complete;
use super::quantity::{CpuList, parse_duration, parse_pid, parse_tid};

/// A command, running processes or threads, or everything on CPUs.
#[derive(Debug, Args)]
pub(crate) struct TargetSelection {
    /// Record running processes, with all their threads and later children
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = parse_pid, add = ArgValueCandidates::new(complete::processes))]
    pub pids: Vec<i32>,

    /// Record running threads, without the other threads of their processes
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', conflicts_with = "pids", value_parser = parse_tid)]
    pub tids: Vec<i32>,

    /// Record running processes whose name or program name matches this regular expression
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["pids", "tids"])]
    pub name: Option<Pattern>,

    /// With --name: wait until such a process starts
    #[arg(long, requires = "name", conflicts_with_all = ["all_cpus", "cpus", "cgroup"])]
    pub wait: bool,

    /// With -p or --name: also record the children that run already, and theirs
    #[arg(long, conflicts_with_all = ["tids", "all_cpus", "cpus", "cgroup"])]
    pub subprocesses: bool,

    /// Record everything on all CPUs, while the command runs or until Ctrl-C
    #[arg(short, long, conflicts_with_all = ["pids", "tids", "name"])]
    pub all_cpus: bool,

    /// Record everything on these CPUs, as in 0,2-3 (as -a, on fewer CPUs)
    #[arg(short = 'C', long = "cpu", value_name = "LIST", value_parser = CpuList::parse, conflicts_with_all = ["pids", "tids", "name"])]
    pub cpus: Option<CpuList>,

    /// Record everything in this cgroup (as -a, for fewer processes)
    #[arg(short = 'G', long, value_name = "NAME", conflicts_with_all = ["pids", "tids", "name"])]
    pub cgroup: Option<String>,

    /// The command to run and record, with its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pids", "tids", "name", "all_cpus", "cpus", "cgroup"], add = ArgValueCompleter::new(complete::command))]
    pub command: Vec<OsString>,
}

impl TargetSelection {
    /// Takes the time out of `-p PID -- sleep 5`, which is how perf records running processes for a
    /// time.
    ///
    /// # Errors
    /// There is another command beside running processes or threads.
    pub(crate) fn take_sleep(&mut self) -> Result<Option<Duration>> {
        let is_running = self.name.is_some() || !(self.pids.is_empty() && self.tids.is_empty());
        match is_running {
            true => take_sleep(&mut self.command),
            false => Ok(None),
        }
    }
}

/// The time of the command `sleep TIME`, which is then removed; `None` if there is no command.
///
/// # Errors
/// It is another command.
pub(crate) fn take_sleep(command: &mut Vec<OsString>) -> Result<Option<Duration>> {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    let time = match &words[..] {
        [] => return Ok(None),
        [sleep, time] if sleep == "sleep" => parse_duration(time).ok(),
        _ => None,
    };
    let Some(time) = time else {
        bail!(
            "running processes or a command, not both: -d 5 ends after five seconds, as `sleep 5` \
             in the place of {} does",
            command[0].display()
        );
    };
    command.clear();
    Ok(Some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_of_a_sleep_is_a_duration() {
        let check = |words: &[&str], expected: Option<u64>| {
            let mut command = words.iter().map(OsString::from).collect();
            let taken = take_sleep(&mut command).ok();
            let expected = expected.map(Duration::from_millis);
            assert_eq!(taken.flatten(), expected, "{words:?}");
        };
        check(&["sleep", "5"], Some(5000));
        check(&["sleep", "0.25"], Some(250));
        check(&["sleep", "1m"], Some(60_000));
        check(&[], None);
        check(&["sleep"], None);
        check(&["true", "5"], None);
        assert!(take_sleep(&mut vec!["true".into()]).is_err());
    }
}
