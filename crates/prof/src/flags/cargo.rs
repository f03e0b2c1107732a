//! The flags of `cargo prof`, named as cargo names them.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgAction, Args, Subcommand, ValueEnum};
use prof_report::Pattern;

use super::annotate::AnnotateFlags;
use super::diff::{DiffFlags, GrowthLimit};
use super::record::SamplingFlags;
use super::report::ReportFlags;
use super::view::ViewFlags;

/// `cargo prof [VERB] [OPTIONS] [-- ARGS...]`
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct CargoFlags {
    /// The verb, unless it is a flamegraph
    #[command(subcommand)]
    pub verb: Option<CargoVerb>,

    /// The flags without a verb
    #[command(flatten)]
    pub flamegraph: CargoRecordFlags,
}

/// The verbs of `cargo prof`.
#[derive(Debug, Subcommand)]
pub(crate) enum CargoVerb {
    /// Build a target, record it and draw its flamegraph (as without a command)
    Flamegraph(Box<CargoRecordFlags>),
    /// Build a target, record it and write a page for browsers: prof.html
    Html(Box<CargoRecordFlags>),
    /// Build a target and record it
    Record(Box<CargoRecordFlags>),
    /// Build a target and count events while it runs
    Stat(Box<CargoStatFlags>),
    /// Build a target and watch it while it runs
    Top(Box<CargoTopFlags>),
    /// As prof report
    Report(Box<ReportFlags>),
    /// As prof view
    View(ViewFlags),
    /// As prof annotate
    Annotate(Box<AnnotateFlags>),
    /// As prof diff
    Diff(Box<DiffFlags>),
}

/// What to build and record, and which pictures to draw.
#[derive(Debug, Args)]
pub(crate) struct CargoRecordFlags {
    /// Which target to build
    #[command(flatten)]
    pub target: TargetFlags,

    /// How to record it
    #[command(flatten)]
    pub sampling: SamplingFlags,

    /// Which pictures to draw
    #[command(flatten)]
    pub pictures: CargoPictureFlags,

    /// One recording for each benchmark
    #[command(flatten)]
    pub each: EachFlags,

    /// cargo-flamegraph's flags
    #[command(flatten)]
    pub foreign: CargoFlamegraphFlags,

    /// Arguments for the program
    #[arg(last = true)]
    pub args: Vec<OsString>,
}

/// The pictures of `cargo prof`.
#[derive(Debug, Args)]
#[command(next_help_heading = "Pictures")]
pub(crate) struct CargoPictureFlags {
    /// Write the flamegraph to FILE [default: flamegraph.svg, or the file of -o if it ends in .svg]
    #[arg(long, value_name = "FILE")]
    pub flamegraph: Option<PathBuf>,

    /// Write a page for browsers to FILE
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// Open the flamegraph or page in a browser
    #[arg(long)]
    pub open: bool,

    /// Omit inlined functions
    #[arg(long)]
    pub no_inline: bool,

    /// Show the functions of libtest, criterion and divan that call tests and benchmarks
    #[arg(long)]
    pub keep_harness: bool,
}

/// One recording for each benchmark, kept as Criterion keeps its baselines.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Benchmarks")]
pub(crate) struct EachFlags {
    /// Make a recording for each benchmark of --bench (Criterion, divan, libtest), or for those
    /// whose name matches REGEX, in target/prof/BENCH/BENCHMARK/
    #[arg(
        long,
        value_name = "REGEX",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["output", "flamegraph", "html"]
    )]
    pub each: Option<Pattern>,

    /// With --each: keep the recordings as NAME.data, not as new.data
    #[arg(long, value_name = "NAME", requires = "each", value_parser = parse_baseline)]
    pub save_baseline: Option<String>,

    /// With --each: compare each benchmark with its recording NAME.data, as `prof diff` does
    #[arg(long, value_name = "NAME", requires = "each", conflicts_with = "save_baseline", value_parser = parse_baseline)]
    pub baseline: Option<String>,

    /// With --baseline: exit with status 3 if a function grew, as for `prof diff`. May be repeated
    #[arg(long, value_name = "POINTS[:REGEX]", requires = "baseline")]
    pub fail_above: Vec<GrowthLimit>,
}

/// Checks a baseline's name: it becomes the name of a file.
fn parse_baseline(name: &str) -> Result<String, String> {
    let good = |c: char| c.is_alphanumeric() || "-_.".contains(c);
    match name {
        "" | "new" => Err("choose another name".into()),
        name if name.chars().all(good) && !name.starts_with('.') => Ok(name.to_owned()),
        _ => Err("write letters, digits, `-`, `_` and `.`".into()),
    }
}

/// Flags of cargo-flamegraph: accepted if prof does the same, or answered with their replacement.
#[derive(Debug, Args)]
pub(crate) struct CargoFlamegraphFlags {
    /// prof needs no root
    #[arg(long, hide = true, num_args = 0..=1, require_equals = true)]
    pub root: Option<Option<OsString>>,

