//! What the reader learns from the session.

/// The session's feedback on the samples that it has unwound.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Feedback {
    /// Stacks that were unwound.
    pub(crate) unwound: u32,
    /// Stacks that were deeper than their dumps.
    pub(crate) deep: u32,
    /// Stacks that continued on another one, which the session reads from the target.
    pub(crate) other_stacks: u32,
    /// Stacks that needed an early reading: their tails had changed since the sample before.
    pub(crate) changed: u32,
    /// Stacks with an interpreter: its frames must be read at once.
    pub(crate) interpreted: u32,
    /// Waits in interpreters whose frames nobody has read: the session does, if it knows them in
    /// time.
    pub(crate) unread_waits: u32,
}

impl Feedback {
    pub(crate) fn add(&mut self, other: Self) {
        self.unwound += other.unwound;
        self.deep += other.deep;
        self.other_stacks += other.other_stacks;
        self.changed += other.changed;
        self.interpreted += other.interpreted;
        self.unread_waits += other.unread_waits;
    }
}
