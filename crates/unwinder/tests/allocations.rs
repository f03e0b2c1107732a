//! No allocation per sample in the steady state.

mod support;

use std::path::Path;

use prof_needs::tools;
use prof_unwinder::{LocalFiles, Unwinder, UserState};
use support::live::{ProcessMemory, Target};
use support::programs::{OPTIMIZED, Workshop};

#[test]
fn unwinding_does_not_allocate_once_warm() {
    if !tools(&["perf", "g++"]) {
        return;
    }
    let workshop = Workshop::new();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/inlining.cc");
    let arguments = ["-O2", "-c", source, "-o", "/dev/null"];
    let samples = workshop.record(Path::new("g++"), &arguments, 32 << 10);
    let mut unwinder = Unwinder::new(LocalFiles);
    let mut frames = Vec::with_capacity(10_000);
    let mut run = || {
        for sample in &samples.samples {
            frames.clear();
            unwinder.unwind(
                &samples.target(sample),
                &UserState {
                    registers: &sample.registers,
                    dump: sample.dump(),
                },
                &mut prof_unwinder::NoMemory,
                &mut frames,
            );
        }
    };
    run();
    let warm = allocation_counter::measure(run);
    assert!(samples.samples.len() > 100);
    assert_eq!(warm.count_total, 0);
}

#[test]
fn reading_live_memory_does_not_allocate_once_warm() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let program = workshop.build("recursion", "gcc", &[OPTIMIZED, &["recursion.c"]]);
    let target = Target::start(&program, &["20000", "forever"]);
    let samples = target.sample_and_stop(&workshop, 32 << 10);
    let mut memory = ProcessMemory::of(target.pid());
    let mut unwinder = Unwinder::new(LocalFiles);
    let mut frames = Vec::with_capacity(10_000);
    let mut run = || {
        for sample in samples.samples.iter().take(20) {
            frames.clear();
            let unwound = unwinder.unwind(
                &samples.target(sample),
                &UserState {
                    registers: &sample.registers,
                    dump: sample.dump(),
                },
                &mut memory,
                &mut frames,
            );
            assert!(unwound.remote_read > 10_000);
        }
    };
    run();
    let warm = allocation_counter::measure(run);
    assert_eq!(warm.count_total, 0);
}
