//! Where the parts of a sample are that the reader thread must find before anybody parses it.

use prof_events::{Opened, Setup, Stacks};

/// The layout of the samples of an event that this crate has opened.
///
/// ```text
///   sample: header id ip pid,tid time cpu [period] [nr, counts] [nr, chain]
///   byte    0      8  16 24      32   40  48
///           [abi, registers] [size, stack, copied] [abi, registers at the kernel's entry]
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SampleLayout {
    period: bool,
    /// Words of each count, if the counts of the event's group come with it.
    counts: Option<usize>,
    chain: bool,
    registers: usize,
}

/// The layouts of all events, by the ids in their samples.
#[derive(Clone, Debug)]
pub(crate) enum SampleLayouts {
    /// They are all alike.
    Alike(Option<SampleLayout>),
    /// By id, in ascending order.
    ById(Vec<(u64, Option<SampleLayout>)>),
}

impl SampleLayouts {
    pub(crate) fn new(opened: &Opened) -> Self {
        let mut layouts = opened
            .events
            .iter()
            .map(|event| SampleLayout::new(&event.setup));
        let first = layouts.next().flatten();
        if layouts.all(|layout| layout == first) {
            return Self::Alike(first);
        }
        let mut by_id = Vec::new();
        for event in &opened.events {
            let layout = SampleLayout::new(&event.setup);
            by_id.extend(event.ids.iter().map(|&(id, _)| (id, layout)));
        }
        by_id.sort_unstable_by_key(|&(id, _)| id);
        Self::ById(by_id)
    }

    /// The stack in a sample; see [`SampleLayout::stack`].
    pub(crate) fn stack(&self, sample: &[u8]) -> Option<StackFields> {
        let layout = match self {
            Self::Alike(layout) => *layout,
            Self::ById(by_id) => {
                let id = word(sample, ID)?;
                let found = by_id.binary_search_by_key(&id, |&(id, _)| id).ok()?;
                by_id.get(found)?.1
            }
        };
        layout?.stack(sample)
    }
}

/// Where the copy of the stack is in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StackFields {
    /// The process.
    pub(crate) pid: i32,
    /// Offset of the 64-bit size of the copy; its bytes follow.
    pub(crate) offset: usize,
    /// Bytes that the kernel made room for.
    pub(crate) size: usize,
    /// Bytes that it really copied.
    pub(crate) copied: usize,
    /// The stack pointer: where the copy begins in the process.
    pub(crate) start: u64,
}

impl StackFields {
    /// Whether the copy was filled: then there may be more of the stack.
    pub(crate) fn is_full(&self) -> bool {
        self.copied == self.size
    }
}

pub(crate) const RECORD_EXIT: u32 = 4;
pub(crate) const RECORD_FORK: u32 = 7;
pub(crate) const RECORD_SAMPLE: u32 = 9;

const ID: usize = 8;
const PID: usize = 24;
const TID: usize = 28;
const CPU: usize = 40;
const PERIOD: usize = 48;
const WORD: usize = 8;

/// Index of the stack pointer among the sampled registers.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: usize = 7;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: usize = 31;

impl SampleLayout {
    /// The layout of the samples of an event with stack dumps; `None` without.
    pub(crate) fn new(setup: &Setup) -> Option<Self> {
        // PERF_FORMAT_ID, and PERF_FORMAT_LOST where the kernel has it.
        let count = 2 + usize::from(setup.lost_counts);
        matches!(setup.stacks, Stacks::Dump(_)).then(|| Self {
            period: setup.says_period(),
            counts: setup.reads_group.then_some(count),
            chain: setup.has_chain(),
            registers: setup.user_registers().count_ones() as usize,
        })
    }

    /// The stack in a sample, or `None` if there is none (kernel threads, exiting processes) or
    /// the record is not what it should be.
    pub(crate) fn stack(&self, sample: &[u8]) -> Option<StackFields> {
        let mut offset = PERIOD + if self.period { WORD } else { 0 };
        if let Some(words) = self.counts {
            offset = behind_list(sample, offset, words)?;
        }
        if self.chain {
            offset = behind_list(sample, offset, 1)?;
        }
        if word(sample, offset)? == 0 {
            // No ABI: no registers, and no stack either.
            return None;
        }
        let registers = offset.checked_add(WORD)?;
        let start = word(sample, registers + STACK_POINTER * WORD)?;
        let offset = registers + self.registers * WORD;
        let size = usize::try_from(word(sample, offset)?).ok()?;
        if size == 0 {
            return None;
        }
        let after = size.checked_add(offset + WORD)?;
        let copied = usize::try_from(word(sample, after)?).ok()?.min(size);
        Some(StackFields {
            pid: pid(sample)?,
            offset,
            size,
            copied,
            start,
        })
    }
}

