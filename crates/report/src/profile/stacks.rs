//! Stacks as a prefix tree.

use std::num::NonZeroU32;

use super::frames::FrameId;
use crate::numbers::Numbers;

/// A stack's number in [`Stacks`]; greater than that of the stack it extends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StackId(NonZeroU32);

impl StackId {
    /// The id of the stack at this position.
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
    stacks: Vec<Stack>,
    numbers: Numbers,
}

#[derive(Clone, Copy, Debug)]
struct Stack {
    prefix: Option<StackId>,
    frame: FrameId,
    /// The last used one of the stacks that extend it, and its frame. Most are extended by only
    /// one, which is found without another memory access.
    last_extended: Option<(StackId, FrameId)>,
}

impl Stacks {
    /// The id of the stack in which `prefix` called `frame`; without a prefix, the stack that has
    /// only this one frame.
    pub fn intern(&mut self, prefix: Option<StackId>, frame: FrameId) -> StackId {
        let last = prefix.and_then(|prefix| self.stacks[prefix.index()].last_extended);
        if let Some((last, _)) = last.filter(|&(_, last)| last == frame) {
            return last;
        }
        let stacks = &self.stacks;
        let number = self.numbers.intern(&(prefix, frame), |number| {
            let stack = &stacks[number as usize];
            (stack.prefix, stack.frame)
        });
        let id = StackId::new(number as usize);
        if id.index() == self.stacks.len() {
            self.stacks.push(Stack {
                prefix,
                frame,
                last_extended: None,
            });
        }
        if let Some(prefix) = prefix {
            self.stacks[prefix.index()].last_extended = Some((id, frame));
        }
        id
    }

    /// The callers: the stack without its innermost frame.
    pub fn prefix(&self, id: StackId) -> Option<StackId> {
        self.stacks[id.index()].prefix
    }

    /// The innermost frame.
    pub fn frame(&self, id: StackId) -> FrameId {
        self.stacks[id.index()].frame
    }

    /// The frames of a stack, innermost first.
    pub fn frames(&self, id: StackId) -> impl Iterator<Item = FrameId> {
        std::iter::successors(Some(id), |&id| self.prefix(id)).map(|id| self.frame(id))
    }

    /// All stacks, each after the one that it extends.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = StackId> + use<> {
        (0..self.stacks.len()).map(StackId::new)
    }

    /// All stacks, each right before those that extend it, directly or not, and how many these are.
    pub(crate) fn nested(&self) -> Vec<(StackId, usize)> {
        let mut extending = vec![0_u32; self.stacks.len()];
        for id in self.iter().rev() {
            if let Some(prefix) = self.prefix(id) {
                extending[prefix.index()] += extending[id.index()] + 1;
            }
        }
        let mut nested = vec![(StackId::new(0), 0); self.stacks.len()];
        // The next position for stacks that extend each of them; at the end, for those that extend
        // none.
        let mut next: Vec<u32> = vec![0; self.stacks.len() + 1];
        for id in self.iter() {
            let of = self.prefix(id).map_or(self.stacks.len(), StackId::index);
            let place = next[of];
            let count = extending[id.index()];
            next[of] += count + 1;
            next[id.index()] = place + 1;
            nested[place as usize] = (id, count as usize);
        }
        nested
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, Frames};

    #[test]
    fn nested_stacks_follow_their_prefixes() {
        let mut frames = Frames::default();
        let [a, b, c] = [1, 2, 3].map(|address| frames.intern(Frame::Kernel(address)));
        let mut stacks = Stacks::default();
        assert_eq!(stacks.nested(), []);
        let main = stacks.intern(None, a);
        let other = stacks.intern(None, b);
        let left = stacks.intern(Some(main), b);
        let deep = stacks.intern(Some(other), c);
        let right = stacks.intern(Some(main), c);
        let leaf = stacks.intern(Some(left), c);
        assert_eq!(
            stacks.nested(),
            [
                (main, 3),
                (left, 1),
                (leaf, 0),
                (right, 0),
                (other, 1),
                (deep, 0)
            ]
        );
    }
}
