//! The flags of `prof diff`.

use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use prof_report::Pattern;
use prof_report::view::diff::Basis;

use super::filter::FilterFlags;
use super::quantity::{parse_points, parse_rows};
use super::symbols::SymbolFlags;

/// `prof diff BEFORE AFTER [...]`
#[derive(Debug, Default, Args)]
pub(crate) struct DiffFlags {
    /// The older recording; folded stacks and pprof profiles work, too
    #[arg(default_value = "prof.data.old")]
    pub(crate) before: PathBuf,

    /// The newer recording
    #[arg(default_value = "prof.data")]
    pub(crate) after: PathBuf,

    /// Write a flamegraph of AFTER (SVG), where growth is red and shrinkage is blue
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph: Option<PathBuf>,

    /// Write a flamegraph of BEFORE in the same colors, which shows functions that are gone
    #[arg(long, value_name = "FILE")]
    pub(crate) flamegraph_before: Option<PathBuf>,

    /// Write a page for browsers with both recordings and what changed; it compares shares
    /// (`--normalize weight`)
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,

    /// Print the table as Markdown
    #[arg(long)]
    pub(crate) markdown: bool,

    /// Write the comparison to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// What to compare
    #[arg(long, value_enum, value_name = "BY", default_value = "weight")]
    pub(crate) normalize: NormalizeFlag,

    /// Exit with status 3 if the self share of a function grew by more than POINTS percentage
    /// points, beyond chance; with REGEX, if the share of a matching function and all that it calls
    /// did. Over all functions together, chance does this in 1 of 100 comparisons. With
    /// `--normalize run` or `rate`, growth of the total counts, too. May be repeated
    #[arg(long, value_name = "POINTS[:REGEX]")]
    pub(crate) fail_above: Vec<GrowthLimit>,

    /// Show at most ROWS rows
    #[arg(short = 'n', long, value_name = "ROWS", value_parser = parse_rows)]
    pub(crate) limit: Option<usize>,

    /// Omit functions whose share changed by less than POINTS percentage points
    #[arg(long, value_name = "POINTS", default_value_t = 0.0, value_parser = parse_points)]
    pub(crate) min_change: f64,

    /// Which samples and frames to compare
    #[command(flatten)]
    pub(crate) filter: FilterFlags,

    /// How to symbolize functions
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,
}

/// `--normalize`
#[derive(Clone, Copy, Debug, Default, ValueEnum)]
pub(crate) enum NormalizeFlag {
    /// Shares of the total of each recording
    #[default]
    Weight,
    /// Totals: each recording is one run of the same work
    Run,
    /// Totals per second: each recording is a part of continuous work
    Rate,
}

impl From<NormalizeFlag> for Basis {
    fn from(flag: NormalizeFlag) -> Self {
        match flag {
            NormalizeFlag::Weight => Self::Weight,
            NormalizeFlag::Run => Self::Run,
            NormalizeFlag::Rate => Self::Rate,
        }
    }
}

/// `--fail-above`
#[derive(Clone, Debug)]
pub(crate) struct GrowthLimit {
    /// The limit in percentage points.
    pub(crate) points: f64,
    /// The functions that it applies to, with their callees; `None`: the self share of all
    /// functions.
    pub(crate) function: Option<Pattern>,
}

impl FromStr for GrowthLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, function) = match text.split_once(':') {
            Some((number, function)) => (number, Some(function)),
            None => (text, None),
        };
        let points = parse_points(number.trim_end_matches('%'));
        Ok(Self {
            points: points.map_err(|_| {
                "write a number of percentage points, such as 5, or 0.5:parse for the functions \
                 that match 'parse'"
            })?,
            function: function
                .map(|function| function.parse().map_err(|error| format!("{error}")))
                .transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let check = |text: &str, expected: Option<(f64, Option<&str>)>| {
            let limit: Result<GrowthLimit, _> = text.parse();
            let found = limit.ok().map(|limit| {
                let function = limit.function.map(|function| function.to_string());
                (limit.points, function)
            });
            let expected = expected.map(|(points, name)| (points, name.map(String::from)));
            assert_eq!(found, expected, "{text}");
        };
        check("5", Some((5.0, None)));
        check("0.5%", Some((0.5, None)));
        check("5:std::vec", Some((5.0, Some("std::vec"))));
        for bad in ["", "x", "-1", "NaN", "inf", "5:(", ":f"] {
            check(bad, None);
        }
    }
}