/// The type of a record (`enum perf_event_type`).
pub(crate) fn kind(record: &[u8]) -> Option<u32> {
    let bytes = record.get(..4)?.try_into().ok()?;
    Some(u32::from_ne_bytes(bytes))
}

/// A record of a thread that leaves its CPU or is back, as far as it matters at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SwitchFields {
    pub(crate) pid: i32,
    pub(crate) tid: i32,
    /// In nanoseconds.
    pub(crate) time: u64,
    pub(crate) cpu: u32,
    /// Whether it leaves its CPU.
    pub(crate) out: bool,
    /// Whether another thread had to have it: this one does not wait.
    pub(crate) preempted: bool,
}

/// The thread, of our own process, whose SWITCH records say that sampling is switched off and on.
/// There is no thread of this number but that of idle CPUs, of process 0.
pub(crate) const SAMPLING: i32 = 0;

// PERF_RECORD_SWITCH and its PERF_RECORD_MISC_SWITCH_OUT and _OUT_PREEMPT.
const RECORD_SWITCH: u32 = 14;
const SWITCH_OUT: u16 = 1 << 13;
const SWITCH_OUT_PREEMPT: u16 = 1 << 14;

/// The parts of a SWITCH record: header, pid, tid, time, cpu, id (`sample_id_all`).
pub(crate) fn switch(record: &[u8]) -> Option<SwitchFields> {
    if kind(record) != Some(RECORD_SWITCH) {
        return None;
    }
    let misc = u16::from_ne_bytes(record.get(4..6)?.try_into().ok()?);
    let (ids, cpu) = (word(record, 8)?, word(record, 24)?);
    Some(SwitchFields {
        pid: ids as u32 as i32,
        tid: (ids >> 32) as i32,
        time: word(record, 16)?,
        cpu: cpu as u32,
        out: misc & SWITCH_OUT != 0,
        preempted: misc & SWITCH_OUT_PREEMPT != 0,
    })
}

/// Appends the SWITCH record of a thread that leaves its CPU because it waits, or is back.
pub(crate) fn append_switch(out: &mut Vec<u8>, switch: &SwitchFields, id: u64) {
    const SIZE: u16 = 40;
    let misc = if switch.out { SWITCH_OUT } else { 0 };
    out.extend_from_slice(&RECORD_SWITCH.to_ne_bytes());
    out.extend_from_slice(&misc.to_ne_bytes());
    out.extend_from_slice(&SIZE.to_ne_bytes());
    out.extend_from_slice(&switch.pid.to_ne_bytes());
    out.extend_from_slice(&switch.tid.to_ne_bytes());
    for word in [switch.time, switch.cpu.into(), id] {
        out.extend_from_slice(&word.to_ne_bytes());
    }
}

/// The thread that an EXIT record says has ended: header, pid, parent, tid ...
pub(crate) fn ended_thread(record: &[u8]) -> Option<i32> {
    (kind(record) == Some(RECORD_EXIT)).then(|| number(record, 16))?
}

/// The thread that a FORK record says has made another: header, pid, parent, tid, parent's tid ...
pub(crate) fn maker(record: &[u8]) -> Option<i32> {
    (kind(record) == Some(RECORD_FORK)).then(|| number(record, 20))?
}

/// Where a list ends that begins with its length; each of its items has so many words.
fn behind_list(sample: &[u8], offset: usize, words: usize) -> Option<usize> {
    let items = usize::try_from(word(sample, offset)?).ok()?;
    let size = items.checked_mul(words)?.checked_mul(WORD)?;
    size.checked_add(offset + WORD)
}

fn pid(sample: &[u8]) -> Option<i32> {
    number(sample, PID)
}

/// The thread and the event of a sample.
pub(crate) fn thread_and_id(sample: &[u8]) -> Option<(i32, u64)> {
    Some((number(sample, TID)?, word(sample, ID)?))
}

