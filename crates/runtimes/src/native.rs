//! A thread when it was sampled, and its native stack.

use std::ops::Range;

/// A thread of a process that runs an interpreter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterpreterThread {
    /// The kernel's thread id in the PID namespace of the thread: what `gettid` tells itself.
    pub tid: u64,
    /// Whether it is the process's main thread.
    pub is_main: bool,
}

/// The dump of a native stack.
#[derive(Clone, Copy, Debug)]
pub struct NativeStack<'a> {
    /// The stack pointer: the address of the first byte.
    pub start: u64,
    /// The innermost part.
    pub bytes: &'a [u8],
    /// Whether that is the whole stack.
    pub is_whole: bool,
    /// The thread's registers.
    pub registers: &'a [u64],
    /// The instruction pointer among them.
    pub instruction_pointer: Option<u64>,
}

impl<'a> NativeStack<'a> {
    /// Words of the innermost frames.
    const INNERMOST: usize = 128;

    /// Its words.
    fn words(&self) -> impl Iterator<Item = u64> + use<'a> {
        let (words, _) = self.bytes.as_chunks::<8>();
        words.iter().map(|&word| u64::from_le_bytes(word))
    }

    /// The address of the innermost word that is `wanted`; the end if there is none.
    pub(crate) fn first(&self, wanted: impl Fn(u64) -> bool) -> u64 {
        let mut words = (self.start..).step_by(8).zip(self.words());
        let first = words.find(|&(_, word)| wanted(word));
        first.map_or(
            self.start.saturating_add(self.bytes.len() as u64),
            |(at, _)| at,
        )
    }

    /// Whether a register or a word of the innermost frames is this pointer.
    pub(crate) fn points_to(&self, pointer: u64) -> bool {
        self.registers.contains(&pointer)
            || self.words().take(Self::INNERMOST).any(|it| it == pointer)
    }

    /// A register that points into this range.
    pub(crate) fn register_in(&self, range: &Range<u64>) -> Option<u64> {
        (self.registers.iter().copied()).find(|it| range.contains(it))
    }

    /// Whether a register, or a word up to the address `end`, points into this range, or behind it:
    /// so it may be if the stack is not known up to there.
    pub(crate) fn may_point_into(&self, range: &Range<u64>, end: u64) -> bool {
        let is_in = |value: u64| (range.start..=range.end).contains(&value);
        let length = end.saturating_sub(self.start);
        let is_known = self.is_whole || length < self.bytes.len() as u64;
        !is_known
            || self.registers.iter().any(|&value| is_in(value))
            || self.words().take(length as usize / 8).any(is_in)
    }

    /// For each of these pointers, innermost first, the address of a word equal to it: the first
    /// one above the word for the previous pointer. A register counts as the innermost word.
    pub(crate) fn find(&self, pointers: impl Iterator<Item = u64>) -> Option<Vec<u64>> {
        let end = self.start.checked_add(self.bytes.len() as u64)?;
        let mut words = (self.start..).step_by(8).zip(self.words());
        let mut places = Vec::new();
        let mut beyond = end..;
        for (number, pointer) in pointers.enumerate() {
            let place = match words.find(|&(_, word)| word == pointer) {
                Some((at, _)) => at,
                None if number == 0 && self.registers.contains(&pointer) => {
                    words = (self.start..).step_by(8).zip(self.words());
                    self.start
                }
                // It is beyond the dump, like all after it.
                None if number > 0 && !self.is_whole => beyond.next()?,
                None => return None,
            };
            places.push(place);
        }
        Some(places)
    }
}
