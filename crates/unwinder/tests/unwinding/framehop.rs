//! Compares frame by frame with framehop, on real programs.

use std::path::Path;

use crate::support::Samples;
use crate::support::programs::{OPTIMIZED, Workshop};
use prof_model::StackEnd;
use prof_needs::tools;
use prof_unwinder::{Framehop, LocalFiles, Unwinder};

/// If framehop reaches the end, we must, too, with the same frames, except for frames that it
/// invents past the entry of the dynamic linker; and we must reach the end more often.
fn check(samples: &Samples) {
    let answers = samples.unwind(&mut Unwinder::new(LocalFiles));
    let second = samples.unwind(&mut Framehop::new(LocalFiles));
    let (mut theirs_whole, mut ours_whole, mut different) = (0, 0, Vec::new());
    for ((sample, ours), theirs) in samples.samples.iter().zip(&answers).zip(second) {
        if !ours.unwound.end.counts() {
            continue;
        }
        let whole = theirs.unwound.end == StackEnd::Root;
        let mut theirs = theirs.frames;
        theirs_whole += usize::from(whole);
        ours_whole += usize::from(ours.unwound.end == StackEnd::Root);
        let made_up = |address: &u64| *address < 0x1000;
        theirs.truncate(theirs.iter().position(made_up).unwrap_or(theirs.len()));
        if whole && theirs != ours.frames {
            different.push((theirs, &ours.frames, sample));
        }
    }
    let count = samples.samples.len();
    assert!(count > 20, "{count}");
    assert!(ours_whole >= theirs_whole, "{ours_whole} {theirs_whole}");
    // If they differ, framehop's guess by frame pointer skipped frames.
    assert!(
        different.len() * 50 <= count,
        "{} of {count}:\n{}",
        different.len(),
        {
            let (theirs, ours, sample) = &different[0];
            let places = |frames: &[u64]| {
                let place = |&frame: &u64| samples.place(sample, frame);
                frames.iter().map(place).collect::<Vec<_>>().join(" ")
            };
            format!("theirs {}\nours   {}", places(theirs), places(ours))
        }
    );
}

#[test]
fn programs_of_the_system() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    let python = "import json; x = [{'a': i, 'b': [1]} for i in range(20000)]\n\
                  for _ in range(6): json.loads(json.dumps(x)); sorted(x, key=lambda d: -d['a'])";
    check(&workshop.record(Path::new("python3"), &["-c", python], 65_528));
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/inlining.cc");
    let arguments = ["-O2", "-c", source, "-o", "/dev/null"];
    check(&workshop.record(Path::new("g++"), &arguments, 65_528));
}

#[test]
fn our_own_programs() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let workshop = Workshop::new();
    for (name, compiler, source) in [
        ("callbacks", "gcc", "callbacks.c"),
        ("frames", "clang", "frames.c"),
    ] {
        let program = workshop.build(name, compiler, &[OPTIMIZED, &[source]]);
        check(&workshop.record(&program, &[], 65_528));
    }
}
