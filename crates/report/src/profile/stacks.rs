//! Stacks as a prefix tree.

use rustc_hash::FxHashMap;

use super::frames::FrameId;

/// A stack's number in [`Stacks`]; greater than that of the stack it extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(u32);

impl StackId {
    /// The position in the table, from zero without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Each distinct stack once, as its callers (another stack) and its innermost frame.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    stacks: Vec<(Option<StackId>, FrameId)>,
    ids: FxHashMap<(Option<StackId>, FrameId), StackId>,
}

impl Stacks {
    /// The id of the stack in which `prefix` called `frame`; without a prefix, the stack that has
    /// only this one frame.
    pub fn intern(&mut self, prefix: Option<StackId>, frame: FrameId) -> StackId {
        let stacks = &mut self.stacks;
        *self.ids.entry((prefix, frame)).or_insert_with(|| {
            stacks.push((prefix, frame));
            StackId(stacks.len() as u32 - 1)
        })
    }

    /// The callers: the stack without its innermost frame.
    pub fn prefix(&self, id: StackId) -> Option<StackId> {
        self.stacks[id.index()].0
    }

    /// The innermost frame.
    pub fn frame(&self, id: StackId) -> FrameId {
        self.stacks[id.index()].1
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = FrameId> {
        std::iter::successors(Some(id), |&id| self.prefix(id)).map(|id| self.frame(id))
    }

    /// All stacks, each after the one that it extends.
    pub fn iter(&self) -> impl Iterator<Item = StackId> + use<> {
        (0..self.stacks.len() as u32).map(StackId)
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.stacks.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.stacks.is_empty()
    }
}
