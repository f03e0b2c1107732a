//! How the stack of a sample ended: counted in the recording's quality when the sample is written.

use prof_model::{InterpretedLanguage, MissingFrames, ModuleId, StackEnd, StackNote};

/// The outcome of a sample's stack.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StackOutcome {
    /// The sample's note.
    pub(crate) note: StackNote,
    /// Whether it has its interpreted frames; `None` without an interpreter.
    pub(crate) interpreted: Option<InterpretedOutcome>,
    /// Where unwinding stopped before the root.
    pub(crate) stop: Option<UnwindStop>,
}

/// The interpreter on a stack, and whether the stack has its frames.
pub(crate) type InterpretedOutcome = (InterpretedLanguage, Result<(), MissingFrames>);

impl StackOutcome {
    /// The outcome of a stack that was not unwound.
    pub(crate) const fn of(end: StackEnd) -> Self {
        Self {
            note: StackNote::new(end),
            interpreted: None,
            stop: None,
        }
    }
}

/// A place where stacks end early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct UnwindStop {
    /// The reason.
    pub(crate) end: StackEnd,
    /// The module of the last frame.
    pub(crate) module: Option<ModuleId>,
    /// File offset in it, or the absolute address without one.
    pub(crate) offset: u64,
}
