//! Nanoseconds per sample and per frame, cold and warm, ours and framehop's, on samples of real
//! programs that are recorded when the benchmark starts.
//!
//! The counter column is frames per second. `cargo bench -p prof-unwinder` also prints a table
//! first, in the form that docs/design/unwinding.md has.

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use divan::Bencher;
use divan::counter::ItemsCount;
use prof_unwinder::{FrameEngine, Framehop, LocalFiles, Unwinder};
use support::Samples;
use support::programs::Workshop;

const PROGRAMS: [&str; 3] = ["python3", "cc1plus", "ripgrep"];

fn main() {
    table();
    load_table();
    divan::main();
}

fn samples(program: &str) -> &'static Samples {
    static ALL: OnceLock<Vec<Samples>> = OnceLock::new();
    let all = ALL.get_or_init(|| PROGRAMS.iter().map(|program| record(program)).collect());
    let index = PROGRAMS.iter().position(|&name| name == program);
    &all[index.expect("program")]
}

fn record(program: &str) -> Samples {
    let workshop = Workshop::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/inlining.cc");
    let python = "import json; x = [{'a': i, 'b': [1]} for i in range(20000)]\n\
                  for _ in range(10): json.loads(json.dumps(x)); sorted(x, key=lambda d: -d['a'])";
    let (command, arguments): (_, &[&str]) = match program {
        "python3" => ("python3", &["-c", python]),
        "cc1plus" => ("g++", &["-O2", "-c", source, "-o", "/dev/null"]),
        _ => (
            "rg",
            &[
                "-c",
                "[a-z]+_[0-9]+foo|unwind",
                "/usr/include",
                "/usr/lib/python3",
            ],
        ),
    };
    workshop.record(Path::new(command), arguments, 32 << 10)
}

/// Unwinds every sample; returns how many frames there were.
fn unwind(samples: &Samples, engine: &mut impl FrameEngine, frames: &mut Vec<u64>) -> usize {
    let unwind = |sample| {
        frames.clear();
        samples.unwind_into(engine, sample, frames);
        frames.len()
    };
    samples.samples.iter().map(unwind).sum()
}

fn bench_warm(bencher: Bencher<'_, '_>, program: &str, mut engine: impl FrameEngine) {
    let (samples, mut frames) = (samples(program), Vec::new());
    let count = unwind(samples, &mut engine, &mut frames);
    bencher
        .counter(ItemsCount::new(count))
        .bench_local(|| unwind(samples, &mut engine, &mut frames));
}

#[divan::bench(args = PROGRAMS)]
fn warm(bencher: Bencher<'_, '_>, program: &str) {
    bench_warm(bencher, program, Unwinder::new(LocalFiles));
}

#[divan::bench(args = PROGRAMS)]
fn warm_framehop(bencher: Bencher<'_, '_>, program: &str) {
    bench_warm(bencher, program, Framehop::new(LocalFiles));
}

/// Large files, if they exist: the time until the first frame can be looked up.
#[expect(clippy::print_stdout, reason = "a benchmark's report")]
fn load_table() {
    println!("\n| module | size | first time | ready in |\n|---|---|---|---|");
    for path in std::env::args()
        .skip(1)
        .filter(|path| path.starts_with('/'))
    {
        let size = std::fs::metadata(&path).map_or(0, |file| file.len()) >> 20;
        let (samples, pc) = support::one_module(Path::new(&path));
        let mut frames = Vec::new();
        let mut load = || {
            let mut unwinder = Unwinder::new(LocalFiles);
            frames.clear();
            samples.unwind_into(&mut unwinder, &samples.samples[0], &mut frames);
            frames.len()
        };
        // The first time, the file's pages are not in memory.
        let drop_pages = format!("if={path}");
        let _ = std::process::Command::new("dd")
            .args([&drop_pages, "iflag=nocache", "count=0", "status=none"])
            .status();
        let start = Instant::now();
        load();
        let first = start.elapsed();
        let (fastest, _) = time(load);
        assert_eq!(frames.first(), Some(&pc));
        println!(
            "| {path} | {size} MB | {:.1} ms | {:.2} ms |",
            first.as_secs_f64() * 1e3,
            fastest.as_secs_f64() * 1e3
        );
    }
}

/// The fastest of some runs.
fn time(mut run: impl FnMut() -> usize) -> (Duration, usize) {
    let once = |_| {
        let start = Instant::now();
        let count = run();
        (start.elapsed(), count)
    };
    (0..15).map(once).min().expect("runs")
}

#[expect(clippy::print_stdout, reason = "a benchmark's report")]
fn table() {
    println!(
        "| program | samples | frames | ours, per frame | per sample | framehop, per frame | per sample | ours, cold per sample | framehop, cold |"
    );
    println!("|---|---|---|---|---|---|---|---|---|");
    for program in PROGRAMS {
        let samples = samples(program);
        let count = samples.samples.len().max(1);
        let mut frames = Vec::new();
        let mut unwinder = Unwinder::new(LocalFiles);
        let mut framehop = Framehop::new(LocalFiles);
        let cold = time(|| unwind(samples, &mut Unwinder::new(LocalFiles), &mut frames)).0;
        let cold_theirs = time(|| unwind(samples, &mut Framehop::new(LocalFiles), &mut frames));
        let (warm, total) = time(|| unwind(samples, &mut unwinder, &mut frames));
        let (warm_theirs, total_theirs) = time(|| unwind(samples, &mut framehop, &mut frames));
        let each = |time: Duration, count: usize| time.as_nanos() / count.max(1) as u128;
        println!(
            "| {program} | {count} | {total} | {} ns | {} ns | {} ns | {} ns | {} ns | {} ns |",
            each(warm, total),
            each(warm, count),
            each(warm_theirs, total_theirs),
            each(warm_theirs, count),
            each(cold, count),
            each(cold_theirs.0, count),
        );
    }
}
