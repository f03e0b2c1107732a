//! The flags of `prof stat`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};

use super::complete;
use super::quantity::{parse_count, parse_duration, parse_milliseconds, parse_pid, parse_tid};

/// `prof stat [OPTIONS] -- CMD ARGS...`, or with `-p`, `-t` or `-a`
#[derive(Debug, Args)]
#[command(
    override_usage = "prof stat [OPTIONS] [--] COMMAND [ARGS]...\n       prof stat [OPTIONS] --pid PID[,PID...]\n       prof stat [OPTIONS] --all-cpus [[--] COMMAND [ARGS]...]"
)]
pub(crate) struct StatFlags {
    /// Events to count, separated by commas, groups in braces; `prof list` shows all. May be
    /// repeated
    #[arg(short, long = "event", value_name = "EVENTS", add = ArgValueCompleter::new(complete::events))]
    pub events: Vec<String>,

    /// Run the command N times, and print the mean and the spread of each count
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = parse_count::<u32>, conflicts_with_all = ["interval", "pids", "tids", "all_cpus"])]
    pub repeat: u32,

    /// Print the counts every MS milliseconds
    #[arg(short = 'I', long = "interval-print", value_name = "MS", value_parser = parse_milliseconds)]
    pub interval: Option<u64>,

    /// Count in running processes, with all their threads
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with_all = ["tids", "all_cpus"], value_parser = parse_pid, add = ArgValueCandidates::new(complete::processes))]
    pub pids: Vec<i32>,

    /// With -p: also count in the children that run already, and theirs
    #[arg(long, requires = "pids")]
    pub subprocesses: bool,

    /// Count in running threads
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', conflicts_with = "all_cpus", value_parser = parse_tid)]
    pub tids: Vec<i32>,

    /// Count on all CPUs, while the command runs or until Ctrl-C
    #[arg(short, long)]
    pub all_cpus: bool,

    /// Count everything in this cgroup (as -a, for fewer processes)
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pids", "tids", "all_cpus"])]
    pub cgroup: Option<String>,

    /// Print the counts of each thread, also of child processes; with -a or --cgroup, of each CPU
    #[arg(long, visible_short_alias = 'A', visible_alias = "no-aggr")]
    pub per_thread: bool,

    /// Do not count in new threads and child processes
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// Stop after TIME: seconds, or a number with ms, s, m or h
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Print one JSON object per line, with perf's keys
    #[arg(short, long, conflicts_with = "separator")]
    pub json: bool,

    /// Print fields separated by SEP, in perf's order
    #[arg(short = 'x', long = "field-separator", value_name = "SEP")]
    pub separator: Option<String>,

    /// Write to FILE instead of the standard error output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The command to run and count, with its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pids", "tids", "all_cpus", "cgroup"], add = ArgValueCompleter::new(complete::command))]
    pub command: Vec<OsString>,
}
