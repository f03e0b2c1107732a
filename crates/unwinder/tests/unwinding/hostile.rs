//! Damaged files, stacks, registers and memory: any answer is right if it comes soon.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::support::programs::{NO_CFI, OPTIMIZED, Workshop};
use crate::support::{Samples, UserSample};
use prof_model::{Mapping, Module, Pid, RegisterAbi, UserRegisters};
use prof_needs::tools;
use prof_unwinder::{Memory, ModuleFiles, StackDump, Unwinder, UserState};

/// xorshift64*: the same numbers in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    /// Changes some bytes within `range` to random or extreme values.
    fn damage(&mut self, bytes: &mut [u8], range: std::ops::Range<usize>, count: usize) {
        for _ in 0..count {
            let at = range.start + self.below(range.len());
            let value = match self.below(4) {
                0 => 0xff,
                1 => 0,
                2 => 0x80,
                _ => self.next() as u8,
            };
            if let Some(byte) = bytes.get_mut(at) {
                *byte = value;
            }
        }
    }
}

/// Gives one file for every module.
struct OneFile(PathBuf);

impl ModuleFiles for OneFile {
    fn open(&mut self, _: Pid, _: &Module, _: &Mapping) -> io::Result<File> {
        File::open(&self.0)
    }
}

/// Memory with content everywhere.
struct Anything<'a>(&'a mut Random, &'a UserSample);

impl Memory for Anything<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        // The overlap is right, the rest is not: addresses on the stack and code addresses.
        let code = self.1.registers.get(8).unwrap_or(0);
        for (index, word) in buffer.chunks_mut(8).enumerate() {
            let at = address.wrapping_add(8 * index as u64);
            let offset = at.wrapping_sub(self.1.stack_start) as usize;
            let value = match self.1.stack.get(offset..).and_then(<[u8]>::first_chunk) {
                Some(bytes) => u64::from_le_bytes(*bytes),
                None if self.0.below(2) == 0 => at.wrapping_add(self.0.next() & 0xff),
                None => code.wrapping_add(self.0.next() & 0xff),
            };
            word.copy_from_slice(&value.to_le_bytes()[..word.len()]);
        }
        buffer.len()
    }
}

fn unwind(samples: &Samples, unwinder: &mut Unwinder, sample: &UserSample, random: &mut Random) {
    let mut frames = Vec::new();
    let unwound = unwinder.unwind(
        &samples.target(sample),
        &UserState {
            registers: &sample.registers,
            dump: sample.dump(),
        },
        &mut Anything(random, sample),
        &mut frames,
    );
    assert!(frames.len() <= prof_unwinder::FRAME_LIMIT, "{unwound:?}");
}

fn record(flags: &[&[&str]], source: &str) -> (Workshop, PathBuf, Samples) {
    let workshop = Workshop::new();
    let source = [source];
    let program = workshop.build("program", "gcc", &[&[OPTIMIZED, &source], flags].concat());
    let mut samples = workshop.record(&program, &[], 16 << 10);
    samples.samples.truncate(4);
    (workshop, program, samples)
}

fn section(program: &Path, name: &str) -> std::ops::Range<usize> {
    use object::{Object, ObjectSection};
    let bytes = std::fs::read(program).expect("program");
    let file = object::File::parse(&*bytes).expect("ELF");
    let (start, size) = file
        .section_by_name(name)
        .and_then(|section| section.file_range())
        .expect(name);
    start as usize..(start + size) as usize
}

/// Damages `range` of the program in many ways and unwinds with each.
fn check_file(flags: &[&[&str]], source: &str, part: impl Fn(&Path) -> std::ops::Range<usize>) {
    let (workshop, program, samples) = record(flags, source);
    let original = std::fs::read(&program).expect("program");
    let range = part(&program);
    let damaged = workshop.path("damaged");
    let mut random = Random(0x1234_5678_9abc_def1);
    for round in 0..400 {
        let mut bytes = original.clone();
        random.damage(&mut bytes, range.clone(), 1 + round % 24);
        if round % 10 == 9 {
            bytes.truncate(random.below(original.len()));
        }
        std::fs::write(&damaged, &bytes).expect("file");
        let mut unwinder = Unwinder::new(OneFile(damaged.clone()));
        for sample in &samples.samples {
            unwind(&samples, &mut unwinder, sample, &mut random);
        }
    }
}

#[test]
fn damaged_headers() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_file(&[&["-static"]], "shallow.c", |_| 0..0x400);
}

#[test]
fn damaged_eh_frame() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_file(&[], "frames.c", |program| section(program, ".eh_frame"));
    let no_header: &[&str] = &["-Wl,--no-eh-frame-hdr"];
    check_file(&[no_header], "frames.c", |program| {
        section(program, ".eh_frame")
    });
}

#[test]
fn damaged_eh_frame_hdr() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_file(&[], "shallow.c", |program| {
        section(program, ".eh_frame_hdr")
    });
}

#[test]
fn damaged_debug_frame() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_file(&[NO_CFI, &["-g"]], "shallow.c", |program| {
        section(program, ".debug_frame")
    });
    let compressed: &[&str] = &["-g", "-gz=zlib"];
    check_file(&[NO_CFI, compressed], "shallow.c", |program| {
        section(program, ".debug_frame")
    });
}

#[test]
fn damaged_code() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check_file(&[NO_CFI], "shallow.c", |program| section(program, ".text"));
}

#[test]
fn damaged_stacks_and_registers() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    const MASK: u64 = 0x00ff_0fff;
    let (_workshop, program, samples) = record(&[], "frames.c");
    let mut random = Random(0xfeed_beef_dead_c0de);
    let mut unwinder = Unwinder::new(OneFile(program));
    for _ in 0..2_000 {
        for sample in &samples.samples {
            let mut stack = sample.stack.clone();
            let length = stack.len();
            let count = 1 + random.below(64);
            random.damage(&mut stack, 0..length, count);
            let values = (0..64).filter_map(|number| sample.registers.get(number));
            let values: Vec<u64> = values
                .map(|value| match random.below(6) {
                    0 => random.next(),
                    1 => u64::MAX,
                    2 => value.wrapping_add(random.next() & 0xff),
                    _ => value,
                })
                .collect();
            let registers =
                UserRegisters::new(RegisterAbi::Bits64, MASK, values).expect("registers");
            let mut frames = Vec::new();
            let dump = StackDump {
                start: sample.stack_start,
                bytes: &stack[..random.below(length + 1)],
                full: random.below(2) == 0,
            };
            let target = samples.target(sample);
            unwinder.unwind(
                &target,
                &UserState {
                    registers: &registers,
                    dump,
                },
                &mut Anything(&mut random, sample),
                &mut frames,
            );
        }
    }
}
