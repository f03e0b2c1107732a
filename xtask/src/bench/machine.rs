//! The machine that measures: what it is, and the one setting that a peer needs changed.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::process;

const PARANOID: &str = "/proc/sys/kernel/perf_event_paranoid";

/// Restores the setting when dropped.
pub(super) struct Restore(Option<String>);

impl Drop for Restore {
    fn drop(&mut self) {
        if let Some(before) = &self.0
            && let Err(error) = fs::write(PARANOID, before)
        {
            eprintln!("!!! {PARANOID} could not be set back to {before}: {error}");
        }
    }
}

/// What perf_event_paranoid is.
pub(super) fn paranoid() -> Result<i32> {
    let text = fs::read_to_string(PARANOID).with_context(|| format!("cannot read {PARANOID}"))?;
    text.trim()
        .parse()
        .with_context(|| format!("no number in {PARANOID}"))
}

/// Sets perf_event_paranoid to 1 for as long as the result lives, if it is higher.
pub(super) fn lower_paranoid() -> Result<Restore> {
    let before = paranoid()?;
    if before <= 1 {
        return Ok(Restore(None));
    }
    fs::write(PARANOID, "1").with_context(|| format!("cannot set {PARANOID} (are you root?)"))?;
    Ok(Restore(Some(before.to_string())))
}

/// Processor, cores, kernel, in one line.
pub(super) fn description() -> String {
    let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpus
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} CPUs, Linux {}", kernel.trim())
}

/// Today's date, UTC.
pub(super) fn date() -> String {
    let printed = process::output(Command::new("date").args(["-u", "+%Y-%m-%d"]));
    printed.map_or_else(|_| "an unknown day".into(), |date| date.trim().to_owned())
}
