//! The flags of `prof top`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use prof_events::CallGraph;
use prof_report::Pattern;

use super::quantity::{
    CpuList, parse_count, parse_duration, parse_period, parse_pid, parse_rows, parse_tid,
};
use super::record::{RateFlag, SamplerFlag, SamplingFlags, parse_call_graph};
use super::target::TargetSelection;

/// `prof top [OPTIONS]`, of everything or of a target.
#[derive(Debug, Args)]
#[command(
    override_usage = "prof top [OPTIONS]\n       prof top [OPTIONS] --pid PID[,PID...]\n       prof top [OPTIONS] --name PATTERN\n       prof top [OPTIONS] [--] COMMAND [ARGS]..."
)]
pub(crate) struct TopFlags {
    /// Events to sample, as for `prof record` [default: cycles, or cpu-clock in virtual machines
    /// and without hardware counters]
    #[arg(short, long = "event", value_name = "EVENTS")]
    events: Vec<String>,

    /// Watch where threads wait (off-CPU time), instead of where they run
    #[arg(long, conflicts_with = "events")]
    off_cpu: bool,

    /// Samples per second of each thread, or `max` for the kernel's maximum [default: 99; with -e
    /// or --off-cpu as for `prof record`]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = RateFlag::parse_frequency)]
    rate: Option<RateFlag>,

    /// Take a sample every PERIOD events (clocks: nanoseconds), instead of at a frequency
    #[arg(short = 'c', long = "count", value_name = "PERIOD", conflicts_with = "rate", value_parser = parse_period)]
    period: Option<u64>,

    /// How to find callers: dwarf[,BYTES], fp, lbr or none, as for `prof record`
    #[arg(long, value_name = "HOW", default_value = "dwarf", value_parser = parse_call_graph)]
    call_graph: CallGraph,

    /// Accepted for perf's sake: call graphs are recorded anyway
    #[arg(short = 'g', hide = true)]
    with_call_graph: bool,

    /// How to sample: perf, ptrace or auto, as for `prof record`
    #[arg(long, value_name = "MEANS", default_value = "auto")]
    sampler: SamplerFlag,

    /// What to show
    #[command(flatten)]
    show: ShowFlags,

    /// File for recordings of the key `w`: FILE with the time added to its name
    #[arg(short, long, value_name = "FILE", default_value = SamplingFlags::DEFAULT_OUTPUT)]
    output: PathBuf,

    /// Watch running processes, with all their threads and later children
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', conflicts_with = "command", value_parser = parse_pid)]
    pids: Vec<i32>,

    /// Watch running threads, without the other threads of their processes
    #[arg(short, long = "tid", value_name = "TID", value_delimiter = ',', conflicts_with_all = ["command", "pids"], value_parser = parse_tid)]
    tids: Vec<i32>,

    /// Watch running processes whose name or program name matches this regular expression
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["command", "pids", "tids"])]
    name: Option<Pattern>,

    /// With --name: wait until such a process starts
    #[arg(long, requires = "name", conflicts_with_all = ["command", "all_cpus", "cpus", "cgroup"])]
    wait: bool,

    /// With -p or --name: also watch the children that run already, and theirs
    #[arg(long, conflicts_with_all = ["command", "tids", "all_cpus", "cpus", "cgroup"])]
    subprocesses: bool,

    /// Watch everything on all CPUs: the default for root. Plain users watch their own processes
    #[arg(short, long, conflicts_with_all = ["pids", "tids", "name"])]
    all_cpus: bool,

    /// Watch everything on these CPUs, as in 0,2-3
    #[arg(short = 'C', long = "cpu", value_name = "LIST", value_parser = CpuList::parse, conflicts_with_all = ["pids", "tids", "name"])]
    cpus: Option<CpuList>,

    /// Watch everything in this cgroup
    #[arg(short = 'G', long, value_name = "NAME", conflicts_with_all = ["pids", "tids", "name"])]
    cgroup: Option<String>,

    /// The command to run and watch, with its arguments. It does not get the terminal: its output
    /// there is lost, and its input is empty
    #[arg(trailing_var_arg = true)]
    command: Vec<OsString>,
}

/// What to show.
#[derive(Debug, Args)]
pub(crate) struct ShowFlags {
    /// Refresh after each TIME: seconds, or a number with ms, s, m or h
    #[arg(short, long, value_name = "TIME", default_value = "1s", value_parser = parse_interval)]
    pub delay: Duration,

    /// Omit kernel functions; their weight goes to their callers (the key K does the same)
    #[arg(short = 'K', long, alias = "hide_kernel_symbols")]
    pub no_kernel: bool,

    /// Print tables instead of the full screen (the default without a terminal, or with TERM=dumb)
    #[arg(long)]
    pub stdio: bool,

    /// Rows of each table
    #[arg(short = 'E', long, value_name = "N", default_value_t = 20, value_parser = parse_rows)]
    pub entries: usize,

    /// Stop after N tables
    #[arg(long, value_name = "N", value_parser = parse_count::<u64>)]
    pub iterations: Option<u64>,
}

impl TopFlags {
    /// Samples of a second only need to fill a screen.
    const USUAL_RATE: RateFlag = RateFlag::Hertz(99);

    /// Whether the flags name a target.
    pub(crate) fn names_a_target(&self) -> bool {
        let is_named = !(self.pids.is_empty() && self.tids.is_empty() && self.command.is_empty());
        let is_wide = self.all_cpus || self.cpus.is_some() || self.cgroup.is_some();
        is_named || is_wide || self.name.is_some()
    }

    /// Splits the flags: target and sampling, in the types of `prof record`, and display.
    pub(crate) fn split(self) -> (TargetSelection, SamplingFlags, ShowFlags) {
        let is_named = !(self.pids.is_empty() && self.tids.is_empty() && self.command.is_empty())
            || self.name.is_some();
        let target = TargetSelection {
            all_cpus: self.all_cpus || !is_named,
            pids: self.pids,
            tids: self.tids,
            name: self.name,
            wait: self.wait,
            subprocesses: self.subprocesses,
            cpus: self.cpus,
            cgroup: self.cgroup,
            command: self.command,
        };
        let is_usual = self.events.is_empty() && !self.off_cpu && self.period.is_none();
        let sampling = SamplingFlags {
            events: self.events,
            off_cpu: self.off_cpu,
            wall: false,
            alloc: None,
            every: None,
            rate: self.rate.or(is_usual.then_some(Self::USUAL_RATE)),
            period: self.period,
            call_graph: self.call_graph,
            with_call_graph: self.with_call_graph,
            no_inherit: false,
            sampler: self.sampler,
            no_unwind: false,
            mmap_pages: None,
            output: self.output,
            embed_symbols: false,
            no_runtime_help: true,
            duration: None,
            strict: false,
            quiet: true,
            verbose: false,
        };
        (target, sampling, self.show)
    }
}

/// Users cannot read faster, and each picture costs CPU time.
fn parse_interval(text: &str) -> Result<Duration, String> {
    const LEAST: Duration = Duration::from_millis(100);
    match parse_duration(text)? {
        short if short < LEAST => Err("it must be at least 100 ms".into()),
        time => Ok(time),
    }
}
