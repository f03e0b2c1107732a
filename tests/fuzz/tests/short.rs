//! Each fuzz target on its seeds and on a thousand mutations of them, the same ones each time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![allow(clippy::print_stdout, reason = "shown where a test fails")]

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use fastrand::Rng;
use prof_fuzz_targets::TARGETS;

/// Mutations of all seeds of a target together.
const MUTATIONS: usize = 1000;
/// The maximum peak memory of this process. It uses some 150 MiB.
const MOST_KIB: u64 = 1 << 20;

fn seeds(name: &str) -> Vec<Vec<u8>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/seeds");
    let entries = std::fs::read_dir(Path::new(folder).join(name)).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .map(|path| std::fs::read(path).unwrap())
        .collect()
}

/// Bytes that are about where parsers decide.
const ODD: [&[u8]; 10] = [
    &[0],
    &[0xff],
    &[0x7f],
    b"\n",
    b" ",
    b"9",
    &[0xff; 4],
    &[0, 0, 0, 0x80],
    &[0xff; 8],
    &[0; 8],
];

fn mutated(seeds: &[Vec<u8>], random: &mut Rng) -> Vec<u8> {
    let mut bytes = seeds[random.usize(..seeds.len())].clone();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(..=bytes.len());
        let end = (at + random.usize(..64)).min(bytes.len());
        match random.u8(..7) {
            0 => bytes.truncate(at),
            1 => drop(bytes.drain(at..end)),
            2 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            3 => {
                let other = &seeds[random.usize(..seeds.len())];
                let from = random.usize(..=other.len());
                bytes.truncate(at);
                bytes.extend_from_slice(&other[from..]);
            }
            4 if at < bytes.len() => bytes[at] ^= 1 << random.u8(..8),
            5 if at < bytes.len() => bytes[at] = random.u8(..),
            _ => {
                let odd = ODD[random.usize(..ODD.len())];
                let end = (at + odd.len()).min(bytes.len());
                bytes.splice(at..end, odd.iter().copied());
            }
        }
    }
    bytes
}

fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.unwrap().trim().trim_end_matches(" kB");
    number.parse().unwrap()
}

fn check(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name).unwrap();
    let seeds = seeds(name);
    let mut random = Rng::with_seed(1);
    let mutations = (0..MUTATIONS).map(|_| mutated(&seeds, &mut random));
    let inputs: Vec<_> = seeds
        .iter()
        .cloned()
        .chain([Vec::new()])
        .chain(mutations)
        .collect();
    for bytes in inputs {
        let before = peak_kib();
        let result = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        let peak = peak_kib();
        if result.is_err() || peak > MOST_KIB {
            let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
            std::fs::write(&kept, &bytes).unwrap();
            println!(
                "the input is {}, memory {before} to {peak} KiB",
                kept.display()
            );
        }
        result.unwrap_or_else(|panic| resume_unwind(panic));
        assert!(peak <= MOST_KIB, "{peak} KiB");
    }
}

macro_rules! short {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            check(stringify!($name));
        })*

        #[test]
        fn each_target_has_a_test_and_a_program() {
            let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
            assert_eq!(names, [$(stringify!($name)),*]);
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz");
            let manifest = std::fs::read_to_string(format!("{folder}/Cargo.toml")).unwrap();
            for name in names {
                let path = format!("fuzz_targets/{name}.rs");
                assert!(Path::new(folder).join(&path).exists(), "{path}");
                assert!(manifest.contains(&path), "{path}");
            }
        }
    };
}

short! {
    control
    debuginfod
    event_names
    formats
    hotspot
    kallsyms
    maps
    php
    profile
    python
    recording
    ruby
    symbols_elf
    symbols_go
    symbols_jit
    symbols_names
    tables
    unwind
    unwound
    v8
}
