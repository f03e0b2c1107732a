//! `cargo prof --bench NAME --each`: a recording for each benchmark, kept as Criterion keeps its
//! baselines.
//!
//! ```text
//! target/prof/BENCH/BENCHMARK/new.data     the last recording; new.data.old: the one before
//!                             new.svg      its flamegraph
//!                             NAME.data    --save-baseline NAME
//! ```

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};
use prof_console::Console;
use prof_report::Pattern;

use super::{Session, argv, record_job};
use crate::flags::{CargoRecordFlags, DiffFlags, EachFlags};
use crate::record::{self, Pictures};
use crate::report::{self, CheckedLimits};

/// Criterion's name for a recording that is not a baseline.
const NEW: &str = "new";

/// Records the benchmarks whose names match, one after the other, and compares them with the
/// baseline, if there is one.
///
/// # Errors
///
/// The benchmarks cannot be listed or recorded, or none has the baseline.
pub(super) fn run(
    flags: &CargoRecordFlags,
    session: &Session,
    pattern: &Pattern,
) -> Result<ExitCode> {
    let console = Console::new(flags.sampling.quiet, flags.sampling.verbose);
    let directory = session.target_directory.join("prof");
    let directory = directory.join(&session.choice.name);
    let benchmarks = benchmarks(session, pattern, directory)?;
    if let Some(name) = &flags.each.baseline
        && !benchmarks.iter().any(|each| each.recording(name).exists())
    {
        bail!("there is no baseline '{name}' yet: `--each --save-baseline {name}` records it");
    }
    let args = session.only_run(flags.args.clone(), Session::SECONDS_EACH, console);
    let mut checked: Option<CheckedLimits> = None;
    for benchmark in &benchmarks {
        console.say(format_args!("benchmark {}", benchmark.name));
        let code = benchmark.record(flags, session, &args)?;
        if code != ExitCode::SUCCESS {
            return Ok(code);
        }
        if let Some(name) = &flags.each.baseline
            && let Some(compared) = benchmark.compare(name, &flags.each, session, console)?
        {
            checked = Some(match checked {
                Some(earlier) => earlier.and(compared),
                None => compared,
            });
        }
    }
    Ok(checked.unwrap_or_default().conclude())
}

struct Benchmark {
    /// Its name, as the harness lists it.
    name: String,
    /// The directory of its recordings.
    directory: PathBuf,
}

impl Benchmark {
    fn recording(&self, baseline: &str) -> PathBuf {
        self.directory.join(format!("{baseline}.data"))
    }

    fn record(
        &self,
        flags: &CargoRecordFlags,
        session: &Session,
        args: &[OsString],
    ) -> Result<ExitCode> {
        std::fs::create_dir_all(&self.directory)
            .with_context(|| format!("cannot make {}", self.directory.display()))?;
        let recording = self.recording(flags.each.save_baseline.as_deref().unwrap_or(NEW));
        let mut sampling = flags.sampling.clone();
        // The next build overwrites this one, and so its symbols.
        sampling.embed_symbols = true;
        let pictures = Pictures {
            flamegraph: Some(recording.with_extension("svg")),
            ..session.pictures(&flags.pictures)
        };
        sampling.output = recording;
        let only = ["--exact", &self.name].map(OsString::from);
        let arguments = only.into_iter().chain(args.iter().cloned());
        record::run(record_job(session, arguments.collect(), sampling, pictures))
    }

    /// What became of the limits, if the benchmark is in the baseline.
    fn compare(
        &self,
        baseline: &str,
        flags: &EachFlags,
        session: &Session,
        console: Console,
    ) -> Result<Option<CheckedLimits>> {
        let before = self.recording(baseline);
        if !before.exists() {
            console.say(format_args!(
                "{} is not in the baseline '{baseline}'",
                self.name
            ));
            return Ok(None);
        }
        let mut diff = DiffFlags {
            before,
            after: self.recording(NEW),
            limit: Some(10),
            fail_above: flags.fail_above.clone(),
            ..DiffFlags::default()
        };
        diff.filter.hide = session.hidden(false);
        report::diff(diff).map(Some)
    }
}

/// Lists the benchmarks through the harness, as cargo-nextest does.
fn benchmarks(session: &Session, pattern: &Pattern, directory: PathBuf) -> Result<Vec<Benchmark>> {
    let arguments = ["--list", "--format", "terse"].map(OsString::from);
    let mut words = argv(&session.built, &session.choice, arguments.into());
    let program = words.next().context("there is no program")?;
    let mut command = Command::new(&program);
    command.args(words);
    command.envs(session.built.environment.iter().cloned());
    if let Some(directory) = &session.built.directory {
        command.current_dir(directory);
    }
    let listed = command
        .output()
        .with_context(|| format!("cannot start {}", Path::new(&program).display()))?;
    let names = names(&String::from_utf8_lossy(&listed.stdout));
    if names.is_empty() {
        bail!(
            "{} lists no benchmarks with `--list --format terse`. Criterion does since 0.4, divan \
             since 0.1.18, libtest always: update it, or leave out --each to record all of them at \
             once",
            Path::new(&program).display()
        );
    }
    let wanted: Vec<Benchmark> = names
        .iter()
        .filter(|name| pattern.matches(name))
        .map(|name| Benchmark {
            directory: directory.join(folder(name)),
            name: name.clone(),
        })
        .collect();
    if wanted.is_empty() {
        bail!(
            "no benchmark matches '{pattern}'; there are: {}",
            names.join(", ")
        );
    }
    Ok(wanted)
}

/// The benchmarks in the output of a harness; the tests in it are left out.
fn names(listed: &str) -> Vec<String> {
    let name = |line: &str| {
        let (name, kind) = line.rsplit_once(": ")?;
        ["benchmark", "bench"]
            .contains(&kind)
            .then(|| name.to_owned())
    };
    listed.lines().filter_map(name).collect()
}

/// A folder name for a benchmark's name.
fn folder(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.".contains(c) {
        true => c,
        false => '_',
    };
    let folder: String = name.chars().map(plain).collect();
    match folder.trim_start_matches('.') {
        "" => "_".to_owned(),
        folder => folder.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harnesses_list_benchmarks() {
        let listed = "fib/20: benchmark\ntests::adds: test\nbench_it: bench\n\n2 tests\n";
        assert_eq!(names(listed), ["fib/20", "bench_it"]);
    }

    #[test]
    fn names_become_folders() {
        let check = |name, expected| assert_eq!(folder(name), expected, "{name}");
        check("fib/20", "fib_20");
        check("sort::quick (u8)", "sort__quick__u8_");
        check("../..", "_..");
        check("..", "_");
    }
}
