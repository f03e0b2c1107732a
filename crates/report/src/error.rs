//! The errors.

use std::io;
use std::path::PathBuf;

use prof_model::{Quality, one_of};

use crate::pattern::InvalidPattern;

/// Why there is no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file can't be had at all.
    #[error(transparent)]
    File(#[from] prof_filemap::Error),
    /// A file holds no profile, or a damaged one.
    #[error("cannot read {}: {source}", path.display())]
    Input {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: Box<InputError>,
    },
    /// A filter or view needs data that the profile lacks.
    #[error("{asked} cannot be used: this profile has no {lacking}; recordings by prof have them")]
    Lacking {
        /// The filter or view.
        asked: &'static str,
        /// The missing data.
        lacking: &'static str,
    },
    /// Nothing is left to show.
    #[error("no samples to show: {0}")]
    NoSamples(NoSamples),
    /// The profile has no such event.
    #[error("the profile has no event {asked}; it has {}", known.join(", "))]
    NoSuchEvent {
        /// The requested event.
        asked: String,
        /// The events of the recording.
        known: Vec<String>,
    },
    /// No function on any stack matches.
    #[error(
        "no function on the stacks shown matches '{pattern}'{}",
        did_you_mean(similar)
    )]
    NoSuchFunction {
        /// The pattern.
        pattern: String,
        /// Names of functions that may have been meant, the likeliest first.
        similar: Vec<String>,
    },
    /// The pattern for functions is not a regular expression.
    #[error(transparent)]
    InvalidPattern(#[from] InvalidPattern),
    /// Two recordings that can't be compared.
    #[error("{before} and {after} measure different things; compare recordings of the same event")]
    DifferentEvents {
        /// The event of the first recording.
        before: String,
        /// The event of the second one.
        after: String,
    },
    /// The noise between runs cannot be measured.
    #[error("measuring noise takes two runs or more on each side")]
    TooFewRuns,
    /// Runs that are to be compared one by one are not as many on both sides.
    #[error("paired runs need the same number on each side")]
    UnpairedRuns,
    /// The report can't be written.
    #[error("cannot write the report")]
    Write(#[from] io::Error),
}

/// Why a file is no profile.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InputError {
    /// A recording that can't be read.
    #[error(transparent)]
    Recording(#[from] prof_perfdata::Error),
    /// None of the formats.
    #[error(
        "it is not a recording (prof.data, perf.data), nor the text of `perf script`, nor folded \
         stacks (lines like `main;work 12`), nor a profile of pprof, gperftools, jemalloc or V8"
    )]
    Unknown,
    /// What Go's profiles are with `debug=1` or `debug=2`.
    #[error(
        "it is a profile of Go as text, for people to read; fetch it without `debug=` (`curl -o \
         FILE http://HOST/debug/pprof/NAME`)"
    )]
    GoText,
    /// A directory with a file for each thread that wrote it.
    #[error(
        "it is a directory, into which `perf record --threads` wrote a file for each thread; \
         record without --threads"
    )]
    ManyFiles,
    /// Counts without samples.
    #[error(
        "`perf stat record` wrote it: it has counts, which `perf stat report` shows, and no samples"
    )]
    CountsOnly,
    /// A packed file that is cut off or damaged.
    #[error("its {format} data is damaged or cut off: {source}")]
    Packed {
        /// The packer.
        format: &'static str,
        /// The problem.
        source: io::Error,
    },
    /// A packed file that is huge.
    #[error(
        "it is packed by {format} and has more than 1 GiB when unpacked; unpack it first ({tool})"
    )]
    TooLarge {
        /// The packer.
        format: &'static str,
        /// What unpacks it.
        tool: &'static str,
    },
    /// A profile of another tool, or an archive.
    #[error("it is {what}; {remedy}")]
    Foreign {
        /// What it is.
        what: &'static str,
        /// How to get something that is read.
        remedy: &'static str,
    },
    /// A CPU profile of V8 that is cut off or damaged.
    #[error("it looks like a CPU profile of V8, but is damaged or cut off: {0}")]
    CpuProfile(serde_json::Error),
    /// A pprof profile that is cut off or damaged.
    #[error("it looks like a pprof profile, but is damaged or cut off")]
    DamagedPprof,
    /// A pprof profile that is made to fill the memory.
    #[error("it is a small pprof profile that would expand to several GiB")]
    PprofTooLarge,
    /// Not a single line of folded stacks.
    #[error("no line ends in a number, as lines of folded stacks do (line {line} is the first)")]
    Folded {
        /// The first bad line, from 1.
        line: usize,
    },
    /// Folded stacks with a weight that has a fraction.
    #[error(
        "the weight {weight} in line {line} is not a whole number; multiply all weights, by 1000 \
         say, and round them"
    )]
    FoldedFraction {
        /// The line, from 1.
        line: usize,
        /// Its weight.
        weight: String,
    },
    /// Folded stacks with two weights each.
    #[error(
        "each line has two weights, so it is a comparison already (of difffolded.pl); give \
         `prof diff` the two profiles that it compares"
    )]
    FoldedDifference,
    /// The stack dumps to unwind were not recorded.
    #[error(
        "it holds no stack dumps, which --unwinder and --check-stacks need: stacks were \
         unwound while recording, or not at all; record with `prof record --no-unwind` or \
         `perf record --call-graph dwarf`"
    )]
    NoStackCopies,
    /// A pprof profile that is a difference.
    #[error(
        "its samples have negative values, so it is a comparison already; give `prof diff` the \
         two profiles that it compares"
    )]
    NegativeValue,
}

/// Why there are no samples.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoSamples {
    /// There are none in the recording, for this reason.
    #[error("the recording has none: {0}")]
    Recorded(Box<str>),
    /// The filters leave none.
    #[error("the filters leave out all samples")]
    Left,
}

impl NoSamples {
    /// The recording has none.
    pub(crate) fn recorded(quality: &Quality) -> Self {
        let losses = quality.losses;
        let reason = match (losses.truncated_file, losses.too_large_file) {
            (_, true) => {
                "its compressed records hold more than any recording of this size should".into()
            }
            (true, false) => "it ends early, because it was cut off while it was written or \
                              copied, or is damaged"
                .into(),
            (false, false) => quality.why_no_samples(),
        };
        Self::Recorded(reason.into())
    }
}

fn did_you_mean(similar: &[String]) -> String {
    match similar {
        [] => String::new(),
        similar => format!("; did you mean {}?", one_of(similar)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recording_that_unpacks_to_too_much_was_not_cut_off() {
        let mut quality = Quality::default();
        quality.losses.truncated_file = true;
        let reason = NoSamples::recorded(&quality).to_string();
        assert!(reason.contains("cut off"), "{reason}");
        quality.losses.too_large_file = true;
        let reason = NoSamples::recorded(&quality).to_string();
        assert!(
            reason.contains("compressed records hold more") && !reason.contains("cut off"),
            "{reason}"
        );
    }
}
