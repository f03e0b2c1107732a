//! One sample's user stack, unwound.

use std::ops::Range;

use prof_events::LiveMemory;
use prof_model::{AbsoluteAddress, Modules, Process, Processes, StackEnd, UserRegisters};
use prof_perfdata::{Sample, StackNote, context};
use prof_unwinder::{Memory, StackDump, Target, Unwinder};

use crate::deep::{Beyond, DeepStacks};
use crate::earlier::{EarlierStack, EarlierStacks};
use crate::files::LiveFiles;

/// Unwinds samples into call chains.
pub(crate) struct ChainMaker {
    unwinder: Unwinder,
    earlier: EarlierStacks,
    /// What the kernel found of the user's stack by itself.
    found: Vec<u64>,
    /// For samples of processes that nothing is known of.
    unknown: Process,
}

impl ChainMaker {
    pub(crate) fn new() -> Self {
        Self {
            unwinder: Unwinder::new(LiveFiles),
            earlier: EarlierStacks::default(),
            found: Vec::new(),
            unknown: Process::default(),
        }
    }

    /// Replaces `chain` by that of the sample: the kernel's part as it came, then the user's,
    /// unwound. Says how the latter ended.
    pub(crate) fn chain(
        &mut self,
        sample: &Sample<'_>,
        beyond: Option<(Beyond, &[u8])>,
        processes: &Processes,
        modules: &Modules,
        chain: &mut Vec<u64>,
    ) -> StackNote {
        let mut entries = sample.callchain;
        chain.clear();
        chain.extend(entries.by_ref().take_while(|&entry| entry != context::USER));
        self.found.clear();
        self.found.extend(entries);
        let saved = sample.user_registers();
        let at_sample = sample.interrupt_registers();
        let in_kernel = sample.mode.is_kernel();
        let entry = self
            .unwinder
            .entry(saved.as_ref(), at_sample.as_ref(), in_kernel);
        let Some(registers) = entry.registers(saved) else {
            return StackNote::new(StackEnd::NoUserState);
        };
        let process = processes.get(sample.pid).unwrap_or(&self.unknown);
        if in_kernel && !is_mapped(process, &registers) {
            // The kernel is putting a new program in place of the old one, whose registers these
            // still are.
            return StackNote::new(StackEnd::NoUserState);
        }
        let kernel_frames = chain.iter().filter(|&&entry| entry < context::MAX).count();
        chain.push(context::USER);
        let (bytes, full) = match &sample.user_stack {
            Some(stack) => (stack.bytes, stack.is_full()),
            None => (&[][..], false),
        };
        let stack = StackDump {
            start: saved
                .and_then(|saved| saved.get(STACK_POINTER))
                .unwrap_or(0),
            bytes,
            full,
        };
        let target = Target {
            pid: sample.pid,
            process,
            modules,
        };
        let mut memory = Captured {
            live: LiveMemory::of(sample.pid),
            beyond,
            earlier: self.earlier.of(sample.tid),
            found: &self.found,
            recalled: false,
        };
        let unwound = self
            .unwinder
            .unwind(&target, &registers, &stack, &mut memory, chain);
        if let (Some(beyond), false) = (beyond, memory.recalled)
            && unwound.end.is_whole()
            && unwound.read_back > 0
        {
            let (start, copy) = (stack.start, stack.bytes);
            self.earlier.remember(sample.tid, start, copy, beyond);
        }
        let mut end = entry.end(unwound.end, kernel_frames);
        if end == StackEnd::NoUserState && !in_kernel {
            // It did run there, so there was a program: we know nothing of its mappings.
            chain.push(sample.ip);
            end = StackEnd::NotCode;
        }
        StackNote {
            end,
            read_back: unwound.read_back,
            elided: unwound.elided,
            elided_at: unwound.elided_at,
        }
    }
}

fn is_mapped(process: &Process, registers: &UserRegisters) -> bool {
    let ip = registers.get(INSTRUCTION_POINTER).map(AbsoluteAddress);
    ip.is_some_and(|ip| process.space().find(ip).is_some())
}

// Numbers of registers, as the kernel counts them.
#[cfg(target_arch = "x86_64")]
const STACK_POINTER: u32 = 7;
#[cfg(target_arch = "x86_64")]
const INSTRUCTION_POINTER: u32 = 8;
#[cfg(target_arch = "aarch64")]
const STACK_POINTER: u32 = 31;
#[cfg(target_arch = "aarch64")]
const INSTRUCTION_POINTER: u32 = 32;

/// The target's memory: what the reader thread read right after the sample, where it did; the
/// live target's elsewhere.
struct Captured<'a> {
    live: Option<LiveMemory>,
    beyond: Option<(Beyond, &'a [u8])>,
    earlier: Option<&'a EarlierStack>,
    found: &'a [u64],
    /// Whether what was there earlier has been asked for.
    recalled: bool,
}

impl Memory for Captured<'_> {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        if let Some((beyond, bytes)) = self.beyond
            && let Some(offset) = address.checked_sub(beyond.start)
            && let Some(bytes) = usize::try_from(offset).ok().and_then(|at| bytes.get(at..))
        {
            let length = bytes.len().min(buffer.len());
            // With little more than bytes to compare, what follows must come from the target.
            if length == buffer.len() || length > DeepStacks::SEAM as usize {
                buffer[..length].copy_from_slice(&bytes[..length]);
                return length;
            }
        }
        self.live
            .and_then(|live| live.read(address, buffer).ok())
            .unwrap_or(0)
    }

    fn read_earlier(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.recalled = true;
        self.earlier
            .map_or(0, |earlier| earlier.read(address, buffer))
    }

    fn kernel_found(&self, index: usize) -> Option<u64> {
        self.found.get(index).copied()
    }

    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        let (beyond, _) = self.beyond?;
        let range = beyond.mapping.0..beyond.mapping.1;
        range.contains(&address).then_some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_with_the_sample_goes_first() {
        let beyond = Beyond {
            start: 0x1000,
            length: 8,
            mapping: (0x800, 0x2000),
        };
        let mut memory = Captured {
            live: None,
            beyond: Some((beyond, &[1, 2, 3, 4, 5, 6, 7, 8])),
            earlier: None,
            found: &[],
            recalled: false,
        };
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
}
