//! `prof ci`: runs a command several times and compares with the runs of a baseline, or of another
//! program.

use std::ffi::OsString;
use std::io::stderr;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, ExitStatus, Stdio};

use anyhow::{Context, Result, bail, ensure};
use prof_console::say;
use prof_model::{Verdict, counted};
use prof_report::format::runs::{self, RunsOptions};
use prof_report::view::diff::{RunOrder, RunsDiff, RunsRow};
use prof_report::{CallTree, Filter, Split, SymbolizedProfile};

use crate::exit;
use crate::flags::{CiFlags, GrowthLimit, SymbolFlags};
use crate::output::{write_file, write_stdout};
use crate::report::CheckedLimits;
use crate::symbolization::{self, Detail};

/// Records the baseline; or records, and compares with the baseline or with another program.
///
/// # Errors
///
/// A run cannot be recorded, there is no baseline, or an output cannot be written.
pub(crate) fn run(flags: CiFlags) -> Result<ExitCode> {
    let group = |name: &str, program: Option<&OsString>| {
        let mut command = flags.command.clone();
        if let (Some(program), Some(own)) = (program, command.first_mut()) {
            own.clone_from(program);
        }
        Group {
            directory: flags.output.join(name),
            command,
        }
    };
    let baseline = group("baseline", None);
    let new = group("new", None);
    if flags.save_baseline {
        if let Some(code) = record(&flags, &[&baseline])? {
            return Ok(code);
        }
        let runs = counted(flags.repeat.into(), "run");
        let directory = baseline.directory.display();
        say(&format_args!("wrote {runs} to {directory}"));
        return Ok(ExitCode::SUCCESS);
    }
    let (before, order, recorded) = match &flags.versus {
        Some(program) => {
            let versus = group("versus", Some(program));
            let code = record(&flags, &[&versus, &new])?;
            (versus.directory, RunOrder::Paired, code)
        }
        None => {
            let directory = baseline.directory;
            if recordings(&directory)?.is_empty() {
                bail!(
                    "there is no baseline in {}: record one with the old program (`prof ci \
                     --save-baseline COMMAND`)",
                    directory.display()
                );
            }
            (directory, RunOrder::Grouped, record(&flags, &[&new])?)
        }
    };
    match recorded {
        Some(code) => Ok(code),
        None => compare(flags, &before, &new.directory, order),
    }
}

/// A command, and the directory of the recordings of its runs.
struct Group {
    directory: PathBuf,
    command: Vec<OsString>,
}

impl Group {
    /// The recording of a run, until all runs have succeeded.
    fn unfinished(&self, number: u32) -> PathBuf {
        self.directory.join(format!("{number:04}.data.new"))
    }

    /// Replaces the recordings of earlier runs: these were of another time, and there may have been
    /// more of them.
    fn finish(&self, count: u32) -> Result<()> {
        for old in recordings(&self.directory)? {
            std::fs::remove_file(&old)
                .with_context(|| format!("cannot remove {}", old.display()))?;
        }
        for number in 1..=count {
            let unfinished = self.unfinished(number);
            std::fs::rename(&unfinished, unfinished.with_extension(""))
                .with_context(|| format!("cannot rename {}", unfinished.display()))?;
        }
        Ok(())
    }
}

/// The recordings in a directory, if there is one.
fn recordings(directory: &Path) -> Result<Vec<PathBuf>> {
    let Ok(entries) = std::fs::read_dir(directory) else {
        return Ok(Vec::new());
    };
    let paths: std::io::Result<Vec<PathBuf>> = entries.map(|entry| Ok(entry?.path())).collect();
    let mut paths = paths.with_context(|| format!("cannot read {}", directory.display()))?;
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "data"));
    paths.sort();
    Ok(paths)
}

/// Records all runs, those of several groups alternately. Returns a status if one failed: then the
/// recordings of earlier runs stay.
fn record(flags: &CiFlags, groups: &[&Group]) -> Result<Option<ExitCode>> {
    for group in groups {
        let directory = &group.directory;
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot create {}", directory.display()))?;
    }
    let mut in_order = groups.to_vec();
    for number in 1..=flags.repeat {
        for group in &in_order {
            let status = record_run(flags, group, number)?;
            if !status.success() {
                say(&format_args!(
                    "run {number} of {} failed ({status}): `prof ci` needs {} that succeed",
                    words(&group.command),
                    counted(flags.repeat.into(), "run")
                ));
                let all = groups.iter();
                let all = all.flat_map(|it| (1..=flags.repeat).map(|run| it.unfinished(run)));
                // Those that were not begun do not exist.
                all.for_each(|unfinished| drop(std::fs::remove_file(unfinished)));
                return Ok(Some(exit::like(status)));
            }
        }
        // Alternating the order spreads the effect of one run on the next over all groups.
        in_order.reverse();
    }
    for group in groups {
        group.finish(flags.repeat)?;
    }
    Ok(None)
}

