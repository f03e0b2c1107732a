//! The cost of a sample or a probe hit to the program: prof beside perf, for the same event.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::profiler::{Kind, Profiler};
use super::stopwatch;
use super::{Options, Paths, machine, median};
use crate::{process, workspace};

/// An event, and a program that triggers it.
struct Case {
    event: &'static str,
    /// The arguments of xtask/bench/hits.c: the kind of work, and how often.
    work: [&'static str; 2],
    /// How often the event happens; `None`: as often as there are samples.
    hits: Option<u64>,
    profilers: Vec<Profiler>,
}

/// The cost of a profiler.
pub(super) struct Row {
    event: &'static str,
    profiler: &'static str,
    /// Nanoseconds of the program's CPU time for each sample or hit: the median, least and most.
    cost: [f64; 3],
    /// The cost per hit or sample, as a multiple of prof's first row.
    ratio: f64,
    /// The share of hits in the recording, if their number is known.
    kept: Option<f64>,
}

/// Measures all events that this machine has.
pub(super) fn measure_all(paths: &Paths, options: &Options) -> Result<Vec<Row>> {
    let _raised = match options.allow_sysctl {
        true => Some(machine::raise_max_rate()?),
        false => None,
    };
    if process::find("perf").is_none() {
        println!("!!! perf is not installed: events are not compared (apt-get install linux-perf)");
        return Ok(Vec::new());
    }
    let program = build(paths)?;
    let probe = Probe::define();
    let mut rows = Vec::new();
    for case in cases(paths, probe.is_ok()) {
        rows.extend(measure(paths, &program, &case, options.repetitions)?);
    }
    if let Err(error) = probe {
        println!("!!! no probe for perf, so that probes are not compared: {error:#}");
    }
    Ok(rows)
}

fn build(paths: &Paths) -> Result<PathBuf> {
    let program = paths.directory.join("hits");
    let source = workspace::root().join("xtask/bench/hits.c");
    let mut compile = Command::new("gcc");
    // With frame pointers, so that perf's chains of them are whole, too.
    compile.args(["-O2", "-g", "-fno-omit-frame-pointer", "-I"]);
    compile.arg(workspace::root().join("tests/programs"));
    process::run(compile.arg("-o").arg(&program).arg(source))?;
    Ok(program)
}

/// A probe on malloc that perf knows; removed when dropped.
struct Probe;

impl Probe {
    fn define() -> Result<Self> {
        let mut compiler = Command::new("gcc");
        let library = process::output(compiler.arg("-print-file-name=libc.so.6"))?;
        let library = std::fs::canonicalize(library.trim()).context("there is no libc.so.6")?;
        let mut add = Command::new("perf");
        add.args(["probe", "-q", "-x"]).arg(library);
        process::run(add.args(["--add", "prof_bench:malloc=malloc"]))?;
        Ok(Self)
    }
}

impl Drop for Probe {
    fn drop(&mut self) {
        let mut delete = Command::new("perf");
        delete.args(["probe", "-q", "--del", "prof_bench:malloc"]);
        if let Err(error) = process::run(&mut delete) {
            eprintln!("!!! the probe prof_bench:malloc could not be removed: {error:#}");
        }
    }
}

fn cases(paths: &Paths, probe: bool) -> Vec<Case> {
    let mut cases = Vec::new();
    for (event, flags) in [
        ("cpu-clock", "-e cpu-clock -c 200000"),
        ("cycles", "-e cycles -c 500000"),
    ] {
        let mut trial = Command::new(&paths.prof);
        trial.args(["stat", "-e", event, "--", "true"]);
        if !trial.output().is_ok_and(|output| output.status.success()) {
            println!("!!! this machine has no {event}: left out");
            continue;
        }
        cases.push(Case {
            event,
            work: ["spin", "2000"],
            hits: None,
            profilers: recorders(paths, flags, 8192),
        });
    }
    cases.push(Case {
        event: "page-faults",
        work: ["touch", "50000"],
        hits: Some(50_000),
        profilers: recorders(paths, "-e page-faults -c 1", 4096),
    });
    if probe {
        cases.push(on_malloc(paths));
    }
    cases
}

/// prof and perf, with the same event.
fn recorders(paths: &Paths, event: &str, dump: u32) -> Vec<Profiler> {
    let mut all = vec![profiler(
        paths,
        "prof",
        &format!("record {event} -o prof.data"),
    )];
    all.extend(perf_records(paths, event, dump));
    all
}

fn perf_records(paths: &Paths, event: &str, dump: u32) -> [Profiler; 3] {
    let bytes = format!("--call-graph dwarf,{dump}");
    let dwarf = match dump {
        4096 => "perf dwarf 4 KB",
        _ => "perf dwarf 8 KB",
    };
    [("perf, no stacks", ""), ("perf -g", "-g"), (dwarf, &bytes)].map(|(name, how)| {
        let options = format!("record {event} {how} -o perf.data");
        profiler(paths, name, &options)
    })
}

fn on_malloc(paths: &Paths) -> Case {
    let mut profilers: Vec<Profiler> = [
        ("prof", "record -e uprobe:libc.so.6:malloc -o prof.data"),
        ("prof --alloc", "record --alloc -o prof.data"),
        (
            "prof --alloc --every 101",
            "record --alloc --every 101 -o prof.data",
        ),
        ("prof stat", "stat -e uprobe:libc.so.6:malloc"),
        ("perf stat", "stat -e prof_bench:malloc"),
    ]
    .map(|(name, options)| profiler(paths, name, options))
    .into();
    profilers.extend(perf_records(paths, "-e prof_bench:malloc", 4096));
    Case {
        event: "probe on malloc",
        work: ["malloc", "50000"],
        hits: Some(50_000),
        profilers,
    }
}

fn profiler(paths: &Paths, name: &'static str, options: &str) -> Profiler {
    let (program, recorder) = match name.starts_with("perf") {
        true => ("perf".into(), Kind::Perf),
        false => (paths.prof.clone(), Kind::Prof),
    };
    let kind = match options.starts_with("record") {
        true => recorder,
        false => Kind::Counter,
    };
    let options: Vec<&str> = options.split_whitespace().chain(["--"]).collect();
    Profiler::new(name, kind, program, &options)
}

fn measure(paths: &Paths, program: &Path, case: &Case, repetitions: usize) -> Result<Vec<Row>> {
    let command = || {
        [program.to_owned()]
            .into_iter()
            .chain(case.work.map(PathBuf::from))
    };
    let inner = paths.directory.join("inner.usage");
    let mut runs: Vec<Vec<(f64, f64)>> = case.profilers.iter().map(|_| Vec::new()).collect();
    for repetition in 1..=repetitions {
        println!("{}: {repetition} of {repetitions}", case.event);
        let bare = paths.stopwatch.measure(&paths.directory, command())?.0;
        for (profiler, runs) in case.profilers.iter().zip(&mut runs) {
            let target = paths.stopwatch.before(&inner).into_iter().chain(command());
            let words = profiler.around(target);
            let said = paths.stopwatch.measure(&paths.directory, words)?.1;
            let target = stopwatch::read(&inner)?;
            let samples = profiler.count(&paths.directory, &said)?.samples as f64;
            let hits = case.hits.map_or(samples, |hits| hits as f64);
            let cost = target.cpu.as_secs_f64() - bare.cpu.as_secs_f64();
            runs.push((cost * 1e9 / hits.max(1.0), samples / hits.max(1.0)));
        }
    }
    let costs = |runs: &[(f64, f64)]| {
        let costs = || runs.iter().map(|&(cost, _)| cost);
        let least = costs().fold(f64::INFINITY, f64::min);
        [median(costs()), least, costs().fold(0.0, f64::max)]
    };
    let ours = runs.first().map_or(f64::NAN, |runs| costs(runs)[0]);
    let rows = case.profilers.iter().zip(&runs).map(|(profiler, runs)| {
        let cost = costs(runs);
        let takes_all = profiler.kind != Kind::Counter && !profiler.name.contains("--every");
        Row {
            event: case.event,
            profiler: profiler.name,
            cost,
            ratio: cost[0] / ours,
            kept: (case.hits.is_some() && takes_all)
                .then(|| median(runs.iter().map(|&(_, kept)| kept))),
        }
    });
    Ok(rows.collect())
}

const ABOUT: &str = "
## What a sample costs the program, by event

CPU time of the program itself while recorded, minus its CPU time alone, for each sample
(`cpu-clock` every 200 \u{b5}s, `cycles` every 500,000) or each hit (50,000 in a row): median, minimum
and maximum. The program is 20 functions deep, has frame pointers, and 5 KB of stack. *kept*:
samples in the recording, of the hits; a hit that the kernel drops because the ring is full costs
the program less.

prof's reader sleeps until a ring is half full, as perf's does, unless stacks are deeper than their
dumps and change there: then each sample wakes it, because it must read the rest at once. Without
stack dumps (`--call-graph fp`), prof waits as well. `cycles` has a second counter beside it, for
coverage; on virtual machines, each counter costs time.
";

/// The section of docs/results/benchmarks.md.
pub(super) fn section(rows: &[Row]) -> Result<String> {
    let mut page = String::new();
    if rows.is_empty() {
        return Ok(page);
    }
    writeln!(page, "{ABOUT}")?;
    writeln!(
        page,
        "| event | profiler | ns | from | to | of prof's | kept |"
    )?;
    writeln!(page, "| --- | --- | ---: | ---: | ---: | ---: | ---: |")?;
    for row in rows {
        let [middle, least, most] = row.cost.map(super::markdown::thousands);
        let kept = row
            .kept
            .map_or_else(|| "-".into(), |kept| format!("{:.1} %", kept * 100.0));
        writeln!(
            page,
            "| {} | {} | {middle} | {least} | {most} | {:.2} | {kept} |",
            row.event, row.profiler, row.ratio
        )?;
    }
    Ok(page)
}
