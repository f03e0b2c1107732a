//! How to get from a frame to its caller, in a form small enough to cache thousands.

/// How to step from a frame whose code address has been looked up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Rule {
    /// The usual case: offsets from the canonical frame address (CFA).
    Compact(CompactRule),
    /// The CFI has expressions or other rare constructs: evaluate it completely each time.
    Evaluate,
    /// Evaluate it; but the function restores registers that were saved elsewhere, as `longjmp`,
    /// `setcontext` and libgcc's functions for exceptions do.
    RestoresContext,
    /// The code goes straight on to a jump or return with other registers than CFI says: follow it.
    Exit,
    /// libgcc lets an exception land: the registers of the handler are in its `struct
    /// _Unwind_Context`, this far from the frame pointer.
    Landing(i32),
    /// The CFI says that there is no caller.
    Entry,
    /// There is no CFI; this follows from an analysis of the code. Accepted only if the return
    /// address that it yields follows a call.
    Guess(CompactRule),
    /// There is no CFI; the code shows that a frame record is where the frame pointer points to,
    /// but not where its frame ends.
    FrameRecord,
    /// There is no CFI, but the code is a signal handler's return trampoline.
    SignalReturn,
    /// The code is where the kernel enters a program, or where a stack of its own begins, whatever
    /// the CFI says.
    ProgramEntry,
    /// A goroutine has returned from its function and ends. It makes that call at the place on the
    /// stack of the function's return address.
    GoroutineEnd,
    /// The code moved to another stack before it made its call, as Go's `systemstack` does. The CFI
    /// does not say so; the frame pointer still leads to the previous stack.
    StackSwitch,
    /// Go has called C on another stack. Its CFI is wrong there, and the goroutine's stack cannot
    /// be proven to be of the sample's moment: its callers are known if the kernel's chain leads
    /// on.
    CallFromGo,
    /// There is no CFI, and the code gives no rule either.
    Unknown,
}

impl Rule {
    /// The rule from an analysis of the code.
    pub(crate) fn guess(self) -> Option<CompactRule> {
        match self {
            Self::Guess(rule) => Some(rule),
            _ => None,
        }
    }
}

/// CFA = register + offset; return address and saved registers at fixed offsets from the CFA.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct CompactRule {
    /// Added to the CFA register.
    pub(crate) cfa_offset: i32,
    /// DWARF number of the register the CFA is relative to.
    pub(crate) cfa_register: u8,
    /// The CFA is relative to a value in memory instead, at the register's value plus this.
    pub(crate) cfa_through: Option<i16>,
    /// Where the return address is saved, in words from the CFA; `None`: still in its register.
    pub(crate) return_address: Option<i16>,
    /// Bit i: the i-th of [`Layout::saved`](crate::arch::Layout) is saved.
    pub(crate) saved_mask: u16,
    /// Where, in words from the CFA, for each bit of the mask; 0 elsewhere.
    pub(crate) saved: [i16; CompactRule::SAVED],
}

impl CompactRule {
    /// How many registers a rule can restore.
    pub(crate) const SAVED: usize = 12;

    /// The saved registers: (slot, words from the CFA).
    pub(crate) fn saved(&self) -> impl Iterator<Item = (usize, i16)> + '_ {
        let mut left = self.saved_mask;
        std::iter::from_fn(move || {
            let slot = left.trailing_zeros() as usize;
            left &= left.wrapping_sub(1);
            Some((slot, *self.saved.get(slot)?))
        })
    }

    /// Notes that the register of `slot` is saved at CFA + `offset` bytes; `None` if that does
    /// not fit.
    pub(crate) fn save(&mut self, slot: usize, offset: i64) -> Option<()> {
        *self.saved.get_mut(slot)? = words(offset)?;
        self.saved_mask |= 1 << slot;
        Some(())
    }
}

/// A byte offset in words, if it is whole and small enough.
pub(crate) fn words(offset: i64) -> Option<i16> {
    (offset % 8 == 0).then_some(())?;
    i16::try_from(offset / 8).ok()
}
