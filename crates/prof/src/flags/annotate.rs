//! The flags of `prof annotate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::engine::ArgValueCompleter;
use prof_report::Sources;
use prof_report::view::annotate::Syntax;

use super::filter::FilterFlags;
use super::input::InputFlags;
use super::quantity::{parse_percent, parse_rows};
use super::{SymbolFlags, complete};

/// `prof annotate [FUNCTION|FILE] [-i FILE] [...]`
#[derive(Debug, Args)]
pub(crate) struct AnnotateFlags {
    /// A function name, a regular expression for functions, or a source file (its path or the end
    /// of it) [default: the function with the most self time; if its source is not there, the
    /// function with source that calls the most of such code]
    #[arg(value_name = "FUNCTION|FILE", add = ArgValueCompleter::new(complete::functions_and_files))]
    pub(crate) pattern: Option<String>,

    /// Input files
    #[command(flatten)]
    pub(crate) input: InputFlags,

    /// Show instructions, with the source lines between them
    #[arg(
        long,
        value_enum,
        value_name = "SYNTAX",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "att"
    )]
    pub(crate) asm: Option<SyntaxFlag>,

    /// Show up to LINES lines or instructions without samples around those that have some
    #[arg(short = 'C', long, value_name = "LINES", default_value_t = 5, value_parser = parse_rows)]
    pub(crate) context: usize,

    /// Look for source files in DIR: by their full paths, then without the first directories of
    /// these. May be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) source_path: Vec<PathBuf>,

    /// Replace FROM with TO at the start of source paths. May be repeated
    #[arg(long, value_name = "FROM=TO", value_parser = parse_map)]
    pub(crate) source_map: Vec<(PathBuf, PathBuf)>,

    /// Write the lines to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,

    /// Omit functions and files below PERCENT of the total
    #[arg(
        long,
        value_name = "PERCENT",
        default_value_t = 0.0,
        value_parser = parse_percent,
        help_heading = "Filters"
    )]
    pub(crate) min_percent: f64,

    /// Which samples and frames to show
    #[command(flatten)]
    pub(crate) filter: FilterFlags,

    /// How to name functions
    #[command(flatten)]
    pub(crate) symbols: SymbolFlags,
}

/// `--asm`
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum SyntaxFlag {
    /// AT&T syntax, as in GNU tools
    Att,
    /// Intel syntax
    Intel,
}

impl From<SyntaxFlag> for Syntax {
    fn from(flag: SyntaxFlag) -> Self {
        match flag {
            SyntaxFlag::Att => Self::Att,
            SyntaxFlag::Intel => Self::Intel,
        }
    }
}

impl AnnotateFlags {
    /// The places where source files are searched.
    pub(crate) fn sources(&self) -> Sources {
        Sources {
            maps: self.source_map.clone(),
            directories: self.source_path.clone(),
            ..Sources::beside(&self.input.inputs)
        }
    }
}

fn parse_map(text: &str) -> Result<(PathBuf, PathBuf), String> {
    match text.split_once('=') {
        Some((from, to)) if !from.is_empty() && !to.is_empty() => Ok((from.into(), to.into())),
        _ => Err("write FROM=TO: the beginning of source paths, and its replacement".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn maps_have_two_sides() {
        let map = ("/build".into(), "/home/me/src".into());
        assert_eq!(parse_map("/build=/home/me/src"), Ok(map));
        for bad in ["", "/build", "=/a", "/a="] {
            assert!(parse_map(bad).is_err(), "{bad}");
        }
    }
}
