//! The chain of frame pointers of a stopped thread, as in the kernel's samples.
//!
//! It leads on where tables do not, also from one stack to another, as in Go. The other stack is
//! not in the dump, and changes as soon as the thread resumes.

use prof_events::LiveMemory;
use prof_model::{RegisterAbi, UserRegisters};
use prof_perfdata::context;

/// Walks frame pointers.
#[derive(Debug, Default)]
pub(super) struct FramePointers {
    chain: Vec<u64>,
    /// Memory beyond the dump, from `block_start` on.
    block: Vec<u8>,
    block_start: u64,
}

impl FramePointers {
    /// The most frames that fit in a record beside the largest dump.
    const MOST: usize = 400;
    /// The bytes to read at a time beyond the dump, and how often.
    const BLOCK: usize = 8192;
    const MOST_BLOCKS: usize = 16;

    /// The chain that was followed last, innermost first, after its marker.
    pub(super) fn chain(&self) -> &[u64] {
        &self.chain
    }

    /// Follows the chain of a stopped thread.
    pub(super) fn follow(
        &mut self,
        ip: u64,
        registers: Option<&UserRegisters>,
        copy: (u64, &[u8]),
        memory: LiveMemory,
    ) {
        self.chain.clear();
        self.chain.extend([context::USER, ip]);
        self.block.clear();
        let mut blocks = 0;
        // The frames of 32-bit code have words of 4 bytes.
        let registers = registers.filter(|registers| registers.abi() == RegisterAbi::Bits64);
        let mut frame = registers.and_then(UserRegisters::frame_pointer);
        while let Some(at) = frame
            && at != 0
            && self.chain.len() <= Self::MOST
        {
            let known = pair(copy, at).or_else(|| pair((self.block_start, &self.block), at));
            let read = known.or_else(|| {
                blocks += 1;
                (blocks <= Self::MOST_BLOCKS).then(|| self.read(at, memory))?
            });
            let Some((next, caller)) = read.filter(|&(_, caller)| caller != 0) else {
                break;
            };
            self.chain.push(caller);
            frame = Some(next);
        }
    }

    fn read(&mut self, at: u64, memory: LiveMemory) -> Option<(u64, u64)> {
        self.block.clear();
        memory.append(at, Self::BLOCK, &mut self.block).ok()?;
        self.block_start = at;
        pair((at, &self.block), at)
    }
}

/// The caller's frame and the return address, which lie one after the other.
fn pair((start, bytes): (u64, &[u8]), at: u64) -> Option<(u64, u64)> {
    let offset = usize::try_from(at.checked_sub(start)?).ok()?;
    let (pair, _) = bytes
        .get(offset..)?
        .as_chunks::<8>()
        .0
        .split_first_chunk()?;
    let [next, caller] = pair.map(u64::from_ne_bytes);
    Some((next, caller))
}

#[cfg(test)]
mod tests {
    use prof_model::Pid;

    use prof_model::perf_registers::x86_64;

    use super::*;

    fn of_frame(frames: &mut FramePointers, frame: u64, copy: (u64, &[u8])) -> Vec<u64> {
        let own = std::process::id() as Pid;
        let registers = UserRegisters::new(RegisterAbi::Bits64, 1 << x86_64::BP, [frame]);
        let memory = LiveMemory::of(own, own).expect("a pid");
        frames.follow(7, registers.as_ref(), copy, memory);
        frames.chain().to_vec()
    }

    #[test]
    fn chains_continue_in_other_stacks_and_end() {
        // Two frames of a dump, of which the second leads outside of it.
        let end = [0_u64, 0];
        let other = [end.as_ptr() as u64, 30];
        let words = [0_u64, 0x1018, 10, other.as_ptr() as u64, 20];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let mut frames = FramePointers::default();
        let copy = (0x1000, bytes.as_slice());
        let of = |frames: &mut FramePointers, frame| of_frame(frames, frame, copy);
        let user = context::USER;
        assert_eq!(of(&mut frames, 0x1008), [user, 7, 10, 20, 30]);
        assert_eq!(of(&mut frames, 0x1018), [user, 7, 20, 30]);
        for nowhere in [0, 1, 0x1020, u64::MAX] {
            assert_eq!(of(&mut frames, nowhere), [user, 7], "{nowhere:#x}");
        }
        let mut around = [0, 5];
        around[0] = around.as_ptr() as u64;
        assert_eq!(of(&mut frames, around[0]).len(), 1 + FramePointers::MOST);
    }
}
