//! The frames of a thread that runs an interpreter, by activations of its evaluation loop.

use std::ops::Range;
use std::sync::Arc;

use crate::native::NativeStack;

/// An interpreted function.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name, qualified by those of classes.
    pub name: String,
    /// The source file, as the interpreter knows it.
    pub file: String,
    /// The first line in it.
    pub first_line: u32,
}

/// A running function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InterpretedFrame {
    /// The function.
    pub function: Arc<Function>,
    /// The current line in it, if known.
    pub line: Option<u32>,
}

/// The interpreted frames of a thread, innermost first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InterpretedStack {
    /// All frames; those of an activation come after those of its callee.
    pub frames: Vec<InterpretedFrame>,
    /// The activations of the evaluation loop.
    pub activations: Vec<Activation>,
    /// How many of the activations are on the thread's native stack; the others are on those of
    /// the coroutines that have resumed this one, and of the thread itself.
    pub on_stack: usize,
    /// Whether the innermost activation may be in no loop: it has not begun yet, or has ended.
    pub may_lack_loop: bool,
    /// The loop that may have no frames any more, as a number from the innermost one on.
    pub frameless_loop: Option<usize>,
    /// The addresses of the innermost function's instructions.
    pub instructions: Range<u64>,
    /// The memory of the functions that were unknown before this stack, in bytes.
    pub new_bytes: usize,
}

/// One activation of the evaluation loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Activation {
    /// The address of its anchor on the native stack.
    pub anchor: u64,
    /// The end of its frames in [`InterpretedStack::frames`].
    pub end: usize,
}

/// Why the interpreted frames are unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The version is unknown.
    Version,
    /// No thread state is that of the thread.
    NoThread,
    /// The chain of frames is broken, or its objects are not frames.
    Inconsistent,
    /// More frames than are read.
    TooDeep,
    /// More functions that were unknown before than are read for a stack.
    TooManyNew,
}

impl InterpretedStack {
    /// Completes the frames of an activation.
    pub(crate) fn close(&mut self, anchor: u64) -> Result<(), Unknown> {
        let last = self.activations.last();
        // A stack grows down.
        match last.is_some_and(|last| last.anchor >= anchor) {
            true => Err(Unknown::Inconsistent),
            false => self.end_activation(anchor),
        }
    }

    pub(crate) fn end_activation(&mut self, anchor: u64) -> Result<(), Unknown> {
        let begin = self.activations.last().map_or(0, |last| last.end);
        let end = self.frames.len();
        // An activation without a frame begins or ends.
        if begin >= end {
            return Err(Unknown::Inconsistent);
        }
        self.activations.push(Activation { anchor, end });
        self.on_stack = self.activations.len();
        Ok(())
    }

    /// Replaces anchors that are addresses of frames by the addresses of words that point to them.
    pub(crate) fn place(&mut self, native: &NativeStack<'_>) -> Result<(), Unknown> {
        let frames = self.activations.iter().map(|it| it.anchor);
        let places = native.find(frames).ok_or(Unknown::Inconsistent)?;
        for (activation, place) in self.activations.iter_mut().zip(places) {
            activation.anchor = place;
        }
        Ok(())
    }

    /// Adds the stack that called this one.
    pub(crate) fn append(&mut self, outer: Self) -> Result<(), Unknown> {
        let inner = self.frames.len();
        self.frames.extend(outer.frames);
        for Activation { anchor, end } in outer.activations {
            let last = self.activations.last();
            if last.is_some_and(|last| last.anchor >= anchor) {
                return Err(Unknown::Inconsistent);
            }
            let end = inner + end;
            self.activations.push(Activation { anchor, end });
        }
        self.on_stack = self.activations.len();
        Ok(())
    }

    /// The stack, if all frames belong to an activation.
    pub(crate) fn closed(self) -> Result<Self, Unknown> {
        match self.activations.last().map_or(0, |last| last.end) == self.frames.len() {
            true => Ok(self),
            false => Err(Unknown::Inconsistent),
        }
    }

    /// The frames of the activation with this index.
    pub fn of_activation(&self, number: usize) -> &[InterpretedFrame] {
        let end = |number: usize| self.activations.get(number).map(|it| it.end);
        let start = number.checked_sub(1).and_then(end).unwrap_or(0);
        let end = end(number).unwrap_or(start);
        self.frames.get(start..end).unwrap_or_default()
    }

    /// The frames that are on other native stacks.
    pub fn of_other_stacks(&self) -> &[InterpretedFrame] {
        let last = self.on_stack.checked_sub(1);
        let last = last.and_then(|last| self.activations.get(last));
        let start = last.map_or(0, |last| last.end);
        self.frames.get(start..).unwrap_or_default()
    }
}
