//! The cost of recording: per second, and once.
//!
//! Each program runs for several lengths, alone and recorded, in turn. Each cost is a line through
//! the measurements: its slope is the cost per second of the program, its intercept the fixed cost.

mod page;
mod program;
mod regression;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::profiler::{self, Counts, Kind, Profiler};
use super::stopwatch::{self, Usage};
use super::{Options, Paths, machine, median, wholeness};
use program::Program;
use regression::Regression;

/// One recording.
struct Run {
    target: Usage,
    /// The usage of the profiler itself.
    own: Usage,
    counts: Counts,
}

/// The costs of a profiler with a program at a rate.
struct Costs {
    program: &'static str,
    hertz: u32,
    profiler: &'static str,
    /// The profiler's CPU seconds.
    own_cpu: Regression,
    wakeups: Regression,
    /// The program's CPU seconds and wall time, as multiples of those without a profiler.
    target_cpu: f64,
    wall: f64,
    /// The profiler's peak memory in bytes.
    memory: f64,
    /// Samples of those due, if there is a number due.
    taken: Option<f64>,
    lost: Option<u64>,
    /// Share of the stacks that reach their root.
    whole: Option<f64>,
}

/// Measures, and writes the page.
pub(super) fn measure_all(paths: &Paths, options: &Options) -> Result<()> {
    ensure!(options.lengths.len() > 1, "a slope needs two lengths");
    let programs = program::all(&options.only);
    ensure!(
        !programs.is_empty(),
        "no program is called {:?}",
        options.only
    );
    let mut all = Vec::new();
    for program in &programs {
        let per_second = program.per_second(paths)?;
        for &hertz in &options.rates {
            all.extend(measure(paths, program, (per_second, hertz), options)?);
        }
    }
    page::write(&all, options)
}

fn measure(
    paths: &Paths,
    program: &Program,
    (per_second, hertz): (f64, u32),
    options: &Options,
) -> Result<Vec<Costs>> {
    let profilers = profiler::available(paths, hertz, program.wide, options.allow_sysctl);
    let mut bare: Vec<Vec<Usage>> = options.lengths.iter().map(|_| Vec::new()).collect();
    let mut runs: Vec<Vec<Vec<Run>>> = profilers
        .iter()
        .map(|_| options.lengths.iter().map(|_| Vec::new()).collect())
        .collect();
    for repetition in 1..=options.repetitions {
        for (index, &seconds) in options.lengths.iter().enumerate() {
            println!(
                "{} at {hertz} Hz for {seconds} s: {repetition} of {}",
                program.name, options.repetitions
            );
            let command = program.command(paths, (seconds * per_second) as u64)?;
            let alone = paths.stopwatch.measure(&paths.directory, &command)?.0;
            bare[index].push(alone);
            for (profiler, runs) in profilers.iter().zip(&mut runs) {
                let run = record(paths, &command, profiler)
                    .with_context(|| format!("{} on {}", profiler.name, program.name))?;
                runs[index].push(run);
            }
        }
    }
    let mut all = Vec::new();
    for (profiler, runs) in profilers.iter().zip(&runs) {
        let whole = match options.whole && profiler.has_stacks() && hertz < 2000 {
            true => {
                let shortest = options
                    .lengths
                    .iter()
                    .copied()
                    .fold(f64::INFINITY, f64::min);
                let command = program.command(paths, (shortest * per_second) as u64)?;
                whole(paths, &command, profiler)?
            }
            false => None,
        };
        let costs = costs(&bare, runs);
        all.push(Costs {
            program: program.name,
            hertz,
            profiler: profiler.name,
            taken: (!program.wide).then(|| taken(runs, hertz)).flatten(),
            whole,
            ..costs
        });
    }
    Ok(all)
}

fn record(paths: &Paths, command: &[PathBuf], profiler: &Profiler) -> Result<Run> {
    let (all, target, said) = run(paths, command, profiler)?;
    let file = profiler.recording(&paths.directory);
    let run = Run {
        target,
        own: Usage {
            cpu: all.cpu.saturating_sub(target.cpu),
            switches: all.switches.saturating_sub(target.switches),
            ..all
        },
        counts: profiler.count(&paths.directory, &said)?,
    };
    std::fs::remove_file(&file)?;
    Ok(run)
}

fn whole(paths: &Paths, command: &[PathBuf], profiler: &Profiler) -> Result<Option<f64>> {
    run(paths, command, profiler)?;
    let file = profiler.recording(&paths.directory);
    let share = wholeness::of_recording(&file)?;
    std::fs::remove_file(&file)?;
    Ok(share)
}

/// Records; returns the total usage, the program's usage, and the profiler's output.
fn run(paths: &Paths, command: &[PathBuf], profiler: &Profiler) -> Result<(Usage, Usage, String)> {
    let _paranoid = match profiler.kind {
        Kind::Samply => Some(machine::lower_paranoid()?),
        Kind::Prof | Kind::Perf | Kind::Counter => None,
    };
    let inner = paths.directory.join("inner.usage");
    let target = paths.stopwatch.before(&inner).into_iter();
    let words = profiler.around(target.chain(command.iter().cloned()));
    let (all, said) = paths.stopwatch.measure(&paths.directory, words)?;
    Ok((all, stopwatch::read(&inner)?, said))
}

fn costs(bare: &[Vec<Usage>], runs: &[Vec<Run>]) -> Costs {
    // All is compared with the time that the program takes alone.
    let lengths: Vec<f64> = bare
        .iter()
        .map(|usages| seconds(usages, |it| it.wall))
        .collect();
    let line = |of: fn(&Run) -> f64| {
        let points = lengths.iter().zip(runs);
        Regression::through(
            points.flat_map(|(&length, runs)| runs.iter().map(move |run| (length, of(run)))),
        )
    };
    let alone = |of: fn(&Usage) -> Duration| {
        let points = lengths.iter().zip(bare);
        Regression::through(points.flat_map(|(&length, usages)| {
            usages
                .iter()
                .map(move |usage| (length, of(usage).as_secs_f64()))
        }))
    };
    let all = || runs.iter().flatten();
    Costs {
        program: "",
        hertz: 0,
        profiler: "",
        own_cpu: line(|run| run.own.cpu.as_secs_f64()),
        wakeups: line(|run| run.own.switches as f64),
        target_cpu: line(|run| run.target.cpu.as_secs_f64()).slope / alone(|it| it.cpu).slope,
        wall: line(|run| run.target.wall.as_secs_f64()).slope / alone(|it| it.wall).slope,
        memory: all()
            .map(|run| run.own.own_memory as f64)
            .fold(0.0, f64::max),
        taken: None,
        lost: all().map(|run| run.counts.lost).sum(),
        whole: None,
    }
}

fn seconds(usages: &[Usage], of: fn(&Usage) -> Duration) -> f64 {
    median(usages.iter().map(|usage| of(usage).as_secs_f64()))
}

/// In the longest runs.
fn taken(runs: &[Vec<Run>], hertz: u32) -> Option<f64> {
    let due = |run: &Run| run.target.cpu.as_secs_f64() * f64::from(hertz);
    let runs = runs.last()?.iter().filter(|run| due(run) >= 100.0);
    let shares: Vec<f64> = runs
        .map(|run| run.counts.samples as f64 / due(run))
        .collect();
    (!shares.is_empty()).then(|| median(shares))
}
