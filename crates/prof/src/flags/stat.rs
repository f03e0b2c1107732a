//! The flags of `prof stat`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::quantity::parse_duration;

/// `prof stat [OPTIONS] -- CMD ARGS...`, or with `-p`, `-t` or `-a`
#[derive(Debug, Args)]
#[command(
    override_usage = "prof stat [OPTIONS] [--] COMMAND [ARGS]...\n       prof stat [OPTIONS] --pid PID[,PID...]\n       prof stat [OPTIONS] --all-cpus [[--] COMMAND [ARGS]...]"
)]
pub(crate) struct StatFlags {
    /// What to count: names separated by commas, groups in braces, as `prof list` lists them; may
    /// be given more than once
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub events: Vec<String>,

    /// Run the command N times; print means and their spread
    #[arg(short, long, value_name = "N", default_value = "1", value_parser = clap::value_parser!(u32).range(1..), conflicts_with_all = ["interval", "pids", "tids", "all_cpus"])]
    pub repeat: u32,

    /// Print what was counted every MS milliseconds
    #[arg(short = 'I', long = "interval-print", value_name = "MS", value_parser = clap::value_parser!(u64).range(1..))]
    pub interval: Option<u64>,

    /// Count running processes, with all their threads
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with_all = ["command", "tids", "all_cpus"], value_parser = clap::value_parser!(i32).range(1..))]
    pub pids: Vec<i32>,

    /// Count running threads
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', conflicts_with_all = ["command", "all_cpus"], value_parser = clap::value_parser!(i32).range(1..))]
    pub tids: Vec<i32>,

    /// Count everything on all CPUs, while the command runs or until Ctrl-C
    #[arg(short, long)]
    pub all_cpus: bool,

    /// Count what a cgroup does on all CPUs, as -a
    #[arg(long, value_name = "PATH", conflicts_with_all = ["pids", "tids", "all_cpus"])]
    pub cgroup: Option<String>,

    /// Tell threads apart, those of the command's children too; the CPUs of -a and --cgroup
    #[arg(long, visible_short_alias = 'A', visible_alias = "no-aggr")]
    pub per_thread: bool,

    /// Do not count the threads and processes that the command or process makes
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// Stop after this time: seconds, or with ms, s, m, h
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Print one JSON object a line, with the keys of perf
    #[arg(short, long, conflicts_with = "separator")]
    pub json: bool,

    /// Print fields separated by SEP, in the order of perf's
    #[arg(short = 'x', long = "field-separator", value_name = "SEP")]
    pub separator: Option<String>,

    /// Write to this file instead of the standard error output
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// The command to start and count, with its arguments
    #[arg(trailing_var_arg = true, required_unless_present_any = ["pids", "tids", "all_cpus", "cgroup"])]
    pub command: Vec<OsString>,
}
