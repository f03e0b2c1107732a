//! Truncated, mutated and foreign files: an error or less data, never a panic, a hang or absurd
//! memory.
#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::perf_record;
use prof_filemap::MappedFile;
use prof_model::{Modules, Processes};
use prof_perfdata::{Error, Record, Recording, follow};

/// Reads everything there is in `bytes`; returns the number of samples and whether the recording
/// is said to be damaged.
fn read(bytes: &[u8]) -> Result<(usize, bool), Error> {
    let mut recording = Recording::from_file(MappedFile::from(bytes.to_vec()))?;
    let mut processes = Processes::default();
    let mut modules = Modules::default();
    let mut samples = 0;
    while let Some(record) = recording.next() {
        follow(&record, &mut processes, &mut modules);
        if let Record::Sample(sample) = record {
            samples += 1;
            sample.callchain.count();
            sample.user_registers();
            sample.stack_note();
        }
    }
    Ok((samples, recording.truncated() || recording.malformed() > 0))
}

/// Small recordings of each form, by the real perf.
fn recordings() -> Vec<(&'static str, Vec<u8>)> {
    let program = [
        "sh",
        "-c",
        "i=0; while [ $i -lt 9000 ]; do i=$((i+1)); done",
    ];
    let kinds: [(&str, &[&str]); 4] = [
        ("file", &["-e", "cpu-clock,page-faults", "-F", "500", "-g"]),
        (
            "dumps",
            &["-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf,512"],
        ),
        ("compressed", &["-e", "cpu-clock", "-F", "999", "-g", "-z"]),
        (
            "pipe",
            &["-e", "cpu-clock,page-faults", "-F", "500", "-g", "-o", "-"],
        ),
    ];
    let directory = tempfile::tempdir().unwrap();
    kinds
        .into_iter()
        .filter_map(|(name, args)| {
            let path: &Path = &perf_record(directory.path(), args, &program)?;
            Some((name, std::fs::read(path).unwrap()))
        })
        .collect()
}

#[test]
fn cut_off_anywhere() {
    for (name, bytes) in recordings() {
        let (all, damaged) = read(&bytes).unwrap();
        assert!(all > 0 && !damaged, "{name}");
        let mut most = 0;
        for length in (0..bytes.len()).step_by(8) {
            let Ok((samples, damaged)) = read(&bytes[..length]) else {
                assert!(length < 4_096, "{name} cut at {length} cannot be read");
                continue;
            };
            // A pipe that ends between two records looks like one that ended.
            assert!(damaged || name == "pipe", "{name} cut at {length}");
            assert!(
                samples >= most,
                "{name} cut at {length}: fewer than with less"
            );
            most = samples;
        }
        // Only features come after the last sample, if anything.
        assert_eq!(most, all, "{name}");
    }
}

/// As after `cat a b`.
#[test]
fn a_recording_after_another_is_noticed() {
    let outcome = |bytes: Vec<u8>| {
        let mut recording = Recording::from_file(MappedFile::from(bytes)).unwrap();
        let mut samples = 0;
        while let Some(record) = recording.next() {
            samples += u64::from(matches!(record, Record::Sample(_)));
        }
        let damaged = recording.truncated() || recording.malformed() > 0;
        (samples, damaged, recording.is_followed())
    };
    for (name, bytes) in recordings() {
        let both = outcome([&bytes[..], &bytes].concat());
        let (samples, ..) = outcome(bytes.clone());
        assert_eq!(outcome(bytes), (samples, false, false), "{name}");
        assert_eq!(both, (samples, false, true), "{name}");
    }
}

#[test]
fn mutated_at_random() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    for (_, original) in recordings() {
        for _ in 0..400 {
            let mut bytes = original.clone();
            for _ in 0..1 + random.below(8) {
                // Half of the damage where it does most harm: in the headers.
                let range = [bytes.len(), 1_024.min(bytes.len())][random.below(2)];
                let position = random.below(range);
                bytes[position] = match random.below(4) {
                    0 => 0,
                    1 => 0xff,
                    2 => bytes[position] ^ 1 << random.below(8),
                    _ => random.below(256) as u8,
                };
            }
            let _ = read(&bytes);
        }
    }
}

#[test]
fn a_recording_that_was_killed_is_read_to_its_end() {
    let Some((_, mut bytes)) = recordings().into_iter().next() else {
        return;
    };
    let (all, _) = read(&bytes).unwrap();
    // The size of the records is filled in at the end, and the features are written then.
    let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
    let end = number(40) + number(48);
    bytes.truncate(end as usize);
    bytes[48..56].fill(0);
    assert_eq!(read(&bytes).unwrap(), (all, true));
}

#[test]
fn foreign_files_are_refused_with_a_reason() {
    let check = |bytes: &[u8], expected: &str| {
        let message = read(bytes).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    };
    check(b"", "empty");
    check(b"PERF", "ends before its first event");
    check(b"PERFILE2", "ends before its first event");
    check(b"PERFILE2\x68\0\0\0\0\0\0\0", "ends before its first event");
    check(b"PERFILE2\x10\0\0\0\0\0\0\0", "no events");
    check(b"2ELIFREP\0\0\0\0\0\0\0\x68", "big-endian");
    check(b"PERFFILE................", "first perf.data format");
    check(b"\x7fELF", "not a perf.data recording");
    check(&[0; 4_096], "not a perf.data recording");
    let mut header = b"PERFILE2".to_vec();
    header.extend([0xff; 200]);
    check(&header, "ends before its first event");
    header[8..].fill(0);
    check(&header, "ends before its first event");
}

#[test]
fn errors_about_a_path_name_it_once() {
    let check = |path: &str, expected: &str| {
        let error = Recording::open(path).unwrap_err();
        let message = error.to_string();
        assert_eq!(message.matches(path).count(), 1, "{message}");
        assert!(message.contains(expected), "{message}");
    };
    check("/nonexistent/prof.data", "No such file");
    check("/etc", "directory");
    check("/dev/null", "not a regular file");
    check("/bin/sh", "not a perf.data recording");
}

/// splitmix64
struct Random(u64);

impl Random {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ mixed >> 31) % end as u64) as usize
    }
}
