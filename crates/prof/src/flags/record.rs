//! The flags of `prof record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use prof_events::CallGraph;

use super::complete;
use super::quantity::{parse_bytes, parse_duration, parse_period};
use super::schedule::ScheduleFlags;
use super::storage::StorageFlags;
use super::target::TargetSelection;

/// `prof record [OPTIONS] -- CMD ARGS...` or `prof record [OPTIONS] -p PID`
#[derive(Debug, Args)]
#[command(
    override_usage = "prof record [OPTIONS] [--] COMMAND [ARGS]...\n       prof record [OPTIONS] --pid PID[,PID...]\n       prof record [OPTIONS] --tid TID[,TID...]\n       prof record [OPTIONS] --name PATTERN [--wait]\n       prof record [OPTIONS] --all-cpus [[--] COMMAND [ARGS]...]"
)]
pub(crate) struct RecordFlags {
    /// How to sample and where to write
    #[command(flatten)]
    pub sampling: SamplingFlags,

    /// When to sample
    #[command(flatten)]
    pub schedule: ScheduleFlags,

    /// How the recording is written
    #[command(flatten)]
    pub storage: StorageFlags,

    /// What to record
    #[command(flatten)]
    pub target: TargetSelection,

    /// Also write a flamegraph of the recording (SVG)
    #[arg(long, value_name = "FILE", conflicts_with = "rotation")]
    pub flamegraph: Option<PathBuf>,

    /// Also write the recording as a page for browsers to this file, as `prof report --html` does
    #[arg(long, value_name = "FILE", conflicts_with = "rotation")]
    pub html: Option<PathBuf>,

    /// perf's; refused, and the error names the replacement
    #[arg(short = 'b', long, hide = true)]
    pub branch_any: bool,
}

/// How to sample: the flags that `prof record` and `cargo prof` share.
#[derive(Clone, Debug, Args)]
pub(crate) struct SamplingFlags {
    /// Events to sample: page-faults, cycles:u, sched:sched_switch, uprobe:FILE:FUNCTION,
    /// '{cycles,instructions}:S', or several with commas; `prof list` shows all [default: cycles,
    /// or cpu-clock in virtual machines and without hardware counters]
    #[arg(short, long = "event", value_name = "EVENTS", add = ArgValueCompleter::new(complete::events))]
    pub events: Vec<String>,

    /// Record where threads wait and for how long (off-CPU time), instead of where they run
    #[arg(long, conflicts_with = "events")]
    pub off_cpu: bool,

    /// Record both where threads run and where they wait (wall-clock time, but for waits for a CPU)
    #[arg(long, conflicts_with_all = ["events", "off_cpu"])]
    pub wall: bool,

