//! Stack tails: read from the live target at once.

use std::collections::HashMap;
use std::ops::Range;

use prof_events::LiveMemory;
use prof_events::tracing::Errno;
use prof_model::Pid;
use prof_procfs::{Maps, Task};

use crate::queue::batch::TailInBatch;
use crate::queue::message::{StackCopy, StackTail};

/// Reads the tails of stacks that filled their dumps.
#[derive(Debug)]
pub(crate) struct TailReader {
    /// The most bytes that are read beyond a dump.
    limit: u64,
    /// Mappings that contain stacks, by process: only a hint, as the memory must match the dump.
    mappings: HashMap<Pid, Vec<Range<u64>>>,
    /// The tails read in this pass over the rings, by process.
    in_pass: Vec<(Pid, TailInBatch)>,
    /// Stacks, in this pass, of processes whose memory may not be read.
    refused: u32,
}

impl TailReader {
    /// The limit if stacks are to be whole: arrays of 1 MiB are common. The memory between the end
    /// of a thread's stack and that of the mapping is read as well, as the stack's end is unknown.
    pub(crate) const USUAL_LIMIT: u64 = (1 << 20) + (1 << 17);
    /// The limit if memory is limited. The session reads the rest of deeper stacks.
    pub(crate) const SMALL_LIMIT: u64 = 128 << 10;
    /// How many bytes of the dump are read again to detect changes: the unwinder compares them.
    pub(crate) const OVERLAP: u64 = prof_unwinder::OVERLAP as u64;
    /// The most tails of a pass to search for sharing.
    const SHARED: usize = 64;
    /// The most mappings to remember; then it starts over.
    const REMEMBERED: usize = 1024;

    /// A reader of at most this many bytes beyond a dump.
    pub(crate) fn new(limit: u64) -> Self {
        Self {
            limit,
            mappings: HashMap::new(),
            in_pass: Vec::new(),
            refused: 0,
        }
    }

    /// The most bytes that are read beyond a dump.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// Another pass over the rings begins.
    pub(crate) fn begin_pass(&mut self) {
        self.in_pass.clear();
        self.refused = 0;
    }

    /// Stacks of processes whose memory may not be read, in this pass.
    pub(crate) fn refused(&self) -> u32 {
        self.refused
    }

    /// The tail for this dump, if it was read in this pass for another sample of the thread: the
    /// live target has the same for both.
    pub(crate) fn read_in_pass(&self, stack: &StackCopy) -> Option<TailInBatch> {
        let start = overlap(stack)?;
        let covers = |(pid, TailInBatch { tail, .. }): &&(Pid, TailInBatch)| {
            let read = tail.start..tail.start + tail.length as u64;
            let is_of_it = tail.mapping.0 <= stack.start && stack.start < tail.mapping.1;
            *pid == stack.pid && is_of_it && read.contains(&start)
        };
        let (_, TailInBatch { tail, at }) = self.in_pass.iter().find(covers)?;
        let before = (start - tail.start) as usize;
        let rest = StackTail {
            start,
            length: tail.length - before,
            ..*tail
        };
        Some(TailInBatch {
            tail: rest,
            at: at + before,
        })
    }

    /// This tail was read for a thread of the process.
    pub(crate) fn share_in_pass(&mut self, pid: Pid, read: TailInBatch) {
        if self.in_pass.len() < Self::SHARED {
            self.in_pass.push((pid, read));
        }
    }

    /// Appends the tail for this dump to `out`.
    pub(crate) fn read(&mut self, stack: &StackCopy, out: &mut Vec<u8>) -> Option<StackTail> {
        let end = stack.start.checked_add(stack.length as u64)?;
        let memory = LiveMemory::of(stack.pid, stack.tid)?;
        let maps = || Task::of(stack.pid).maps().ok();
        let mapping = self.mapping(stack, memory, maps)?;
        let start = overlap(stack)?;
        let limit = mapping.end.min(end.saturating_add(self.limit));
        if limit <= end {
            return None;
        }
        let length = memory
            .append(start, (limit - start) as usize, out)
            .unwrap_or(0);
        (length > 0).then_some(StackTail {
            start,
            length,
            mapping: (mapping.start, mapping.end),
            is_prompt: false,
        })
    }

