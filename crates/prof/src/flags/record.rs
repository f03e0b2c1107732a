//! The flags of `prof record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};

use super::course::CourseFlags;
use super::quantity::{parse_bytes, parse_duration};
use super::storage::StorageFlags;
use super::whom::WhomFlags;

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
    pub course: CourseFlags,

    /// How the recording is written
    #[command(flatten)]
    pub storage: StorageFlags,

    /// Who is recorded
    #[command(flatten)]
    pub whom: WhomFlags,

    /// Also draw the flamegraph of the recording to this SVG file
    #[arg(long, value_name = "FILE", conflicts_with = "rotation")]
    pub flamegraph: Option<PathBuf>,

    /// Also write the recording as a page for browsers to this file, as `prof report --html` does
    #[arg(long, value_name = "FILE", conflicts_with = "rotation")]
    pub html: Option<PathBuf>,
}

/// How to sample, as `prof record` and `cargo prof` both take it.
#[derive(Debug, Args)]
pub(crate) struct SamplingFlags {
    /// What to sample by, as perf writes it: page-faults, cycles:u, sched:sched_switch,
    /// uprobe:FILE:FUNCTION, '{cycles,instructions}:S', several with commas; `prof list` shows what
    /// there is [default: cycles, or cpu-clock on virtual machines and without hardware counters]
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub events: Vec<String>,

    /// Record where threads wait, off the CPUs, and for how long, instead of where they run
    #[arg(long, conflicts_with = "events")]
    pub off_cpu: bool,

    /// Record both where threads run and where they wait, as time in one view
    #[arg(long, conflicts_with_all = ["events", "off_cpu"])]
    pub wall: bool,

    /// Record who allocates memory, by bytes asked for or by calls (as root: with uprobes)
    #[arg(
        long,
        value_name = "WHAT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "bytes",
        conflicts_with_all = ["events", "off_cpu", "wall", "rate", "period"]
    )]
    pub alloc: Option<AllocFlag>,

    /// With --alloc: sample each Nth call, or once each so many bytes (with K, M or G)
    #[arg(long, value_name = "N|BYTES", requires = "alloc", value_parser = EveryFlag::parse)]
    pub every: Option<EveryFlag>,

    /// Samples per second of each thread, or `max` for the kernel's maximum [default: 999; each
    /// hit of a tracepoint, breakpoint or probe]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = RateFlag::parse_frequency)]
    pub rate: Option<RateFlag>,

    /// Take a sample each PERIOD events (nanoseconds for the clocks) instead of at a frequency
    #[arg(short = 'c', long = "count", value_name = "PERIOD", conflicts_with = "rate", value_parser = clap::value_parser!(u64).range(1..=i64::MAX as u64))]
    pub period: Option<u64>,

    /// How to find callers: dwarf[,BYTES of stack copied with each sample], fp (frame pointers,
    /// walked by the kernel), lbr (calls that the CPU keeps, some 30 at most; dwarf where it does not)
    /// or none
    #[arg(long, value_name = "HOW", default_value = "dwarf", value_parser = CallGraphFlag::parse)]
    pub call_graph: CallGraphFlag,

    /// Accepted for perf's sake: call graphs are recorded anyway
    #[arg(short = 'g', hide = true)]
    pub with_call_graph: bool,

    /// perf's, refused with a word on what to do
    #[arg(short = 'b', long, hide = true)]
    pub branch_any: bool,

    /// Do not sample new threads and child processes: of a command, its first thread only
    #[arg(short = 'i', long)]
    pub no_inherit: bool,

    /// By what means to sample: perf (perf_event_open), ptrace (threads are stopped for a moment:
    /// slower, user code only, needs no permission), or auto: perf, or ptrace where that is refused
    #[arg(long, value_name = "MEANS", default_value = "auto")]
    pub sampler: SamplerFlag,

    /// Keep registers and stack bytes in the file, to unwind in `prof report` (to reproduce a
    /// failed unwind; files get large)
    #[arg(long)]
    pub no_unwind: bool,

    /// Size of each CPU's ring buffer: a number of pages, or bytes with K, M or G
    #[arg(short, long, value_name = "PAGES|SIZE", value_parser = parse_ring)]
    pub mmap_pages: Option<u64>,

    /// Write the recording here; an existing FILE is kept as FILE.old; `-` is the standard output,
    /// and the command's goes where its errors go
    #[arg(short, long, value_name = "FILE", default_value = Self::DEFAULT_OUTPUT)]
    pub output: PathBuf,

    /// Put the names of all that was hit into the recording, to report it anywhere (as `prof
    /// archive` does)
    #[arg(long)]
    pub embed_symbols: bool,

    /// Stop after this time: seconds, or with ms, s, m, h (perf's -d is something else: addresses of
    /// data, which prof does not record)
    #[arg(short, long, value_name = "TIME", value_parser = parse_duration)]
    pub duration: Option<Duration>,

    /// Exit with status 3 when the verdict on the recording is bad or "too few samples"
    #[arg(long)]
    pub strict: bool,

    /// Say nothing but errors
    #[arg(short, long, conflicts_with = "verbose")]
    pub quiet: bool,

    /// Say more about what is done
    #[arg(short, long)]
    pub verbose: bool,
}

