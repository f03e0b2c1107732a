//! Stacks as a prefix tree.

use std::num::NonZeroU32;

use rustc_hash::FxHashMap;

use super::frames::FrameId;

/// A stack's number in [`Stacks`]; greater than that of the stack it extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// That of the stack at this position.
    fn new(position: usize) -> Self {
        Self(NonZeroU32::MIN.saturating_add(position as u32))
    }

    /// The position in the table, from zero without gaps.
    pub fn index(self) -> usize {
        self.0.get() as usize - 1
    }
}

/// Each distinct stack once, as its callers (another stack) and its innermost frame.
#[derive(Clone, Debug, Default)]
pub struct Stacks {
    stacks: Vec<(Option<StackId>, FrameId)>,
    ids: FxHashMap<(Option<StackId>, FrameId), StackId>,
    /// By stack: the one of those extending it that was asked for last. Most are only extended by
    /// one, and this is found in less memory than `ids` takes.
    last_extended: Vec<Option<StackId>>,
}

impl Stacks {
    /// The id of the stack in which `prefix` called `frame`; without a prefix, the stack that has
    /// only this one frame.
    pub fn intern(&mut self, prefix: Option<StackId>, frame: FrameId) -> StackId {
        let last = prefix.and_then(|prefix| self.last_extended[prefix.index()]);
        if let Some(last) = last.filter(|&last| self.frame(last) == frame) {
            return last;
        }
        let next = StackId::new(self.stacks.len());
        let id = *self.ids.entry((prefix, frame)).or_insert(next);
        if id == next {
            self.stacks.push((prefix, frame));
            self.last_extended.push(None);
        }
        if let Some(prefix) = prefix {
            self.last_extended[prefix.index()] = Some(id);
        }
        id
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
        (0..self.stacks.len()).map(StackId::new)
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