/// The CPU that a sample was taken on.
pub(crate) fn cpu(sample: &[u8]) -> Option<u32> {
    word(sample, CPU).map(|cpu| cpu as u32)
}

/// What a sample that says so stands for.
pub(crate) fn period(sample: &[u8]) -> Option<u64> {
    word(sample, PERIOD)
}

fn number(bytes: &[u8], offset: usize) -> Option<i32> {
    let bytes = bytes.get(offset..offset + 4)?.try_into().ok()?;
    Some(i32::from_ne_bytes(bytes))
}

fn word(bytes: &[u8], offset: usize) -> Option<u64> {
    let bytes = bytes
        .get(offset..offset.checked_add(WORD)?)?
        .try_into()
        .ok()?;
    Some(u64::from_ne_bytes(bytes))
}

/// Gives a sample that says what it stands for another weight.
pub(crate) fn set_period(sample: &mut [u8], period: u64) {
    if let Some(field) = sample.get_mut(PERIOD..PERIOD + WORD) {
        field.copy_from_slice(&period.to_ne_bytes());
    }
}

/// Appends a sample to `out` with no more than `limit` bytes of its stack and without the room
/// that was made for more. What is appended is a sample again; one whose stack was not full
/// keeps a little unused room, so that this can still be told.
pub(crate) fn append_shortened(out: &mut Vec<u8>, sample: &[u8], stack: StackFields, limit: usize) {
    let kept = stack.copied.min(limit) & !(WORD - 1);
    // A stack that is cut here has no more to follow that could be trusted to be its own: say
    // that it was full, so that its end is called truncated.
    let full = stack.is_full() || kept < stack.copied & !(WORD - 1);
    let size = if full { kept } else { kept + WORD };
    let data = stack.offset + WORD;
    let (Some(front), Some(bytes)) = (sample.get(..stack.offset), sample.get(data..data + kept))
    else {
        return;
    };
    let start = out.len();
    out.extend_from_slice(front);
    out.extend_from_slice(&(size as u64).to_ne_bytes());
    out.extend_from_slice(bytes);
    if !full {
        out.extend_from_slice(&[0; WORD]);
    }
    if size > 0 {
        out.extend_from_slice(&(kept as u64).to_ne_bytes());
    }
    let behind = data + stack.size + WORD;
    out.extend_from_slice(sample.get(behind..).unwrap_or_default());
    let length = (out.len() - start) as u16;
    if let Some(field) = out.get_mut(start + 6..start + 8) {
        field.copy_from_slice(&length.to_ne_bytes());
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) const LAYOUT: SampleLayout = SampleLayout {
        period: true,
        counts: None,
        chain: true,
        registers: 20,
    };

    /// A sample with a kernel chain of `frames`, and a stack of `copied` bytes in `size`.
    pub(crate) fn sample(time: u64, frames: u64, size: usize, copied: usize) -> Vec<u8> {
        let mut bytes = vec![0; 8];
        bytes[0] = RECORD_SAMPLE as u8;
        let fixed = [1, 0x1000, 42 | 43 << 32, time, 3, 1];
        (fixed.iter()).for_each(|field: &u64| bytes.extend(field.to_ne_bytes()));
        bytes.extend(frames.to_ne_bytes());
        (0..frames).for_each(|frame| bytes.extend(frame.to_ne_bytes()));
        bytes.extend(2_u64.to_ne_bytes());
        (0..20).for_each(|register: u64| bytes.extend((0x7000 + register).to_ne_bytes()));
        bytes.extend((size as u64).to_ne_bytes());
        if size > 0 {
            bytes.extend((0..size).map(|byte| byte as u8));
            bytes.extend((copied as u64).to_ne_bytes());
        }
        let length = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&length.to_ne_bytes());
        bytes
    }

    fn check(size: usize, copied: usize, limit: usize, expected: Option<(usize, usize)>) {
        let sample = sample(5, 3, size, copied);
        let Some(stack) = LAYOUT.stack(&sample) else {
            assert_eq!(expected, None, "no stack");
            return;
        };
        assert_eq!(cpu(&sample), Some(3));
        assert_eq!((stack.pid, stack.start), (42, 0x7007));
        let mut out = vec![0xee; 3];
        append_shortened(&mut out, &sample, stack, limit);
        let shortened = &out[3..];
        let again = LAYOUT.stack(shortened);
        assert_eq!(again.map(|stack| (stack.size, stack.copied)), expected);
        let length = u16::from_ne_bytes([shortened[6], shortened[7]]);
        assert_eq!(usize::from(length), shortened.len());
        assert!(shortened.len() <= sample.len());
    }

    #[test]
    fn samples_keep_what_was_copied() {
        check(64, 64, 1000, Some((64, 64)));
        check(64, 24, 1000, Some((32, 24)));
        check(64, 56, 1000, Some((64, 56)));
        check(64, 0, 1000, Some((8, 0)));
        check(0, 0, 1000, None);
    }

    #[test]
    fn what_follows_the_stack_is_kept() {
        let mut sample = sample(5, 3, 64, 24);
        sample.extend(7_u64.to_ne_bytes());
        let stack = LAYOUT.stack(&sample).expect("a stack");
        let mut out = Vec::new();
        append_shortened(&mut out, &sample, stack, 1000);
        assert_eq!(LAYOUT.stack(&out).map(|stack| stack.size), Some(32));
        assert_eq!(out.len(), sample.len() - 32);
        assert_eq!(out.last_chunk(), Some(&7_u64.to_ne_bytes()));
    }

    #[test]
    fn switches_are_taken_apart() {
        let mut record = Vec::new();
        let expected = SwitchFields {
            pid: 7,
            tid: 8,
            time: 1000,
            cpu: 0,
            out: true,
            preempted: false,
        };
        append_switch(&mut record, &expected, 5);
        assert_eq!(switch(&record), Some(expected));
        assert_eq!(usize::from(record[6]), record.len());
        assert_eq!(switch(&record[..31]), None);
        record[5] = 0x40;
        let back = switch(&record).expect("a switch");
        assert!(!back.out && back.preempted);
        assert_eq!(ended_thread(&record), None);
        record[0] = 4;
        assert_eq!((switch(&record), ended_thread(&record)), (None, Some(1000)));
    }

    #[test]
    fn cut_stacks_look_full() {
        check(64, 64, 16, Some((16, 16)));
        check(64, 40, 17, Some((16, 16)));
        check(64, 64, 64, Some((64, 64)));
    }

    #[test]
    fn damaged_samples_have_no_stack() {
        let whole = sample(5, 3, 64, 40);
        for length in 0..whole.len() {
            assert_eq!(LAYOUT.stack(&whole[..length]), None, "{length}");
        }
        let mut huge = whole;
        huge[56..64].copy_from_slice(&u64::MAX.to_ne_bytes());
        assert_eq!(LAYOUT.stack(&huge), None);
    }

    #[test]
    fn counts_and_periods_are_stepped_over() {
        let whole = sample(5, 3, 64, 40);
        let expected = LAYOUT.stack(&whole);
        let mut without_period = whole.clone();
        without_period.drain(48..56);
        let layout = SampleLayout {
            period: false,
            ..LAYOUT
        };
        let found = layout.stack(&without_period);
        assert_eq!(
            found.map(|stack| stack.offset + 8),
            expected.map(|stack| stack.offset)
        );
        let mut with_counts = whole;
        let counts: Vec<u8> = [2_u64, 10, 1, 0, 20, 2, 0]
            .iter()
            .flat_map(|word| word.to_ne_bytes())
            .collect();
        with_counts.splice(56..56, counts);
        let layout = SampleLayout {
            counts: Some(3),
            ..LAYOUT
        };
        let found = layout.stack(&with_counts);
        assert_eq!(
            found.map(|stack| stack.offset - 56),
            expected.map(|stack| stack.offset)
        );
    }

    #[test]
    fn events_of_different_layouts_are_told_apart_by_id() {
        let sample = sample(5, 3, 64, 40);
        let layouts = SampleLayouts::ById(vec![(1, Some(LAYOUT)), (2, None)]);
        assert_eq!(layouts.stack(&sample), LAYOUT.stack(&sample));
        let mut other = sample;
        other[ID] = 2;
        assert_eq!(layouts.stack(&other), None);
        other[ID] = 3;
        assert_eq!(layouts.stack(&other), None);
    }
}
