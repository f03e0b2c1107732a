//! Frames: where code ran, without names.

use prof_model::{FileOffset, ModuleId, Pid, StackEnd};

use super::named::NamedId;
use crate::numbers::Numbers;

/// A physical frame, or a mark that frames are missing.
///
/// Addresses are lookup addresses: inside the instruction that ran or called (see
/// [`prof_model::FrameAddress::lookup`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Frame {
    /// Code of a mapped file.
    Module {
        /// The file.
        module: ModuleId,
        /// The offset in the file.
        offset: FileOffset,
    },
    /// Kernel code, at an absolute address.
    Kernel(u64),
    /// Code made at run time, in memory without a file.
    Jit {
        /// The process.
        pid: Pid,
        /// The absolute address in it.
        address: u64,
    },
    /// User code at an address where nothing was known to be mapped.
    Unknown(u64),
    /// A frame that came with its names.
    Named(NamedId),
    /// Stands outside of the outermost known frame where a stack is not whole, with the reason.
    Cut(StackEnd),
    /// Stands where this many frames were left out of the middle of a stack.
    LeftOut(u32),
    /// The root of all frames of time on a CPU, in a view of both.
    OnCpu,
    /// The root of all frames of waiting time, in a view of both.
    OffCpu,
}

/// A frame's number in [`Frames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FrameId(u32);

impl FrameId {
    /// The position in the table, from zero without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Each distinct frame once.
#[derive(Clone, Debug, Default)]
pub struct Frames {
    frames: Vec<Frame>,
    numbers: Numbers,
}

impl Frames {
    /// The id of `frame`, which is added if it is new.
    pub fn intern(&mut self, frame: Frame) -> FrameId {
        let frames = &mut self.frames;
        let number = self
            .numbers
            .intern(&frame, |number| frames[number as usize]);
        if number as usize == frames.len() {
            frames.push(frame);
        }
        FrameId(number)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// All frames with their ids, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (FrameId, Frame)> {
        let numbers = 0_u32..;
        let ids = numbers.map(FrameId);
        ids.zip(self.frames.iter().copied())
    }
}

impl std::ops::Index<FrameId> for Frames {
    type Output = Frame;

    fn index(&self, id: FrameId) -> &Frame {
        &self.frames[id.index()]
    }
}
