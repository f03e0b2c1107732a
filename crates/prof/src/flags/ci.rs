//! The flags of `prof ci`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::Args;

use super::diff::GrowthLimit;
use super::filter::FilterFlags;
use super::quantity::{parse_rows, parse_within};
use super::record::RateFlag;
use super::symbols::SymbolFlags;

/// `prof ci [...] -- COMMAND`
#[derive(Debug, Args)]
pub(crate) struct CiFlags {
    /// Record the baseline, which later runs are compared with
    #[arg(long)]
    pub(crate) save_baseline: bool,

    /// Compare with PROGRAM instead of a baseline: it gets the command's arguments, and the runs of
    /// both alternate, so that a machine that is slower for a while is no change
    #[arg(long, value_name = "PROGRAM", conflicts_with = "save_baseline")]
    pub(crate) versus: Option<OsString>,

    /// Directory for recordings: those of the baseline are in DIR/baseline, others in DIR/new and
    /// DIR/versus
    #[arg(short, long, value_name = "DIR", default_value = "prof-ci")]
    pub(crate) output: PathBuf,

    /// Run the command N times; with more runs, smaller changes are found
    #[arg(short, long, value_name = "N", default_value_t = 10, value_parser = |text: &str| parse_within::<u32>(text, 2..=1000))]
    pub(crate) repeat: u32,

    /// Samples per second of each thread, as for `prof record`
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = valid_rate)]
    pub(crate) rate: Option<String>,

    /// Event to sample, as for `prof record`
    #[arg(short = 'e', value_name = "EVENT")]
    pub(crate) sampled: Option<String>,

    /// Exit with status 3 if, beyond the noise, the self share of a function grew by more than
    /// POINTS percentage points, or a run costs more by that many percent; with REGEX, only
    /// functions that match count. May be repeated
    #[arg(long, value_name = "POINTS[:REGEX]", default_value = "1")]
    pub(crate) fail_above: Vec<GrowthLimit>,

    /// Write the comparison to FILE (Markdown), not to the standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) markdown: Option<PathBuf>,

    /// Show at most ROWS functions
    #[arg(short = 'n', long, value_name = "ROWS", default_value_t = 10, value_parser = parse_rows)]
    pub(crate) limit: usize,

    /// Which samples and frames to compare
    #[command(flatten)]
    pub(crate) filter: FilterFlags,

    /// How to symbolize functions
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,

    /// The command to run; its output goes to the standard error output
    #[arg(required = true, trailing_var_arg = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Checks a rate, which goes on to `prof record` as it is.
fn valid_rate(text: &str) -> Result<String, String> {
    RateFlag::parse_frequency(text).map(|_| text.to_owned())
}
