//! What recording costs: the target, and the profiler itself.

use std::time::Duration;

use anyhow::{Context, Result};

use super::profiler::{Counts, Kind, Profiler};
use super::stopwatch::{self, Usage};
use super::workload::Workload;
use super::{Place, machine, median, wholeness};

/// One recording.
struct Run {
    target: Usage,
    /// CPU time of the profiler itself.
    own_cpu: Duration,
    bytes: u64,
    counts: Counts,
    /// Share of the stacks that are whole, measured once.
    whole: Option<f64>,
}

/// The medians over all recordings of a workload by one profiler.
#[derive(Clone, Debug, Default)]
pub(super) struct Costs {
    /// How many times longer the target takes, wall time.
    pub(super) slowdown: f64,
    /// How many times more CPU time the target takes, without the profiler's own.
    pub(super) target_cpu: f64,
    /// The profiler's own CPU seconds for each of the target's.
    pub(super) own_cpu: f64,
    /// The profiler's own CPU seconds for each sample.
    pub(super) own_per_sample: f64,
    pub(super) bytes_per_sample: f64,
    /// Samples taken of those due, which is the target's CPU time times the frequency.
    pub(super) taken: f64,
    /// Samples lost by the profiler's own account, in all repetitions.
    pub(super) lost: Option<u64>,
    /// Share of the stacks that reach their root.
    pub(super) whole: Option<f64>,
}

/// For each workload, the costs of each profiler.
pub(super) fn measure_all(
    place: &Place,
    workloads: &[Workload],
    profilers: &[Profiler],
    repetitions: usize,
) -> Result<Vec<Vec<Costs>>> {
    let measured = workloads
        .iter()
        .map(|workload| measure(place, workload, profilers, repetitions));
    measured.collect()
}

/// The costs of each profiler on one workload.
pub(super) fn measure(
    place: &Place,
    workload: &Workload,
    profilers: &[Profiler],
    repetitions: usize,
) -> Result<Vec<Costs>> {
    let mut bare = Vec::new();
    let mut runs: Vec<Vec<Run>> = profilers.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=repetitions {
        println!("{}: {repetition} of {repetitions}", workload.name);
        bare.push(
            place
                .stopwatch
                .measure(&place.directory, &workload.command)?
                .0,
        );
        for (profiler, runs) in profilers.iter().zip(&mut runs) {
            let run = record(place, workload, profiler, runs.is_empty())
                .with_context(|| format!("{} on {}", profiler.name, workload.name))?;
            runs.push(run);
        }
    }
    Ok(runs.iter().map(|runs| costs(place, &bare, runs)).collect())
}

fn record(place: &Place, workload: &Workload, profiler: &Profiler, is_first: bool) -> Result<Run> {
    let _paranoid = match profiler.kind {
        Kind::Samply => Some(machine::lower_paranoid()?),
        Kind::Prof | Kind::Perf | Kind::Counter => None,
    };
    let inner = place.directory.join("inner.usage");
    let target = place
        .stopwatch
        .before(&inner)
        .into_iter()
        .chain(workload.command.clone());
    let (all, said) = place
        .stopwatch
        .measure(&place.directory, profiler.around(target))?;
    let target = stopwatch::read(&inner)?;
    let file = profiler.recording(&place.directory);
    let run = Run {
        target,
        own_cpu: all.cpu.saturating_sub(target.cpu),
        bytes: std::fs::metadata(&file)?.len(),
        counts: profiler.count(&place.directory, &said)?,
        // With 64 KB of stack for each of many samples this takes long, and it hardly varies.
        whole: match is_first && profiler.has_stacks() && place.frequency < 2000 {
            true => wholeness::of_recording(&file)?,
            false => None,
        },
    };
    std::fs::remove_file(&file)?;
    Ok(run)
}

fn costs(place: &Place, bare: &[Usage], runs: &[Run]) -> Costs {
    let hertz = f64::from(place.frequency);
    // Neighbours in time are compared, so that slow drifts cancel out.
    let pairs = || bare.iter().zip(runs);
    Costs {
        slowdown: median(pairs().map(|(bare, run)| ratio(run.target.wall, bare.wall))),
        target_cpu: median(pairs().map(|(bare, run)| ratio(run.target.cpu, bare.cpu))),
        own_cpu: median(pairs().map(|(bare, run)| ratio(run.own_cpu, bare.cpu))),
        own_per_sample: median(
            runs.iter()
                .map(|run| run.own_cpu.as_secs_f64() / run.counts.samples.max(1) as f64),
        ),
        bytes_per_sample: median(
            runs.iter()
                .map(|run| run.bytes as f64 / run.counts.samples.max(1) as f64),
        ),
        taken: median(
            runs.iter()
                .map(|run| run.counts.samples as f64 / (run.target.cpu.as_secs_f64() * hertz)),
        ),
        whole: runs.iter().find_map(|run| run.whole),
        lost: runs.iter().map(|run| run.counts.lost).sum(),
    }
}

fn ratio(a: Duration, b: Duration) -> f64 {
    a.as_secs_f64() / b.as_secs_f64().max(1e-9)
}
