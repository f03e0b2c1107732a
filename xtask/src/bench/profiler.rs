//! The profilers that are compared.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{Paths, machine};
use crate::process;

/// The kind of a profiler, which decides how its output is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Prof,
    Perf,
    Samply,
    /// `prof stat` or `perf stat`, which records nothing.
    Counter,
}

/// A profiler with its options.
pub(super) struct Profiler {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    program: PathBuf,
    /// The arguments before the recorded command.
    options: Vec<String>,
    /// The recording's name.
    file: &'static str,
}

/// Samples in a recording, and those that are missing from it by the profiler's own account.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counts {
    pub(crate) samples: u64,
    pub(crate) lost: Option<u64>,
}

/// The installed profilers, each recording user code at this rate, or all code on all CPUs
/// (`wide`). Warns about missing ones.
pub(super) fn available(
    paths: &Paths,
    hertz: u32,
    wide: bool,
    allow_sysctl: bool,
) -> Vec<Profiler> {
    let rate = hertz.to_string();
    let how = match wide {
        true => vec!["record", "-a", "-e", "cpu-clock", "-F", &rate],
        false => vec!["record", "-e", "cpu-clock:u", "-F", &rate],
    };
    let mut options = how.clone();
    options.extend(["-o", "prof.data", "--"]);
    let mut profilers = vec![Profiler::new(
        "prof",
        Kind::Prof,
        paths.prof.clone(),
        &options,
    )];
    match process::find("perf") {
        Some(perf) => {
            for (name, stacks) in [
                ("perf, no stacks", None),
                ("perf fp", Some("fp")),
                ("perf dwarf 8 KB", Some("dwarf,8192")),
                ("perf dwarf 64 KB", Some("dwarf,65528")),
            ] {
                // Gigabytes in seconds.
                if name.ends_with("64 KB") && hertz > 2000 {
                    continue;
                }
                let mut options = how.clone();
                options.extend(
                    stacks
                        .into_iter()
                        .flat_map(|stacks| ["--call-graph", stacks]),
                );
                options.extend(["-o", "perf.data", "--"]);
                profilers.push(Profiler::new(name, Kind::Perf, perf.clone(), &options));
            }
        }
        None => println!("!!! perf is not installed: left out (apt-get install linux-perf)"),
    }
    if !wide {
        profilers.extend(samply(&rate, allow_sysctl));
    }
    profilers
}

fn samply(rate: &str, allow_sysctl: bool) -> Option<Profiler> {
    let Some(samply) = process::find("samply") else {
        println!("!!! samply is not installed: left out (cargo install samply)");
        return None;
    };
    if !allow_sysctl && machine::paranoid().is_ok_and(|level| level > 1) {
        println!(
            "!!! samply needs perf_event_paranoid <= 1: left out (--allow-sysctl sets it meanwhile)"
        );
        return None;
    }
    let options = [
        "record",
        "--save-only",
        "--rate",
        rate,
        "-o",
        "samply.json",
        "--",
    ];
    Some(Profiler::new("samply", Kind::Samply, samply, &options))
}

impl Profiler {
    pub(super) fn new(name: &'static str, kind: Kind, program: PathBuf, options: &[&str]) -> Self {
        let file = match kind {
            Kind::Prof => "prof.data",
            Kind::Perf => "perf.data",
            Kind::Samply => "samply.json",
            Kind::Counter => "",
        };
        Self {
            name,
            kind,
            program,
            options: options.iter().map(|&o| o.into()).collect(),
            file,
        }
    }

    /// The command that records `command`.
    pub(super) fn around(&self, command: impl IntoIterator<Item = PathBuf>) -> Vec<PathBuf> {
        let options = self.options.iter().map(PathBuf::from);
        [self.program.clone()]
            .into_iter()
            .chain(options)
            .chain(command)
            .collect()
    }

    /// Whether its recordings hold stacks and are open to perf.
    pub(super) fn has_stacks(&self) -> bool {
        let asks = self.options.iter().any(|option| option == "--call-graph");
        process::find("perf").is_some() && (self.kind == Kind::Prof || asks)
    }

    /// The path of its recording.
    pub(super) fn recording(&self, directory: &Path) -> PathBuf {
        directory.join(self.file)
    }

    /// Counts the samples of the recording; `said` is the profiler's output.
    pub(super) fn count(&self, directory: &Path, said: &str) -> Result<Counts> {
        let file = self.recording(directory);
        match self.kind {
            Kind::Prof => counts_of_prof(said),
            Kind::Perf => Ok(Counts {
                samples: number_before(said, " samples)").unwrap_or(0),
                lost: Some(lost_by_perf(&file)?),
            }),
            Kind::Samply => Ok(Counts {
                samples: samples_of_samply(&file)?,
                lost: None,
            }),
            Kind::Counter => Ok(Counts::default()),
        }
    }
}

/// Reads the numbers of samples from prof's output.
pub(crate) fn counts_of_prof(said: &str) -> Result<Counts> {
    let lost = match said.contains("no sample lost") {
        true => 0,
        false => number_before(said, " samples (").unwrap_or(0),
    };
    Ok(Counts {
        samples: number_before(said, " samples")
            .with_context(|| format!("prof did not say how many samples: {said}"))?,
        lost: Some(lost),
    })
}

/// The number right before the first occurrence of these words.
fn number_before(text: &str, words: &str) -> Option<u64> {
    let (before, _) = text.split_once(words)?;
    let digits = before.len() - before.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    before[before.len() - digits..].parse().ok()
}

/// The sum of all PERF_RECORD_LOST.
fn lost_by_perf(file: &Path) -> Result<u64> {
    let mut script = Command::new("perf");
    script
        .args(["script", "--show-lost-events", "-F", "tid", "-G", "-i"])
        .arg(file);
    let output = script.output().context("cannot start perf")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let lost = text
        .lines()
        .filter(|line| line.contains("PERF_RECORD_LOST"));
    Ok(lost
        .filter_map(|line| line.rsplit(' ').next()?.parse::<u64>().ok())
        .sum())
}

fn samples_of_samply(file: &Path) -> Result<u64> {
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
    let profile: Value = serde_json::from_slice(&bytes).context("samply's profile is no JSON")?;
    let threads = profile["threads"].as_array().into_iter().flatten();
    Ok(threads
        .filter_map(|thread| thread["samples"]["length"].as_u64())
        .sum())
}

#[cfg(test)]
mod tests {
    use super::number_before;

    #[test]
    fn numbers_are_found_in_the_output_of_profilers() {
        let perf = "[ perf record: SampleMemory and wrote 0.1 MB perf.data (366 samples) ]";
        assert_eq!(number_before(perf, " samples)"), Some(366));
        assert_eq!(
            number_before("prof: wrote prof.data: 1204 samples, 1 KiB", " samples"),
            Some(1204)
        );
        assert_eq!(number_before("no samples", " samples"), None);
    }
}
