//! What to record.

use std::ffi::OsString;

use clap::Args;
use clap_complete::engine::{ArgValueCandidates, ArgValueCompleter};
use prof_report::Pattern;

use super::complete;
use super::quantity::{CpuList, parse_pid, parse_tid};

/// A command, running processes or threads, or everything on CPUs.
#[derive(Debug, Args)]
pub(crate) struct TargetSelection {
    /// Record running processes, with all their threads and later children
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with = "command", value_parser = parse_pid, add = ArgValueCandidates::new(complete::processes))]
    pub pids: Vec<i32>,

    /// Record running threads, without the other threads of their processes
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', conflicts_with_all = ["command", "pids"], value_parser = parse_tid)]
    pub tids: Vec<i32>,

    /// Record running processes whose name or program name matches this regular expression
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["command", "pids", "tids"])]
    pub name: Option<Pattern>,

    /// With --name: wait until such a process starts
    #[arg(long, requires = "name", conflicts_with_all = ["command", "all_cpus", "cpus", "cgroup"])]
    pub wait: bool,

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
