//! The flags of `prof report`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use prof_report::Pattern;
use prof_report::format::flamegraph::PaletteBy;

use super::complete;
use super::filter::FilterFlags;
use super::input::{InputFlags, UnwinderFlag};
use super::quantity::{parse_percent, parse_rows, parse_within};
use super::sort::{ByFlag, Sort};
use super::symbols::SymbolFlags;

/// `prof report [FILE] [...]`
#[derive(Debug, Args)]
pub(crate) struct ReportFlags {
    /// The same as --input
    #[arg(value_name = "FILE", conflicts_with = "inputs")]
    files_to_read: Vec<PathBuf>,

    /// Input files
    #[command(flatten)]
    input: InputFlags,

    /// Outputs
    #[command(flatten)]
    pub output: OutputFlags,

    /// Which samples and frames to show
    #[command(flatten)]
    pub filter: FilterFlags,

    /// How to symbolize functions
    #[command(flatten)]
    pub symbols: SymbolFlags,

    /// Which unwinder to use for the stack dumps of a recording (`prof record --no-unwind`, `perf
    /// record --call-graph dwarf`)
    #[arg(long, value_enum, value_name = "WHO", default_value = "prof")]
    pub(crate) unwinder: UnwinderFlag,

    /// Exit with status 3 if the verdict on the recording is bad or "too few samples"
    #[arg(long)]
    pub strict: bool,
}

impl ReportFlags {
    /// The files to read.
    pub(crate) fn inputs(&self) -> &[PathBuf] {
        self.input.or_named(&self.files_to_read)
    }
}

/// `prof script [FILE] [...]`
#[derive(Debug, Args)]
pub(crate) struct ScriptFlags {
    /// The same as --input
    #[arg(value_name = "FILE", conflicts_with = "inputs")]
    files_to_read: Vec<PathBuf>,

    /// Input files
    #[command(flatten)]
    input: InputFlags,

    /// Which samples and frames to show
    #[command(flatten)]
    pub(crate) filter: FilterFlags,

    /// How to symbolize functions
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,
}

impl ScriptFlags {
    /// The files to read.
    pub(crate) fn inputs(&self) -> &[PathBuf] {
        self.input.or_named(&self.files_to_read)
    }
}

/// The outputs; by default a table of functions.
#[derive(Debug, Args)]
pub(crate) struct OutputFlags {
    /// Text on the standard output
    #[command(flatten)]
    pub(crate) text: TextFlags,

    /// Output files
    #[command(flatten)]
    pub(crate) files: FileFlags,

    /// Omit rows below PERCENT of the total
    #[arg(
        long,
        alias = "percent-limit",
        value_name = "PERCENT",
        default_value_t = 0.0,
        value_parser = parse_percent,
        help_heading = "Filters"
    )]
    pub(crate) min_percent: f64,

    /// Split the output by thread name (comm), thread, process or CPU
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Filters")]
    pub(crate) by: Option<ByFlag>,
}

/// The text on the standard output; by default a table of functions.
#[derive(Debug, Args)]
pub(crate) struct TextFlags {
    /// Show a call tree, from the outermost functions inwards
    #[arg(long, group = "text")]
    pub(crate) tree: bool,

    /// Show a tree of the callers of the functions whose name matches
    #[arg(long, value_name = "REGEX", group = "text", add = ArgValueCompleter::new(complete::functions))]
    pub(crate) callers: Option<Pattern>,

    /// Show a tree of the callees of the functions whose name matches
    #[arg(long, value_name = "REGEX", group = "text", add = ArgValueCompleter::new(complete::functions))]
    pub(crate) callees: Option<Pattern>,

