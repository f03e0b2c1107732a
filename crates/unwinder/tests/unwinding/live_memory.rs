//! Stack tails read from a live process: deep recursion, handlers on alternate stacks, and memory
//! that has changed meanwhile.

use std::ops::Range;

use crate::support::live::{ProcessMemory, Target};
use crate::support::programs::{OPTIMIZED, Workshop};
use crate::support::{Answer, Samples, UserSample};
use prof_model::StackEnd;
use prof_needs::tools;
use prof_unwinder::{FRAME_LIMIT, LocalFiles, Memory, NoMemory, StackDump, Unwinder, UserState};

/// A sampled process that is stopped.
struct Stopped {
    samples: Samples,
    memory: ProcessMemory,
    _target: Target,
    _workshop: Workshop,
}

fn stop(source: &str, arguments: &[&str], dump: u32) -> Stopped {
    let workshop = Workshop::new();
    let program = workshop.build("program", "gcc", &[OPTIMIZED, &[source]]);
    let target = Target::start(&program, arguments);
    let samples = target.sample_and_stop(&workshop, dump);
    assert!(samples.samples.len() > 50, "{}", samples.samples.len());
    Stopped {
        samples,
        memory: ProcessMemory::of(target.pid()),
        _target: target,
        _workshop: workshop,
    }
}

fn unwind(samples: &Samples, sample: &UserSample, memory: &mut impl Memory) -> Answer {
    let mut frames = Vec::new();
    let unwound = Unwinder::new(LocalFiles).unwind(
        &samples.target(sample),
        &UserState {
            registers: &sample.registers,
            dump: sample.dump(),
        },
        memory,
        &mut frames,
    );
    Answer { unwound, frames }
}

/// Every stack must be whole and at least `depth` deep, frames left out included.
fn check(stopped: &mut Stopped, depth: usize, remote_read: bool) {
    for sample in &stopped.samples.samples {
        let answer = unwind(&stopped.samples, sample, &mut stopped.memory);
        let unwound = answer.unwound;
        assert_eq!(unwound.end, StackEnd::Root, "{}", answer.frames.len());
        let total = answer.frames.len() + unwound.elided as usize;
        assert!(total >= depth, "{total}");
        assert_eq!(unwound.remote_read > 0, remote_read);
        assert_eq!(unwound.elided > 0, total > FRAME_LIMIT);
    }
}

#[test]
fn recursion_deeper_than_the_dump() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check(&mut stop("recursion.c", &["100", "x"], 8 << 10), 100, false);
    check(
        &mut stop("recursion.c", &["2000", "x"], 8 << 10),
        2_000,
        true,
    );
    check(
        &mut stop("recursion.c", &["7000", "x"], 32 << 10),
        7_000,
        true,
    );
    check(
        &mut stop("recursion.c", &["40000", "x"], 65_528),
        40_000,
        true,
    );
}

#[test]
fn the_main_stack_under_a_handler_on_its_own_stack() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check(
        &mut stop("signals.c", &["alternate", "x"], 16 << 10),
        9,
        true,
    );
}

/// The trampolines' code is in no file.
#[test]
fn trampolines_of_cpython() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    check(&mut stop("trampoline.c", &["20", "x"], 16 << 10), 40, false);
}

/// Unchanged memory, except for one changed byte at intervals.
struct Changed<'a> {
    memory: &'a mut ProcessMemory,
    range: Range<u64>,
}

impl Memory for Changed<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let count = self.memory.read(address, buffer);
        for (at, byte) in (address..).zip(buffer) {
            if self.range.contains(&at) && at % 64 == 0 {
                *byte ^= 0x55;
            }
        }
        count
    }
}

#[test]
fn a_changed_seam_is_not_believed() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("recursion.c", &["2000", "x"], 8 << 10);
    for sample in &stopped.samples.samples {
        let dump_end = sample.stack_start + sample.stack.len() as u64;
        let whole = unwind(&stopped.samples, sample, &mut stopped.memory);
        let mut changed = Changed {
            memory: &mut stopped.memory,
            range: dump_end - 300..dump_end,
        };
        let answer = unwind(&stopped.samples, sample, &mut changed);
        assert_eq!(answer.unwound.end, StackEnd::Stale);
        assert_eq!(answer.unwound.remote_read, 0);
        assert!(whole.frames.starts_with(&answer.frames));
    }
}