impl SamplingFlags {
    /// Where recordings go.
    pub(crate) const DEFAULT_OUTPUT: &'static str = "prof.data";
}

/// `--alloc[=WHAT]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum AllocFlag {
    /// Weigh each call by the bytes that it asks for
    Bytes,
    /// Weigh all calls the same
    Calls,
}

/// `--every N|BYTES`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EveryFlag {
    /// Each so many calls.
    Calls(u64),
    /// Once each so many bytes.
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
    fn parse_frequency(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) => Err("the frequency must be at least 1 Hz".into()),
            Ok(hertz) => Ok(Self::Hertz(hertz)),
            Err(_) if text == "max" => Ok(Self::Max),
            Err(_) => Err("write samples per second, or max".into()),
        }
    }
}

/// `--sampler auto|perf|ptrace`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SamplerFlag {
    /// perf, or ptrace where that is refused.
    Auto,
    /// perf_event_open.
    Perf,
    /// Stopping threads.
    Ptrace,
}

/// `--call-graph dwarf[,BYTES]|fp|lbr|none`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallGraphFlag {
    /// Copy registers and stack, unwind with the programs' unwind tables.
    Dwarf {
        /// Bytes of stack to copy; as much as fits if `None`.
        dump: Option<u32>,
    },
    /// Let the kernel follow frame pointers.
    FramePointers,
    /// Let the CPU keep them.
    LastBranches,
    /// Addresses only.
    None,
}

impl CallGraphFlag {
    /// The largest multiple of 8 that fits the 16 bits of a record's size field.
    const MAX_DUMP: u64 = 65_528;

    fn parse(text: &str) -> Result<Self, String> {
        let (how, bytes) = match text.split_once(',') {
            Some((how, bytes)) => (how, Some(bytes)),
            None => (text, None),
        };
        match (how, bytes) {
            ("dwarf", None) => Ok(Self::Dwarf { dump: None }),
            ("dwarf", Some(bytes)) => Self::parse_dump(bytes),
            ("fp", None) => Ok(Self::FramePointers),
            ("none" | "no", None) => Ok(Self::None),
            ("lbr", None) => Ok(Self::LastBranches),
            _ => Err("write dwarf, dwarf,BYTES, fp, lbr or none".into()),
        }
    }

    fn parse_dump(bytes: &str) -> Result<Self, String> {
        match parse_bytes(bytes)?.next_multiple_of(8) {
            0 => Err("a stack dump needs at least 8 bytes".into()),
            // 64K is what people type when they mean the maximum.
            bytes if bytes <= 65_536 => Ok(Self::Dwarf {
                dump: Some(bytes.min(Self::MAX_DUMP) as u32),
            }),
            _ => Err(format!(
                "the kernel copies at most {} bytes of stack",
                Self::MAX_DUMP
            )),
        }
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
        let dwarf = |dump| Some(CallGraphFlag::Dwarf { dump });
        let cases = [
            ("dwarf", dwarf(None)),
            ("dwarf,8192", dwarf(Some(8192))),
            ("dwarf,8191", dwarf(Some(8192))),
            ("dwarf,64K", dwarf(Some(65_528))),
            ("dwarf,65K", None),
            ("dwarf,0", None),
            ("dwarf,", None),
            ("fp", Some(CallGraphFlag::FramePointers)),
            ("fp,8", None),
            ("none", Some(CallGraphFlag::None)),
            ("lbr", Some(CallGraphFlag::LastBranches)),
            ("lbr,8", None),
            ("", None),
        ];
        for (text, expected) in cases {
            assert_eq!(CallGraphFlag::parse(text).ok(), expected, "{text}");
        }
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
