//! Walks that join an earlier one find what they would have found alone.

mod support;

use std::ops::Range;

use prof_needs::tools;
use prof_unwinder::{CachedUnwind, LocalFiles, Memory, StackDump, Unwinder};
use support::programs::{OPTIMIZED, Workshop};
use support::{Answer, Samples, UserSample};

/// Copied of a stack, so that it joins before more is needed: 256 frames are walked at least.
const ENOUGH: usize = 24 << 10;

/// A stack of which only the first bytes were copied. What lies beyond is read.
#[derive(Clone)]
struct Stack {
    start: u64,
    bytes: Vec<u8>,
    copied: usize,
}

/// That stack, and the one before it.
struct Now<'a> {
    stack: &'a Stack,
    cached_stack: Option<&'a Stack>,
    reads: usize,
}

impl Memory for Now<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.reads += 1;
        let at = address.wrapping_sub(self.stack.start);
        let bytes = self.stack.bytes.get(at as usize..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }

    fn unchanged(&mut self) -> Range<u64> {
        let end = |stack: &Stack| stack.start + stack.bytes.len() as u64;
        let (now, Some(cached_stack)) = (self.stack, self.cached_stack) else {
            return 0..0;
        };
        if end(now) != end(cached_stack) {
            return 0..0;
        }
        let bytes = now.bytes.iter().rev().zip(cached_stack.bytes.iter().rev());
        let same = bytes
            .take_while(|(now, cached_stack)| now == cached_stack)
            .count();
        end(now) - same as u64..end(now)
    }
}

/// Samples, and the program that they are of.
fn record(arguments: &[&str]) -> (Samples, Workshop) {
    let workshop = Workshop::new();
    let program = workshop.build("climb", "gcc", &[OPTIMIZED, arguments, &["climb.c"]]);
    let mut samples = workshop.record(&program, &[], 65_528);
    // Deeper ones are not all there.
    samples.samples.retain(|sample| !sample.full);
    (samples, workshop)
}

fn unwind(
    unwinder: &mut Unwinder,
    samples: &Samples,
    sample: &UserSample,
    memory: &mut Now<'_>,
    cached: Option<&CachedUnwind>,
) -> Answer {
    let mut frames = Vec::new();
    let stack = memory.stack;
    let dump = StackDump {
        start: stack.start,
        bytes: &stack.bytes[..stack.copied],
        full: stack.copied < stack.bytes.len(),
    };
    let target = samples.target(sample);
    let registers = &sample.registers;
    let unwound = unwinder.unwind_after(cached, &target, registers, &dump, memory, &mut frames);
    Answer { unwound, frames }
}

fn stack_of(sample: &UserSample, copied: usize) -> Stack {
    Stack {
        start: sample.stack_start,
        bytes: sample.stack.clone(),
        copied: copied.min(sample.stack.len()),
    }
}

/// Unwinds all samples one after the other, once in full and once up to where they join the one
/// before; returns how many did so before they needed more than the copy, of how many that do.
fn compare(samples: &Samples, copied: usize) -> (usize, usize) {
    let (mut alone, mut joining) = (Unwinder::new(LocalFiles), Unwinder::new(LocalFiles));
    let mut cached = CachedUnwind::default();
    let mut cached_stack: Option<Stack> = None;
    let (mut joined, mut deep) = (0, 0);
    for sample in &samples.samples {
        let stack = stack_of(sample, copied);
        let mut memory = Now {
            stack: &stack,
            cached_stack: cached_stack.as_ref(),
            reads: 0,
        };
        let expected = unwind(&mut alone, samples, sample, &mut memory, None);
        let reads = std::mem::take(&mut memory.reads);
        let found = unwind(&mut joining, samples, sample, &mut memory, Some(&cached));
        assert_eq!(found.unwound, expected.unwound);
        assert_eq!(found.frames, expected.frames);
        deep += usize::from(reads > 0);
        joined += usize::from(reads > 0 && memory.reads == 0);
        if joining.is_cacheable() {
            joining.keep(&mut cached);
            cached_stack = Some(stack);
        }
    }
    (joined, deep)
}