fn record_run(flags: &CiFlags, group: &Group, number: u32) -> Result<ExitStatus> {
    let mut command = Command::new("/proc/self/exe");
    command.arg0("prof").args(["record", "--quiet"]);
    // The next build may overwrite this one, and so its symbols.
    command.arg("--embed-symbols").arg("--output");
    command.arg(group.unfinished(number));
    let options = [("--freq", &flags.rate), ("--event", &flags.sampled)];
    for (name, value) in options {
        command.args(value.iter().flat_map(|value| [name, value.as_str()]));
    }
    command.arg("--").args(&group.command);
    command.stdout(Stdio::from(stderr().as_fd().try_clone_to_owned()?));
    command.status().context("cannot start prof record")
}

/// The command line, for people.
fn words(command: &[OsString]) -> String {
    let words: Vec<_> = command.iter().map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}

fn compare(flags: CiFlags, before: &Path, new: &Path, order: RunOrder) -> Result<ExitCode> {
    let directory = before.display().to_string();
    let (before, after) = (read(before, &flags.symbols)?, read(new, &flags.symbols)?);
    let filter = Filter::from(flags.filter);
    let tree = |profile| CallTree::new(profile, &filter, Split::Nothing);
    let before_trees = before.iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let after_trees = after.iter().map(tree).collect::<Result<Vec<_>, _>>()?;
    let limits = &flags.fail_above;
    // Functions that are smaller on both sides cannot have grown by more.
    let least = limits.iter().map(|limit| limit.points / 100.0);
    let least = least.fold(1.0, f64::min).max(0.001);
    let diff = RunsDiff::new(&before_trees, &after_trees, order, least)?;
    let costs_more = limits.iter().any(|limit| is_cost_beyond(limit, &diff));
    let options = RunsOptions {
        command: words(&flags.command),
        baseline: flags
            .versus
            .map_or(directory, |program| program.to_string_lossy().into_owned()),
        verdict: verdict(before.iter().chain(&after)),
        costs_more,
        rows: flags.limit,
    };
    let failed = |row: &RunsRow| limits.iter().any(|limit| is_beyond(limit, row));
    match &flags.markdown {
        Some(path) => write_file(path, |out| Ok(runs::write(&diff, &options, failed, out)?))?,
        None => write_stdout(|out| Ok(runs::write(&diff, &options, failed, out)?))?,
    }
    let grew = costs_more || diff.rows.iter().any(failed);
    let trees: Vec<&CallTree<'_>> = before_trees.iter().chain(&after_trees).collect();
    Ok(CheckedLimits::new(grew, limits, &trees).conclude())
}

fn read(directory: &Path, symbols: &SymbolFlags) -> Result<Vec<SymbolizedProfile>> {
    let paths = recordings(directory)?;
    ensure!(
        paths.len() > 1,
        "{} has one recording only; measuring noise takes two or more (--repeat)",
        directory.display()
    );
    let read = |path: PathBuf| symbolization::read(&[path], symbols, Detail::Inlines);
    paths.into_iter().map(read).collect()
}

fn is_beyond(limit: &GrowthLimit, row: &RunsRow) -> bool {
    let concerned = limit.function.as_ref();
    row.is_certain()
        && row.change() * 100.0 > limit.points
        && concerned.is_none_or(|pattern| pattern.matches(&row.function))
}

/// A limit for some functions does not apply to whole runs.
fn is_cost_beyond(limit: &GrowthLimit, diff: &RunsDiff) -> bool {
    let change = diff.cost_change() * 100.0;
    limit.function.is_none() && diff.is_cost_certain() && change > limit.points
}

/// The verdict on the worst of the recordings.
fn verdict<'p>(profiles: impl Iterator<Item = &'p SymbolizedProfile>) -> String {
    let verdicts = profiles.map(|profile| Verdict::new(profile.quality()));
    let worst = verdicts.max_by_key(|verdict| verdict.grade);
    worst.map_or_else(String::new, |verdict| {
        let text = verdict.to_string();
        let summary = text.lines().next().unwrap_or_default();
        summary.trim_start_matches("verdict: ").to_owned()
    })
}
