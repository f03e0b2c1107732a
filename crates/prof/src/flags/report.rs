//! The flags of `prof report`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use prof_model::{Pid, Tid};
use prof_report::{Filter, Pattern, Split};

use super::quantity::parse_moment;

/// `prof report [-i FILE] [...]`
#[derive(Debug, Args)]
pub(crate) struct ReportFlags {
    /// The recording, of prof or of perf
    #[arg(short, long, value_name = "FILE", default_value = "prof.data")]
    pub input: PathBuf,

    /// What to write
    #[command(flatten)]
    pub output: OutputFlags,

    /// Which samples and frames to show
    #[command(flatten)]
    pub filter: FilterFlags,

    /// Show names as the linker sees them
    #[arg(long)]
    pub no_demangle: bool,

    /// Exit with status 3 when the verdict on the recording is bad
    #[arg(long)]
    pub strict: bool,
}

/// What to write. Without any of these, a table of functions.
#[derive(Debug, Args)]
pub(crate) struct OutputFlags {
    /// Draw a flamegraph to this SVG file
    #[arg(long, value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,

    /// Title of the flamegraph
    #[arg(long, requires = "flamegraph")]
    pub title: Option<String>,

    /// Draw the flamegraph with its root at the top
    #[arg(long, requires = "flamegraph")]
    pub inverted: bool,

    /// Merge the flamegraph from the innermost function outwards: who calls what is hot
    #[arg(long, requires = "flamegraph")]
    pub reverse: bool,

    /// Write folded stacks to this file, or to the standard output with `-`
    #[arg(long, value_name = "FILE")]
    pub folded: Option<PathBuf>,

    /// Show at most this many rows of a table
    #[arg(short = 'n', long, value_name = "ROWS")]
    pub limit: Option<usize>,

    /// Leave out what is below so many percent of the whole
    #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
    pub min_percent: f64,

    /// Split stacks by what they ran in
    #[arg(long, value_enum, value_name = "WHAT")]
    pub by: Option<ByFlag>,
}

/// `--by`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ByFlag {
    /// Name of the thread
    Comm,
    /// Single threads
    Thread,
    /// Processes
    Process,
    /// CPUs
    Cpu,
}

impl From<ByFlag> for Split {
    fn from(flag: ByFlag) -> Self {
        match flag {
            ByFlag::Comm => Self::Name,
            ByFlag::Thread => Self::Thread,
            ByFlag::Process => Self::Process,
            ByFlag::Cpu => Self::Cpu,
        }
    }
}

/// Which samples and frames to show.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterFlags {
    /// Only this event; the one with most samples if not given
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,

    /// Only threads whose name matches
    #[arg(long, value_name = "REGEX")]
    pub comm: Option<Pattern>,

    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',')]
    pub pids: Vec<Pid>,

    /// Only these threads
    #[arg(long = "tid", value_name = "TID", value_delimiter = ',')]
    pub tids: Vec<Tid>,

    /// Only what ran on these CPUs
    #[arg(long = "cpu", value_name = "CPU", value_delimiter = ',')]
    pub cpus: Vec<u32>,

    /// Only from this time on, counted from the first sample (as 1.5, 250ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub since: Option<Duration>,

    /// Only before this time, counted from the first sample
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub until: Option<Duration>,

    /// Only stacks with code of a module whose name matches
    #[arg(long, value_name = "REGEX")]
    pub module: Option<Pattern>,

    /// Only stacks with a function whose name matches
    #[arg(long, visible_alias = "focus", value_name = "REGEX")]
    pub function: Option<Pattern>,

    /// No stacks with a function whose name matches
    #[arg(long, value_name = "REGEX")]
    pub ignore: Option<Pattern>,

    /// Leave out functions whose name matches; their weight goes to their callers
    #[arg(long, value_name = "REGEX")]
    pub hide: Option<Pattern>,

    /// Leave out kernel functions
    #[arg(long)]
    pub no_kernel: bool,

    /// Leave out inlined functions
    #[arg(long)]
    pub no_inline: bool,
}

impl From<FilterFlags> for Filter {
    fn from(flags: FilterFlags) -> Self {
        Self {
            event: flags.event,
            comm: flags.comm,
            pids: flags.pids,
            tids: flags.tids,
            cpus: flags.cpus,
            since: flags.since,
            until: flags.until,
            module: flags.module,
            function: flags.function,
            ignore: flags.ignore,
            hide: flags.hide,
            no_kernel: flags.no_kernel,
            no_inline: flags.no_inline,
        }
    }
}