#[test]
fn stacks_that_go_up_and_down() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    for arguments in [&[][..], &["-fno-omit-frame-pointer"], &["-O1"]] {
        let (samples, _workshop) = record(arguments);
        compare(&samples, 8 << 10);
        let (joined, deep) = compare(&samples, ENOUGH);
        assert!(deep > 200 && joined > deep / 2, "{joined} of {deep}");
    }
}

/// Whatever else is on the stack the second time, nothing is joined that does not follow from it.
#[test]
fn stacks_that_change_anywhere() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let (samples, _workshop) = record(&[]);
    let mut unwinder = Unwinder::new(LocalFiles);
    let mut random = fastrand::Rng::with_seed(7);
    let (mut same, mut other) = (0, 0);
    for sample in samples.samples.iter().step_by(4) {
        let cached_stack = stack_of(sample, 8 << 10);
        let mut memory = Now {
            stack: &cached_stack,
            cached_stack: None,
            reads: 0,
        };
        let mut cached = CachedUnwind::default();
        let whole = unwind(&mut unwinder, &samples, sample, &mut memory, None);
        if !unwinder.is_cacheable() {
            continue;
        }
        unwinder.keep(&mut cached);
        for _ in 0..8 {
            let mut now = cached_stack.clone();
            let words = now.bytes.len() / 8;
            for _ in 0..=random.usize(..3) {
                let (to, from) = (random.usize(..words) * 8, random.usize(..words) * 8);
                now.bytes.copy_within(from..from + 8, to);
            }
            let mut memory = Now {
                stack: &now,
                cached_stack: Some(&cached_stack),
                reads: 0,
            };
            // Twice, as it learns from odd stacks.
            unwind(&mut unwinder, &samples, sample, &mut memory, None);
            let expected = unwind(&mut unwinder, &samples, sample, &mut memory, None);
            let found = unwind(&mut unwinder, &samples, sample, &mut memory, Some(&cached));
            assert_eq!(found.unwound, expected.unwound);
            assert_eq!(found.frames, expected.frames);
            let changed = expected.frames != whole.frames;
            (same, other) = (same + usize::from(!changed), other + usize::from(changed));
        }
    }
    assert!(same > 100 && other > 100, "{same} {other}");
}

/// Of a stack that is the same but for its innermost frames, those are all that is walked.
#[test]
fn little_is_walked_and_nothing_allocated() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let (samples, _workshop) = record(&[]);
    let deepest = samples
        .samples
        .iter()
        .max_by_key(|sample| sample.stack.len());
    let sample = deepest.expect("samples");
    let stack = stack_of(sample, ENOUGH);
    let mut memory = Now {
        stack: &stack,
        cached_stack: Some(&stack),
        reads: 0,
    };
    let mut unwinder = Unwinder::new(LocalFiles);
    let (mut cached, mut frames) = (CachedUnwind::default(), Vec::with_capacity(10_000));
    let dump = StackDump {
        start: stack.start,
        bytes: &stack.bytes[..stack.copied],
        full: true,
    };
    let target = samples.target(sample);
    let mut run = |cached: &mut CachedUnwind| {
        frames.clear();
        let before = memory.reads;
        unwinder.unwind_after(
            Some(cached),
            &target,
            &sample.registers,
            &dump,
            &mut memory,
            &mut frames,
        );
        assert!(unwinder.is_cacheable());
        unwinder.keep(cached);
        (frames.len(), memory.reads - before)
    };
    let (depth, reads) = run(&mut cached);
    assert!(depth > 700 && reads > 0, "{depth}");
    assert_eq!(run(&mut cached), (depth, 0));
    let warm = allocation_counter::measure(|| {
        assert_eq!(run(&mut cached), (depth, 0));
    });
    assert_eq!(warm.count_total, 0);
}