/// The kernel copies nothing of a stack whose page is not in memory yet. What the target has there
/// later may be of other callers, even if each call leads to the function below.
#[test]
fn nothing_joins_an_empty_dump() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("recursion.c", &["100", "x"], 8 << 10);
    for sample in &stopped.samples.samples {
        let mut frames = Vec::new();
        let unwound = Unwinder::new(LocalFiles).unwind(
            &stopped.samples.target(sample),
            &UserState {
                registers: &sample.registers,
                dump: StackDump {
                    bytes: &[],
                    full: false,
                    ..sample.dump()
                },
            },
            &mut stopped.memory,
            &mut frames,
        );
        assert_eq!((unwound.end, frames.len()), (StackEnd::Stale, 1));
    }
}

/// At an entry to the kernel, it copies the stack from where it was at the entry before.
#[test]
fn the_copy_may_start_elsewhere_than_at_the_stack_pointer() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    const MOVED: usize = 1024;
    let stopped = stop("recursion.c", &["100", "x"], 16 << 10);
    for sample in &stopped.samples.samples {
        let usual = unwind(&stopped.samples, sample, &mut NoMemory);
        let unwind = |start: u64, stack: &[u8], live: &[u8]| {
            let mut frames = Vec::new();
            let dump = StackDump {
                start,
                bytes: stack,
                full: sample.full,
            };
            let unwound = Unwinder::new(LocalFiles).unwind(
                &stopped.samples.target(sample),
                &UserState {
                    registers: &sample.registers,
                    dump,
                },
                &mut Copied {
                    start: sample.stack_start & !15,
                    bytes: live,
                },
                &mut frames,
            );
            (unwound.end, unwound.remote_read > 0, frames == usual.frames)
        };
        let start = sample.stack_start;
        let below = vec![0x55; (start % 16) as usize];
        let live = &[&below[..], &sample.stack].concat()[..];
        let none = &[][..];

        let lower = [&[0x55; MOVED][..], &sample.stack].concat();
        let answer = unwind(start - MOVED as u64, &lower, none);
        assert_eq!(answer, (StackEnd::Root, false, true));

        let (higher_start, higher) = (start + MOVED as u64, &sample.stack[MOVED..]);
        let answer = unwind(higher_start, higher, live);
        assert_eq!(answer, (StackEnd::Root, true, true));
        let answer = unwind(higher_start, higher, none);
        assert_eq!(answer, (StackEnd::UnreadableMemory, false, false));
        let changed = [&[0x55; 8][..], &higher[8..]].concat();
        let answer = unwind(higher_start, &changed, live);
        assert_eq!(answer, (StackEnd::OtherStack, false, false));
    }
}

/// Memory as it was at the sample.
struct Copied<'a> {
    start: u64,
    bytes: &'a [u8],
}

impl Memory for Copied<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let skip = address.wrapping_sub(self.start) as usize;
        let bytes = self.bytes.get(skip..).unwrap_or_default();
        let count = bytes.len().min(buffer.len());
        buffer[..count].copy_from_slice(&bytes[..count]);
        count
    }
}

/// Memory that has changed, while that of an earlier sample is still known.
struct Remembered<'a> {
    cached_stack: Changed<'a>,
}

impl Memory for Remembered<'_> {
    fn read(&mut self, _: u64, buffer: &mut [u8]) -> usize {
        buffer.fill(0x55);
        buffer.len()
    }

    fn read_snapshot(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.cached_stack.read(address, buffer)
    }
}

#[test]
fn earlier_tails_are_used_if_they_join_the_dump() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("recursion.c", &["2000", "x"], 8 << 10);
    let mut check = |below_end: Range<u64>, expected| {
        for sample in &stopped.samples.samples {
            let dump_end = sample.stack_start + sample.stack.len() as u64;
            let mut memory = Remembered {
                cached_stack: Changed {
                    memory: &mut stopped.memory,
                    range: dump_end - below_end.end..dump_end - below_end.start,
                },
            };
            let answer = unwind(&stopped.samples, sample, &mut memory);
            assert_eq!(answer.unwound.end, expected);
            assert_eq!(answer.unwound.remote_read > 0, expected == StackEnd::Root);
        }
    };
    check(0..0, StackEnd::Root);
    check(0..300, StackEnd::Stale);
    check(3800..4000, StackEnd::Stale);
    check(4200..5000, StackEnd::Root);
}

/// The stack of a thread that has ended since: the kernel has freed it.
struct Emptied;

impl Memory for Emptied {
    fn read(&mut self, _: u64, buffer: &mut [u8]) -> usize {
        buffer.fill(0);
        buffer.len()
    }
}

