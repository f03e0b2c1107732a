//! The machine that measures: its description, and the settings that change meanwhile.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};

use crate::{process, workspace};

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// The kernel lowers it when samples take long, and never raises it again.
const MAX_RATE: &str = "/proc/sys/kernel/perf_event_max_sample_rate";

/// The share of a CPU's time, in percent, beyond which it does so; 0: never.
const CPU_TIME: &str = "/proc/sys/kernel/perf_cpu_time_max_percent";

/// The unit of times in /proc.
pub(super) const TICKS_PER_SECOND: f64 = 100.0;

/// Restores the setting when dropped.
pub(super) struct Restore {
    path: &'static str,
    before: Option<String>,
}

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = &self.before
            && let Err(error) = fs::write(self.path, before)
        {
            eprintln!(
                "!!! {} could not be set back to {before}: {error}",
                self.path
            );
        }
    }
}

/// Seconds for which CPUs of this machine were busy.
pub(super) fn busy() -> Option<f64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let fields = stat.lines().next()?.split_whitespace().skip(1);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    // User, nice, system, idle, waiting for disks, interrupts, soft interrupts.
    let ticks: u64 = [0, 1, 2, 5, 6]
        .iter()
        .filter_map(|&index| fields.get(index))
        .sum();
    Some(ticks as f64 / TICKS_PER_SECOND)
}

/// Reads perf_event_paranoid.
pub(super) fn paranoid() -> Result<i32> {
    number(PARANOID)
}

/// The highest rate that the kernel accepts.
pub(super) fn max_rate() -> Result<i32> {
    number(MAX_RATE)
}

/// Lowers perf_event_paranoid to 1 until the result is dropped.
pub(super) fn lower_paranoid() -> Result<Restore> {
    set(PARANOID, 1, paranoid()? > 1)
}

/// Raises the maximum sample rate to the kernel's default until the result is dropped.
pub(super) fn raise_max_rate() -> Result<[Restore; 2]> {
    let rate = set(MAX_RATE, 100_000, max_rate()? < 100_000)?;
    let share = set(CPU_TIME, 0, number(CPU_TIME)? != 0)?;
    // Without a limit to the share, the kernel refuses to set the rate: restore the share last.
    Ok([share, rate])
}

fn set(path: &'static str, value: i32, needed: bool) -> Result<Restore> {
    let before = needed.then(|| number(path)).transpose()?;
    if needed {
        fs::write(path, value.to_string())
            .with_context(|| format!("cannot set {path} (are you root?)"))?;
    }
    Ok(Restore {
        path,
        before: before.map(|before| before.to_string()),
    })
}

fn number(path: &str) -> Result<i32> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("no number in {path}"))
}

/// Processor, cores, kernel, in one line.
pub(crate) fn description() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} CPUs, Linux {}", kernel.trim())
}

/// Which build is measured: the checkout's commit, or the file that was given.
pub(crate) fn measured_build(prof: Option<&Path>) -> String {
    if let Some(prof) = prof {
        return format!("`{}`, as it was given", prof.display());
    }
    let mut git = Command::new("git");
    git.current_dir(workspace::root());
    git.args([
        "describe",
        "--always",
        "--exclude=*",
        "--dirty=, with changes",
    ]);
    let commit = process::output(&mut git);
    commit.map_or_else(
        |_| "an unknown commit".into(),
        |commit| format!("commit {}", commit.trim()),
    )
}

/// Today's date, UTC.
pub(crate) fn date() -> String {
    let printed = process::output(Command::new("date").args(["-u", "+%Y-%m-%d"]));
    printed.map_or_else(|_| "an unknown day".into(), |date| date.trim().to_owned())
}
