//! The target's memory at the time when a sample is unwound.

use std::hash::{DefaultHasher, Hasher};
use std::ops::Range;

use prof_events::LiveMemory;
use prof_events::tracing::Errno;
use prof_model::{MissingMemory, Pid, Tid};
use prof_unwinder::{FrameWords, JitCode, Memory};

use crate::live::stack_tail::TailReader;
use crate::session::unwind::jit_runtimes::JitRuntime;
use crate::session::unwind::stack_snapshot::{SampledStack, StackSnapshot};
use crate::session::unwind::tail_change::Departure;

/// The target's memory: the part that a watcher or the reader read after the sample, otherwise that
/// of the live target.
pub(crate) struct SampleMemory<'a> {
    live: Option<LiveMemory>,
    now: SampledStack<'a>,
    earlier: Option<&'a StackSnapshot>,
    kernel_callchain: &'a [u64],
    recalled: bool,
    left_dump: Option<DefaultHasher>,
    left_large_frame: bool,
    runtime: Option<JitRuntime<'a>>,
    missing: MissingMemory,
}

impl<'a> SampleMemory<'a> {
    /// Of a thread, by its process and its own id. `kernel_callchain`: the kernel's own chain of
    /// the stack.
    pub(crate) fn new(
        (pid, tid): (Pid, Tid),
        now: SampledStack<'a>,
        earlier: Option<&'a StackSnapshot>,
        kernel_callchain: &'a [u64],
    ) -> Self {
        Self {
            live: LiveMemory::of(pid, tid),
            now,
            earlier,
            kernel_callchain,
            recalled: false,
            left_dump: None,
            left_large_frame: false,
            runtime: None,
            missing: MissingMemory::NONE,
        }
    }

    /// Adds the runtime that compiles code in the process, if it has one.
    pub(crate) fn with_runtime(self, runtime: Option<JitRuntime<'a>>) -> Self {
        Self { runtime, ..self }
    }

    /// Whether the stack of an earlier sample was used.
    pub(crate) fn has_recalled(&self) -> bool {
        self.recalled
    }

    /// What could not be read.
    pub(crate) fn missing(&self) -> MissingMemory {
        self.missing
    }

    /// How the walk left the dump.
    pub(crate) fn departure(&self) -> Departure {
        match &self.left_dump {
            Some(place) => Departure::Elsewhere(place.finish()),
            None if self.left_large_frame => Departure::LargeFrame,
            None => Departure::Joined,
        }
    }
}

impl Memory for SampleMemory<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.missing.needs(address, self.now.start);
        if let Some((tail, bytes)) = self.now.tail
            && let Some(offset) = address.checked_sub(tail.start)
            && let Some(bytes) = usize::try_from(offset).ok().and_then(|at| bytes.get(at..))
        {
            let length = bytes.len().min(buffer.len());
            // With few bytes to compare, the rest must come from the target.
            if length == buffer.len() || length > TailReader::OVERLAP as usize {
                buffer[..length].copy_from_slice(&bytes[..length]);
                return length;
            }
        }
        let read = (self.live).map_or(Ok(0), |live| live.read(address, buffer));
        self.missing.is_denied |= read == Err(Errno::PERM);
        self.missing.has_ended |= read == Err(Errno::SRCH);
        read.unwrap_or(0)
    }

    fn is_of_one_moment(&self, range: Range<u64>) -> bool {
        self.now.tail.is_some_and(|(tail, bytes)| {
            // From there on, the rest comes from the target.
            let end = tail.start + (bytes.len() as u64).saturating_sub(TailReader::OVERLAP);
            tail.start <= range.start && range.start < range.end && range.end <= end
        })
    }

    fn read_lasting(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.live
            .and_then(|live| live.read(address, buffer).ok())
            .unwrap_or(0)
    }

    fn read_snapshot(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.recalled = true;
        self.earlier
            .map_or(0, |earlier| earlier.read(address, buffer))
    }

    fn kernel_callchain(&self, index: usize) -> Option<u64> {
        self.kernel_callchain.get(index).copied()
    }

    fn jit_code(&mut self, address: u64) -> Option<JitCode> {
        self.runtime.as_mut()?.code_at(address)
    }

    fn bytecodes(&mut self, method: u64) -> Option<Range<u64>> {
        self.runtime.as_mut()?.bytecodes(method)
    }

    fn interpreted_method(&mut self, method: u64) -> Option<u64> {
        self.runtime.as_mut()?.interpreted_method(method)
    }

    fn has_functions(&self) -> bool {
        (self.runtime.as_ref()).is_some_and(JitRuntime::has_functions)
    }

    fn is_builtin(&self, address: u64) -> bool {
        (self.runtime.as_ref()).is_some_and(|it| it.is_builtin(address))
    }

    fn function(&mut self, address: u64, in_file: bool, words: Option<&FrameWords>) -> Option<u64> {
        self.runtime.as_mut()?.function(address, in_file, words)
    }

    fn leave_dump(&mut self, overlap: &[u8]) {
        let hasher = self.left_dump.get_or_insert_default();
        hasher.write(overlap);
    }

    fn leave_large_frame(&mut self) {
        self.left_large_frame = true;
    }

    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        let (tail, _) = self.now.tail?;
        let range = tail.mapping.0..tail.mapping.1;
        range.contains(&address).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::message::StackTail;

    #[test]
    fn tails_read_with_the_sample_go_first() {
        let tail = StackTail {
            start: 0x1000,
            length: 8,
            mapping: (0x800, 0x2000),
            is_prompt: false,
        };
        let now = SampledStack {
            start: 0x1000,
            dump: &[],
            tail: Some((tail, &[1, 2, 3, 4, 5, 6, 7, 8])),
        };
        let mut memory = SampleMemory::new((0, 0), now, None, &[]);
        let mut buffer = [0; 4];
        let mut read = |address| (memory.read(address, &mut buffer), buffer[0]);
        assert_eq!(read(0x1000), (4, 1));
        assert_eq!(read(0x1004), (4, 5));
        assert_eq!(read(0x1006).0, 0, "there is no live target");
        assert_eq!(read(0x0fff).0, 0);
        assert_eq!(read(0x1009).0, 0);
        assert_eq!(memory.mapping(0x1fff), Some(0x800..0x2000));
        assert_eq!(memory.mapping(0x2000), None);
    }

    #[test]
    fn why_memory_is_missing_is_known() {
        let now = SampledStack {
            start: 0x10_0000,
            dump: &[],
            tail: None,
        };
        let check = |pid, address, is_far, has_ended| {
            let mut memory = SampleMemory::new((pid, pid), now, None, &[]);
            assert_eq!(memory.missing(), MissingMemory::NONE);
            assert_eq!(memory.read(address, &mut [0; 8]), 0);
            let expected = MissingMemory {
                is_far,
                is_denied: false,
                has_ended,
            };
            assert_eq!(memory.missing(), expected, "{pid} {address:#x}");
        };
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let (ended, ours) = (ended.id() as Pid, std::process::id() as Pid);
        check(ended, 0x10_0008, false, true);
        check(ended, 0x10_fff7, false, true);
        check(ended, 0x10_fff8, true, true);
        // Another stack.
        check(ended, 0xf_0000, true, true);
        // Nothing is mapped there.
        check(ours, 0x10_0008, false, false);
    }
}