    /// Colors are the same each time
    #[arg(long, hide = true)]
    pub deterministic: bool,

    /// A command that changes folded stacks
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub post_process: Option<OsString>,

    /// perf's command line
    #[arg(long, hide = true, value_name = "COMMAND")]
    pub cmd: Option<OsString>,

    /// Recordings are small without it
    #[arg(short = 'z', long, hide = true, num_args = 0..=1)]
    pub compression_level: Option<Option<u8>>,

    /// The picture is drawn whatever the program's exit status
    #[arg(long, hide = true)]
    pub ignore_status: bool,

    /// How to draw: `prof report` does that
    #[arg(long, hide = true, action = ArgAction::Count, aliases = ["reverse", "inverted"])]
    pub flamechart: u8,

    /// How to draw: `prof report` does that
    #[arg(long, hide = true, value_name = "VALUE", aliases = ["image-width", "min-width", "notes", "skip-after", "title", "subtitle"])]
    pub palette: Vec<OsString>,
}

/// `cargo prof top [OPTIONS] [-- ARGS...]`
#[derive(Debug, Args)]
pub(crate) struct CargoTopFlags {
    /// Which target to build
    #[command(flatten)]
    pub target: TargetFlags,

    /// Samples per second of each thread, as for `prof top`
    #[arg(short = 'F', long = "freq", value_name = "HZ")]
    pub rate: Option<String>,

    /// Arguments for the program
    #[arg(last = true)]
    pub args: Vec<OsString>,
}

/// `cargo prof stat [OPTIONS] [-- ARGS...]`
#[derive(Debug, Args)]
pub(crate) struct CargoStatFlags {
    /// Which target to build
    #[command(flatten)]
    pub target: TargetFlags,

    /// Events to count, as for `prof stat`
    #[arg(short, long = "event", value_name = "EVENTS")]
    pub events: Vec<String>,

    /// Run the program N times, and print the mean and the spread of each count
    #[arg(long, value_name = "N")]
    pub repeat: Option<u32>,

    /// Arguments for the program
    #[arg(last = true)]
    pub args: Vec<OsString>,
}

/// The targets that have unit tests and benchmarks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum UnitKind {
    /// In a binary.
    Bin,
    /// In the library.
    Lib,
}

/// Which Cargo target to build, and how.
#[derive(Debug, Default, Args)]
pub(crate) struct TargetFlags {
    /// Record this binary
    #[arg(long, short_alias = 'b', value_name = "NAME", group = "kind")]
    pub bin: Option<String>,

    /// Record this example
    #[arg(long, value_name = "NAME", group = "kind")]
    pub example: Option<String>,

    /// Record this integration test
    #[arg(long, value_name = "NAME", group = "kind")]
    pub test: Option<String>,

    /// Record this benchmark
    #[arg(long, value_name = "NAME", group = "kind")]
    pub bench: Option<String>,

    /// Record the unit tests of the library, or of the binary or library NAME
    #[arg(long, value_name = "NAME", group = "kind", num_args = 0..=1)]
    pub unit_test: Option<Option<String>>,

    /// Record the benchmarks inside the library, or inside the binary or library NAME
    #[arg(long, value_name = "NAME", group = "kind", num_args = 0..=1)]
    pub unit_bench: Option<Option<String>>,

    /// The target of --unit-test and --unit-bench if a binary and the library share a name
    #[arg(long, value_name = "KIND", hide = true)]
    pub unit_test_kind: Option<UnitKind>,

    /// The package that has the target
    #[arg(short, long, value_name = "SPEC")]
    pub package: Option<String>,

    /// Features to enable, separated by spaces or commas
    #[arg(short = 'f', long, value_name = "FEATURES")]
    pub features: Vec<String>,

    /// Enable all features
    #[arg(long)]
    pub all_features: bool,

    /// Do not enable the `default` feature
    #[arg(long)]
    pub no_default_features: bool,

    /// The profile to build with [default: release, for benchmarks: bench]
    #[arg(long, value_name = "NAME", alias = "package-profile")]
    pub profile: Option<String>,

    /// Build for release, which is the default
    #[arg(long, short, hide = true, conflicts_with_all = ["profile", "dev"])]
    pub release: bool,

    /// Build with the profile dev
    #[arg(long, conflicts_with = "profile")]
    pub dev: bool,

    /// Build for the target TRIPLE
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,

    /// Path to Cargo.toml
    #[arg(long, value_name = "PATH")]
    pub manifest_path: Option<PathBuf>,

    /// Directory for everything that Cargo builds
    #[arg(long, value_name = "DIR")]
    pub target_dir: Option<PathBuf>,

    /// Fail if Cargo.lock would change
    #[arg(long)]
    pub locked: bool,

    /// Do not use the network
    #[arg(long)]
    pub offline: bool,
}
