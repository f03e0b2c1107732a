//! The cost of making an SVG from a recording.

use std::path::PathBuf;

use anyhow::Result;

use super::stopwatch::Usage;
use super::workload::Workload;
use super::{Paths, median};
use crate::process;

/// A way from a recording to an SVG.
pub(super) struct Way {
    pub(super) name: &'static str,
    pub(super) record: &'static str,
    pub(super) draw: &'static str,
    /// The programs that it needs besides prof.
    pub(super) needs: &'static [&'static str],
}

/// `$0` is prof, `$1` the frequency; perf's ways end early if they would take all day.
const WAYS: [Way; 4] = [
    Way {
        name: "prof",
        record: "\"$0\" record -q -e cpu-clock -F \"$1\" -o prof.data -- \"${@:2}\"",
        draw: "\"$0\" report -i prof.data --flamegraph prof.svg",
        needs: &[],
    },
    Way {
        name: "prof, no inlines",
        record: "true",
        draw: "\"$0\" report -i prof.data --no-inline --flamegraph prof.svg",
        needs: &[],
    },
    Way {
        name: "perf dwarf 8 KB, no inlines",
        record: "perf record -q -e cpu-clock -F \"$1\" --call-graph dwarf,8192 -o perf.data -- \"${@:2}\"",
        draw: "timeout 600 perf script --no-inline -i perf.data | inferno-collapse-perf | inferno-flamegraph >perf.svg",
        needs: &["perf", "inferno-collapse-perf", "inferno-flamegraph"],
    },
    Way {
        name: "perf dwarf 8 KB",
        record: "true",
        draw: "timeout 600 perf script -i perf.data | inferno-collapse-perf | inferno-flamegraph >perf.svg",
        needs: &["perf", "inferno-collapse-perf", "inferno-flamegraph"],
    },
];

/// The medians over all drawings of a workload in one way.
pub(super) struct Drawing {
    pub(super) name: &'static str,
    pub(super) wall_seconds: f64,
    pub(super) cpu_seconds: f64,
    /// The peak memory of the largest process, in bytes.
    pub(super) peak_memory: f64,
}

/// For each workload, the usage of each way that is possible here.
pub(super) fn measure_all(
    paths: &Paths,
    workloads: &[Workload],
    repetitions: usize,
) -> Result<Vec<Vec<Drawing>>> {
    let ways: Vec<&Way> = WAYS.iter().filter(|way| is_possible(way)).collect();
    let measured = workloads
        .iter()
        .map(|workload| measure(paths, workload, &ways, repetitions));
    measured.collect()
}

pub(super) fn is_possible(way: &Way) -> bool {
    let missing: Vec<_> = way
        .needs
        .iter()
        .filter(|name| process::find(name).is_none())
        .collect();
    if !missing.is_empty() {
        println!(
            "!!! {} is left out, {missing:?} missing (cargo install inferno)",
            way.name
        );
    }
    missing.is_empty()
}

fn measure(
    paths: &Paths,
    workload: &Workload,
    ways: &[&Way],
    repetitions: usize,
) -> Result<Vec<Drawing>> {
    for way in ways {
        run(paths, way.record, &workload.command)?;
    }
    let mut usages: Vec<Vec<Usage>> = ways.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=repetitions {
        println!("drawing {}: {repetition} of {repetitions}", workload.name);
        for (way, usages) in ways.iter().zip(&mut usages) {
            // A time of minutes is precise without repetition.
            let slow = usages
                .first()
                .is_some_and(|first: &Usage| first.wall.as_secs() > 60);
            if !slow {
                usages.push(run(paths, way.draw, &[])?);
            }
        }
    }
    let drawing = |(way, usages): (&&Way, &Vec<Usage>)| Drawing {
        name: way.name,
        wall_seconds: median(usages.iter().map(|usage| usage.wall.as_secs_f64())),
        cpu_seconds: median(usages.iter().map(|usage| usage.cpu.as_secs_f64())),
        peak_memory: median(usages.iter().map(|usage| usage.peak_memory as f64)),
    };
    Ok(ways.iter().zip(&usages).map(drawing).collect())
}

/// Runs a script of bash: `$0` is prof, `$1` the frequency, the rest the arguments.
pub(super) fn run(paths: &Paths, script: &str, arguments: &[PathBuf]) -> Result<Usage> {
    let start = ["bash", "-c", script].map(PathBuf::from);
    let numbers = [paths.prof.clone(), paths.frequency.to_string().into()];
    let words = start
        .into_iter()
        .chain(numbers)
        .chain(arguments.iter().cloned());
    Ok(paths.stopwatch.measure(&paths.directory, words)?.0)
}