    /// Show the activity of each thread over time, or write it to FILE (SVG). --by comm, process or
    /// cpu shows these instead of threads
    #[arg(
        long,
        value_name = "FILE",
        group = "text",
        num_args = 0..=1,
        require_equals = true
    )]
    pub(crate) timeline: Option<Option<PathBuf>>,

    /// Show a table of modules (dso), languages (language), thread names (comm), threads (tid),
    /// processes (pid) or CPUs (cpu) instead of functions (sym); comm,dso shows the modules of each
    /// comm. `total` (with callees) or `self` sets the order
    #[arg(
        short,
        long,
        value_name = "KEYS",
        group = "text",
        conflicts_with_all = ["by", "csv", "json"]
    )]
    pub(crate) sort: Option<Sort>,

    /// List where unwinding failed, by module and address
    #[arg(long, group = "text")]
    pub(crate) unwind_failures: bool,

    /// Unwind the stack dumps of the recording twice, and list where prof's unwinder and framehop
    /// differ, by module and address
    #[arg(long, group = "text", conflicts_with = "unwinder")]
    pub(crate) check_stacks: bool,

    /// List how much of threads' work has samples, by thread name
    #[arg(long, group = "text")]
    pub(crate) coverage: bool,

    /// Sort by total: a function with all its callees (as --sort total)
    #[arg(long, overrides_with = "no_children")]
    pub(super) children: bool,

    /// Sort by self, which is the default
    #[arg(long, hide = true, overrides_with = "children")]
    pub(super) no_children: bool,

    /// perf's name for --tree
    #[arg(
        short = 'g',
        long,
        value_name = "HOW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "graph",
        hide = true,
        conflicts_with = "tree"
    )]
    pub(super) call_graph: Option<String>,

    /// perf's flag for text output, which is the default here
    #[arg(long, hide = true)]
    stdio: bool,

    /// Show at most ROWS rows of a table, not the numbers of samples as perf's -n does (CSV and
    /// JSON have them)
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = parse_rows)]
    pub(crate) limit: Option<usize>,
}

/// The output files; `-` is the standard output.
#[derive(Debug, Args)]
#[command(next_help_heading = "Files (`-` is the standard output)")]
pub(crate) struct FileFlags {
    /// Write a flamegraph (SVG)
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,

    /// Write a page for any browser, with a timeline, flamegraphs, tables and source; it loads
    /// nothing
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Write a flame chart (SVG): the calls of each thread over time
    #[arg(long, value_name = "FILE")]
    pub(crate) flamechart: Option<PathBuf>,

    /// Title of the images
    #[arg(long)]
    pub(crate) title: Option<String>,

    /// Width of the images in pixels [default for flamegraphs and flame charts: that of the window]
    #[arg(long, value_name = "PIXELS", value_parser = |text: &str| parse_within::<u32>(text, 200..=100_000))]
    pub(crate) width: Option<u32>,

    /// What the colors of flamegraphs and flame charts show
    #[arg(long, value_enum, value_name = "WHAT", default_value = "kind")]
    pub(crate) palette: PaletteFlag,

    /// Draw flamegraphs and flame charts with their roots at the bottom
    #[arg(long)]
    pub(crate) upwards: bool,

    /// Accepted for old scripts: roots are at the top anyway
    #[arg(long, hide = true, conflicts_with = "upwards")]
    inverted: bool,

    /// Draw the flamegraph from the innermost functions outwards, to show the callers of hot ones
    #[arg(long, requires = "flamegraph")]
    pub(crate) reverse: bool,

    /// Write folded stacks, as stackcollapse does
    #[arg(long, value_name = "FILE")]
    pub(crate) folded: Option<PathBuf>,

    /// Write a pprof profile (gzipped profile.proto)
    #[arg(long, value_name = "FILE")]
    pub(crate) pprof: Option<PathBuf>,

    /// Write a profile for the Firefox Profiler (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) firefox: Option<PathBuf>,

    /// Write a profile for speedscope (JSON)
    #[arg(long, value_name = "FILE")]
    pub(crate) speedscope: Option<PathBuf>,

    /// Write the view as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Write the table of functions as CSV
    #[arg(long, value_name = "FILE")]
    pub(crate) csv: Option<PathBuf>,
}

impl OutputFlags {
    /// The split of tables, trees and pictures.
    pub(crate) fn split(&self) -> Option<ByFlag> {
        self.by.or_else(|| self.text.sort?.by)
    }
}

impl FileFlags {
    /// The output files, JSON first.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        let files = [
            &self.json,
            &self.flamegraph,
            &self.html,
            &self.flamechart,
            &self.folded,
            &self.pprof,
            &self.firefox,
            &self.speedscope,
            &self.csv,
        ];
        files.into_iter().flatten()
    }
}

/// `--palette`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum PaletteFlag {
    /// Languages of programs, and names of shared libraries
    Kind,
    /// Languages of functions
    Language,
    /// Modules of functions
    Module,
}

impl From<PaletteFlag> for PaletteBy {
    fn from(flag: PaletteFlag) -> Self {
        match flag {
            PaletteFlag::Kind => Self::Kind,
            PaletteFlag::Language => Self::Language,
            PaletteFlag::Module => Self::Module,
        }
    }
}