#[test]
fn zeros_that_join_zeros_are_no_end_of_the_stack() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let stopped = stop("roomy.c", &["20", "x"], 16 << 10);
    for sample in &stopped.samples.samples {
        let copied = &sample.stack[sample.stack.len() - 512..];
        assert!(copied.iter().all(|&byte| byte == 0), "not the case to test");
        let answer = unwind(&stopped.samples, sample, &mut Emptied);
        assert_eq!(answer.unwound.end, StackEnd::Stale);
        assert!(answer.frames.len() > 2);
    }
}

/// The same, while that of an earlier sample is still known.
struct EmptiedSince<'a>(&'a mut dyn Memory);

impl Memory for EmptiedSince<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        Emptied.read(address, buffer)
    }

    fn read_snapshot(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.read(address, buffer)
    }
}

#[test]
fn earlier_tails_precede_accidental_joins() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("roomy.c", &["20", "x"], 16 << 10);
    for sample in &stopped.samples.samples {
        let mut memory = EmptiedSince(&mut stopped.memory);
        let answer = unwind(&stopped.samples, sample, &mut memory);
        assert_eq!(answer.unwound.end, StackEnd::Root);
        assert!(answer.frames.len() > 20 && answer.unwound.remote_read > 10);
    }
}

#[test]
fn without_memory_the_reason_is_the_dump() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let stopped = stop("recursion.c", &["2000", "x"], 8 << 10);
    for answer in stopped.samples.unwind(&mut Unwinder::new(LocalFiles)) {
        assert_eq!(answer.unwound.end, StackEnd::TruncatedDump);
        assert!(answer.frames.len() > 100);
    }
}

/// The kernel's chain of frame pointers, and no memory.
struct KernelChain(Vec<u64>);

impl Memory for KernelChain {
    fn read(&mut self, _: u64, _: &mut [u8]) -> usize {
        0
    }

    fn kernel_callchain(&self, index: usize) -> Option<u64> {
        self.0.get(index).copied()
    }
}

/// Cuts the dump of each stack after its second frame, so that the kernel's chain must lead on.
#[track_caller]
fn check_kernel_chain(
    source: &str,
    arguments: &[&str],
    change: impl Fn(&mut Vec<u64>),
    expected: StackEnd,
) {
    let stopped = stop(source, arguments, 16 << 10);
    let mut checked = 0;
    for sample in &stopped.samples.samples {
        let whole = unwind(&stopped.samples, sample, &mut NoMemory);
        let unwind_cut = |bytes: usize, memory: &mut KernelChain| {
            let mut frames = Vec::new();
            let dump = StackDump {
                bytes: &sample.stack[..bytes],
                full: true,
                ..sample.dump()
            };
            let target = stopped.samples.target(sample);
            let unwound = Unwinder::new(LocalFiles).unwind(
                &target,
                &UserState {
                    registers: &sample.registers,
                    dump,
                },
                memory,
                &mut frames,
            );
            (unwound.end, frames)
        };
        let none = &mut KernelChain(Vec::new());
        let cut = (8..sample.stack.len()).step_by(8);
        let Some(cut) = cut
            .take(512)
            .find(|&cut| unwind_cut(cut, none).1.len() == 2)
        else {
            continue;
        };
        let mut chain: Vec<u64> = whole.frames.iter().map(|frame| frame + 1).collect();
        chain[0] -= 1;
        change(&mut chain);
        let (end, frames) = unwind_cut(cut, &mut KernelChain(chain));
        assert_eq!(end, expected);
        if end == StackEnd::Root {
            assert_eq!(frames, whole.frames);
        } else {
            assert_eq!(frames, whole.frames[..2]);
        }
        checked += 1;
    }
    assert!(checked > 20, "{checked}");
}

#[test]
fn the_kernels_chain_is_taken_where_nothing_else_leads_on() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let check = |change: fn(&mut Vec<u64>), expected| {
        check_kernel_chain("shallow.c", &["x"], change, expected);
    };
    check(|_| {}, StackEnd::Root);
    // The innermost function had no frame yet.
    check(|chain| _ = chain.remove(1), StackEnd::Root);
    // An address that does not follow a call is not a caller.
    check(|chain| chain[3] += 1, StackEnd::TruncatedDump);
    // It must lead to an entry.
    check(|chain| _ = chain.pop(), StackEnd::TruncatedDump);
    check(Vec::clear, StackEnd::TruncatedDump);
}

#[test]
fn the_kernels_chain_is_not_joined_in_recursion() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let ambiguous = |chain: &mut Vec<u64>| {
        let second = chain[1];
        chain.insert(2, second);
    };
    check_kernel_chain("shallow.c", &["x"], ambiguous, StackEnd::TruncatedDump);
}