    /// Record which code allocates memory, weighted by bytes or by calls (uprobes, needs root)
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "bytes",
        conflicts_with_all = ["events", "off_cpu", "wall", "rate", "period"]
    )]
    pub alloc: Option<AllocFlag>,

    /// With --alloc: sample every Nth call, or once every N bytes (with K, M or G)
    #[arg(long, value_name = "N|BYTES", requires = "alloc", value_parser = EveryFlag::parse)]
    pub every: Option<EveryFlag>,

    /// Samples per second of each thread, or `max` for the kernel's maximum [default: 999; every
    /// hit of tracepoints, breakpoints and probes]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = RateFlag::parse_frequency)]
    pub rate: Option<RateFlag>,

    /// Take a sample every PERIOD events (clocks: nanoseconds), instead of at a frequency
    #[arg(short = 'c', long = "count", value_name = "PERIOD", conflicts_with = "rate", value_parser = parse_period)]
    pub period: Option<u64>,

    /// How to find callers: dwarf[,BYTES] copies BYTES of each stack and unwinds it; fp has the
    /// kernel follow frame pointers; lbr reads the branch records of the CPU (about 30 calls; dwarf
    /// where it has none); none
    #[arg(long, value_name = "HOW", default_value = "dwarf", value_parser = parse_call_graph)]
    pub call_graph: CallGraph,

    /// Accepted for perf's sake: call graphs are recorded anyway
    #[arg(short = 'g', hide = true)]
    pub with_call_graph: bool,

    /// Do not sample new threads and child processes: of a command, its first thread only
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// How to sample: perf (perf_event_open); ptrace (stops threads: slower, user code only, needs
    /// no permission); auto: perf, or ptrace where perf is refused
    #[arg(long, value_name = "MEANS", default_value = "auto")]
    pub sampler: SamplerFlag,

    /// Store registers and stack dumps in the file and unwind them in `prof report`; files get
    /// large (for reports of unwinding bugs)
    #[arg(long)]
    pub no_unwind: bool,

    /// Size of the ring buffer of each CPU: a number of pages, or bytes with K, M or G
    #[arg(short, long, value_name = "PAGES|SIZE", value_parser = parse_ring)]
    pub mmap_pages: Option<u64>,

    /// Write the recording to FILE; an existing FILE becomes FILE.old. With `-`, the recording goes
    /// to the standard output, and the output of the command to the standard error output
    #[arg(short, long, value_name = "FILE", default_value = Self::DEFAULT_OUTPUT)]
    pub output: PathBuf,

    /// Store symbols in the recording, so that any machine can report it (as `prof archive` does)
    #[arg(long)]
    pub embed_symbols: bool,

    /// Leave runtimes alone: if the command is one, do not set ERL_FLAGS, MONO_ENV_OPTIONS or
    /// COMPlus_PerfMapEnabled (of .NET), which make it name its JIT code, and do not request
    /// symbols from running JVMs
    #[arg(long)]
    pub no_runtime_help: bool,

    /// Stop after TIME: seconds, or a number with ms, s, m or h (perf's -d records data addresses,
    /// which prof does not do)
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Exit with status 3 if the verdict on the recording is bad or "too few samples"
    #[arg(long)]
    pub strict: bool,

    /// Print only errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Print more details
    #[arg(short, long)]
    pub verbose: bool,
}

impl SamplingFlags {
    /// The default path of recordings.
    pub(crate) const DEFAULT_OUTPUT: &'static str = "prof.data";
}

/// `--alloc[=WHAT]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocFlag {
    /// Weight each call by the bytes that it requests
    Bytes,
    /// Weight all calls the same
    Calls,
}

/// `--every N|BYTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EveryFlag {
    /// One sample per this many calls.
    Calls(u64),
    /// One sample per this many bytes.
    Bytes(u64),
}

impl EveryFlag {
    fn parse(text: &str) -> Result<Self, String> {
        let every = match text.parse() {
            Ok(calls) => Self::Calls(calls),
            Err(_) => Self::Bytes(parse_bytes(text)?),
        };
        match every {
            Self::Calls(0) | Self::Bytes(0) => Err("it must be at least 1".into()),
            Self::Calls(calls) if i64::try_from(calls).is_err() => {
                Err(format!("it must be at most {}", i64::MAX))
            }
            every => Ok(every),
        }
    }
}

/// `-F HZ|max`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RateFlag {
    /// Samples per second.
    Hertz(u64),
    /// As many as the kernel allows.
    Max,
}

impl RateFlag {
    pub(super) fn parse_frequency(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("the frequency must be at least 1 Hz".into()),
            Ok(hertz) => Ok(Self::Hertz(hertz)),
            Err(_) if text == "max" => Ok(Self::Max),
            Err(_) => Err("write samples per second, such as 999, or max".into()),
        }
    }
}

/// `--sampler auto|perf|ptrace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplerFlag {
    /// perf, or ptrace where perf is refused
    Auto,
    /// perf_event_open
    Perf,
    /// Stop threads for a moment
    Ptrace,
}