    /// The mapping of a stack, if known, or else from `maps`. That is read only of living
    /// processes: opening a file in /proc of a process that is being torn down may spin until that
    /// is done, and our priority may be higher than that of the thread that does it. While the
    /// memory can be read, the teardown has not begun: memory goes first.
    fn mapping(
        &mut self,
        stack: &StackCopy,
        memory: LiveMemory,
        maps: impl FnOnce() -> Option<Maps>,
    ) -> Option<Range<u64>> {
        let (pid, address) = (stack.pid, stack.start);
        let known = self.mappings.get(&pid);
        let hit = known.and_then(|known| known.iter().find(|range| range.contains(&address)));
        if let Some(range) = hit {
            return Some(range.clone());
        }
        if let Err(errno) = memory.read(address, &mut [0]) {
            self.refused += u32::from(errno == Errno::PERM);
            return None;
        }
        let maps = maps()?;
        let range = maps.find(address)?.addresses;
        if self.mappings.values().map(Vec::len).sum::<usize>() >= Self::REMEMBERED {
            self.mappings.clear();
        }
        self.mappings.entry(pid).or_default().push(range.clone());
        Some(range)
    }
}

/// The address from which a stack is read: the end of its dump again, and the rest.
fn overlap(stack: &StackCopy) -> Option<u64> {
    let end = stack.start.checked_add(stack.length as u64)?;
    Some(end.saturating_sub(TailReader::OVERLAP).max(stack.start))
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use prof_events::{HeldCommand, Program, Signals, wait_readable};

    use super::*;

    #[test]
    fn our_own_stack_is_read_on() {
        let here = [0x5a_u8; 4096];
        let start = here.as_ptr() as u64;
        let part = StackCopy {
            pid: std::process::id() as Pid,
            tid: std::process::id() as Pid,
            start,
            length: 1024,
        };
        let mut out = vec![1, 2, 3];
        let tail = TailReader::new(TailReader::USUAL_LIMIT)
            .read(&part, &mut out)
            .expect("more");
        assert_eq!(tail.start, start + 512);
        assert_eq!(out.len(), 3 + tail.length);
        assert_eq!(out[3..3 + 2048], here[512..2560]);
        assert!(tail.mapping.0 <= start && tail.mapping.1 > start + 4096);
        let little = TailReader::new(100).read(&part, &mut out).expect("some");
        assert_eq!(little.length, TailReader::OVERLAP as usize + 100);
    }

    #[test]
    fn a_stack_is_read_once_in_a_pass() {
        let here = [0x5a_u8; 4096];
        let part = StackCopy {
            pid: std::process::id() as Pid,
            tid: std::process::id() as Pid,
            length: 1024,
            start: here.as_ptr() as u64,
        };
        let mut tail_reader = TailReader::new(TailReader::USUAL_LIMIT);
        let mut out = vec![1, 2, 3];
        let tail = tail_reader.read(&part, &mut out).expect("more");
        tail_reader.share_in_pass(part.pid, TailInBatch { tail, at: 3 });
        let check = |start, pid, expected: Option<u64>| {
            let other = StackCopy {
                pid: part.pid + pid,
                start: part.start.wrapping_add_signed(start),
                ..part
            };
            let found = tail_reader.read_in_pass(&other);
            let length = |skipped| tail.length - skipped as usize;
            let placed = |it: TailInBatch| (it.tail.start, it.tail.length, it.at);
            let expected = expected.map(|it| (tail.start + it, length(it), 3 + it as usize));
            assert_eq!(found.map(placed), expected, "{start}");
        };
        check(0, 0, Some(0));
        check(64, 0, Some(64));
        check(-8, 0, None);
        check(0, 1, None);
        check(tail.mapping.1 as i64 - part.start as i64, 0, None);
        tail_reader.begin_pass();
        assert_eq!(tail_reader.read_in_pass(&part), None);
    }

    #[test]
    fn proc_is_read_for_running_threads_only() {
        let signals = Signals::block().expect("a signalfd");
        let command = HeldCommand::fork(&Program::new(["sleep", "1000"]), &signals);
        let mut command = command.and_then(HeldCommand::release).expect("sleep");
        let pid = command.pid();
        let maps = Task::of(pid).maps().expect("maps");
        let address = maps.named("[stack]").map(|entry| entry.addresses.start);
        let stack = StackCopy {
            pid,
            tid: pid,
            length: 8,
            start: address.expect("a stack"),
        };
        let reads = |tail_reader: &mut TailReader| {
            let mut reads = false;
            let memory = LiveMemory::of(pid, pid).expect("a pid");
            tail_reader.mapping(&stack, memory, || {
                reads = true;
                None
            });
            reads
        };
        assert!(reads(&mut TailReader::new(TailReader::USUAL_LIMIT)));
        command.signal(9);
        wait_readable(&[command.as_fd()], None).expect("the end");
        assert!(
            !reads(&mut TailReader::new(TailReader::USUAL_LIMIT)),
            "nobody has waited for it yet"
        );
        command.wait().expect("the status");
        assert!(!reads(&mut TailReader::new(TailReader::USUAL_LIMIT)));
    }
}
