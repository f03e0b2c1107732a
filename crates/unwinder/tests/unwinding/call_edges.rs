//! Beyond the dump of a stack, each call must lead to the function below it.

use std::ops::Range;

use crate::support::live::{ProcessMemory, Target};
use crate::support::programs::{OPTIMIZED, Workshop};
use crate::support::{Answer, Samples, UserSample};
use prof_model::StackEnd;
use prof_needs::tools;
use prof_unwinder::{LocalFiles, Memory, StackDump, Unwinder, UserState};

/// A sampled process that is stopped deep in a recursion.
struct Stopped {
    samples: Samples,
    memory: ProcessMemory,
    _target: Target,
    _workshop: Workshop,
}

fn stop(source: &str) -> Stopped {
    let workshop = Workshop::new();
    let program = workshop.build("program", "gcc", &[OPTIMIZED, &[source]]);
    let target = Target::start(&program, &["2000", "x"]);
    let samples = target.sample_and_stop(&workshop, 8 << 10);
    Stopped {
        samples,
        memory: ProcessMemory::of(target.pid()),
        _target: target,
        _workshop: workshop,
    }
}

/// Unchanged memory, except for one word.
struct Later<'a> {
    memory: &'a mut ProcessMemory,
    other: Option<(u64, u64)>,
}

impl Memory for Later<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        let count = self.memory.read(address, buffer);
        if let Some((at, word)) = self.other {
            let first = at.wrapping_sub(address) as usize;
            let bytes = word.to_le_bytes();
            if let Some(place) = buffer.get_mut(first..first.saturating_add(8)) {
                place.copy_from_slice(&bytes);
            }
        }
        count
    }

    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        self.memory.mapping(address)
    }
}

fn unwind(
    unwinder: &mut Unwinder,
    samples: &Samples,
    (sample, copy): (&UserSample, &[u8]),
    memory: &mut Later<'_>,
) -> Answer {
    let mut frames = Vec::new();
    let dump = StackDump {
        start: sample.stack_start,
        bytes: copy,
        full: true,
    };
    let target = samples.target(sample);
    let unwound = unwinder.unwind(
        &target,
        &UserState {
            registers: &sample.registers,
            dump,
        },
        memory,
        &mut frames,
    );
    Answer { unwound, frames }
}

/// Another function's call in a frame of the same size: everything but the call fits.
#[test]
fn a_call_of_another_function_is_not_the_caller() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("recursion.c");
    let (samples, memory) = (&stopped.samples, &mut stopped.memory);
    let mut checked = 0;
    for sample in samples.samples.iter().take(20) {
        let mut unwinder = Unwinder::new(LocalFiles);
        let mut check = |memory: &mut ProcessMemory, other, expected| {
            let mut memory = Later { memory, other };
            let of = (sample, &sample.stack[..]);
            let answer = unwind(&mut unwinder, samples, of, &mut memory);
            assert_eq!(answer.unwound.end, expected, "{}", answer.frames.len());
            answer.frames
        };
        let frames = check(memory, None, StackEnd::Root);
        let recursion = frames[frames.len() / 2];
        // The innermost frame of descend is where it called spin.
        let first = frames.iter().position(|&frame| frame == recursion);
        let Some(of_spin) = first.filter(|&first| first >= 2).map(|at| frames[at - 1]) else {
            continue;
        };
        let word = (recursion + 1).to_le_bytes();
        let end = sample.stack_start + sample.stack.len() as u64;
        let mut beyond = [0; 4096];
        memory.read(end, &mut beyond);
        let at = beyond.chunks(8).position(|chunk| chunk == word);
        let at = end + 8 * at.expect("return addresses lie beyond the copy") as u64;
        check(memory, Some((at, of_spin + 1)), StackEnd::Stale);
        check(memory, Some((at, recursion + 1)), StackEnd::Root);
        checked += 1;
    }
    assert!(checked > 5, "{checked}");
}

/// Nothing contradicts a call whose target the code does not show.
#[test]
fn a_call_through_a_pointer_is_believed() {
    if !tools(&["perf", "gcc"]) {
        return;
    }
    let mut stopped = stop("pointer.c");
    let (samples, memory) = (&stopped.samples, &mut stopped.memory);
    let sample = samples.samples.first().expect("samples");
    let memory = &mut Later {
        memory,
        other: None,
    };
    let unwinder = &mut Unwinder::new(LocalFiles);
    let answer = unwind(unwinder, samples, (sample, &sample.stack[..]), memory);
    assert_eq!(
        answer.unwound.end,
        StackEnd::Root,
        "{}",
        answer.frames.len()
    );
}