/// `--call-graph dwarf[,BYTES]|fp|lbr|none`.
pub(super) fn parse_call_graph(text: &str) -> Result<CallGraph, String> {
    let (means, bytes) = match text.split_once(',') {
        Some((means, bytes)) => (means, Some(bytes)),
        None => (text, None),
    };
    match (means, bytes) {
        ("dwarf", None) => Ok(CallGraph::Dwarf { dump: None }),
        ("dwarf", Some(bytes)) => Ok(CallGraph::Dwarf {
            dump: Some(parse_dump(bytes)?),
        }),
        ("fp", None) => Ok(CallGraph::FramePointers),
        ("none" | "no", None) => Ok(CallGraph::None),
        ("lbr", None) => Ok(CallGraph::LastBranches),
        _ => Err("write dwarf, dwarf,BYTES, fp, lbr or none".into()),
    }
}

fn parse_dump(bytes: &str) -> Result<u32, String> {
    /// The largest multiple of 8 that fits the 16 bits of a record's size field.
    const MAX_DUMP: u64 = 65_528;
    match parse_bytes(bytes)?.next_multiple_of(8) {
        0 => Err("a stack dump needs at least 8 bytes".into()),
        // Users who type 64K mean the maximum.
        bytes if bytes <= 65_536 => Ok(bytes.min(MAX_DUMP) as u32),
        _ => Err(format!(
            "the kernel copies at most {MAX_DUMP} bytes of stack"
        )),
    }
}

/// perf's `-m`: a bare number counts pages, a unit makes it bytes.
fn parse_ring(text: &str) -> Result<u64, String> {
    const PAGE: u64 = 4096;
    let bytes = match text.parse::<u64>() {
        Ok(pages) => pages.checked_mul(PAGE).ok_or("that is too large")?,
        Err(_) => parse_bytes(text)?,
    };
    match bytes {
        0 => Err("the ring buffer needs at least one page".into()),
        bytes if bytes > 1 << 32 => Err("that is too large: at most 4G per CPU".into()),
        bytes => Ok(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn call_graphs() {
        let dwarf = |dump| Some(CallGraph::Dwarf { dump });
        let cases = [
            ("dwarf", dwarf(None)),
            ("dwarf,8192", dwarf(Some(8192))),
            ("dwarf,8191", dwarf(Some(8192))),
            ("dwarf,64K", dwarf(Some(65_528))),
            ("dwarf,65K", None),
            ("dwarf,0", None),
            ("dwarf,", None),
            ("fp", Some(CallGraph::FramePointers)),
            ("fp,8", None),
            ("none", Some(CallGraph::None)),
            ("lbr", Some(CallGraph::LastBranches)),
            ("lbr,8", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_call_graph(text).ok(), expected, "{text}");
        }
    }

    #[test]
    fn periods() {
        let check = |text, expected| assert_eq!(parse_period(text).ok(), expected, "{text}");
        check("100", Some(100));
        check("9223372036854775807", Some(i64::MAX.unsigned_abs()));
        for bad in ["0", "-1", "9223372036854775808", ""] {
            check(bad, None);
        }
        let refused = parse_period("record -F 99").unwrap_err();
        assert!(refused.contains("no perf command"), "{refused}");
    }

    #[test]
    fn frequencies() {
        let parse = |text| RateFlag::parse_frequency(text).ok();
        assert_eq!(
            ["999", "max", "0", "-1", "1.5", ""].map(parse),
            [
                Some(RateFlag::Hertz(999)),
                Some(RateFlag::Max),
                None,
                None,
                None,
                None
            ]
        );
    }

    #[test]
    fn rings_are_pages_or_bytes() {
        let parse = |text| parse_ring(text).ok();
        assert_eq!(
            ["128", "512K", "1M", "0", "8G", "x"].map(parse),
            [
                Some(128 * 4096),
                Some(512 << 10),
                Some(1 << 20),
                None,
                None,
                None
            ]
        );
    }
}
