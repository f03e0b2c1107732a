//! What the samples so far have shown of the program's stacks.

use crate::queue::feedback::Feedback;

/// Says which samples need a wakeup of their own.
///
/// All threads are judged together, because those that inherit an event share its signal.
#[derive(Debug, Default)]
pub(super) struct StackEvidence {
    recent: RecentSamples,
    /// Whether a stack ever filled its dump.
    has_full_copies: bool,
    /// How many stacks the session has unwound, of the first ones.
    unwound: u32,
    has_interpreters: bool,
}

/// How many wakeups were worth it lately.
#[derive(Debug, Default)]
struct RecentSamples {
    all: u32,
    /// Of them, those with stacks deeper than their dumps.
    deep: u32,
    /// Of them, those that continued on another stack.
    other_stacks: u32,
    /// Of them, those whose stack tails had changed since the sample before.
    changed: u32,
    /// Of them, those whose stack tails may not be read: no wakeup helps them.
    refused: u32,
    /// Of them, those with an interpreter.
    interpreted: u32,
    /// Of them, waits in interpreters that no watcher reads.
    unread_waits: u32,
}

impl RecentSamples {
    /// The number of samples that count: beyond it, all counters are halved.
    const MEMORY: u32 = 1024;

    fn add(&mut self, samples: u32) {
        self.all = self.all.saturating_add(samples);
        while self.all > Self::MEMORY {
            self.all /= 2;
            self.deep /= 2;
            self.other_stacks /= 2;
            self.changed /= 2;
            self.refused /= 2;
            self.interpreted /= 2;
            self.unread_waits /= 2;
        }
    }

    fn learn(&mut self, feedback: Feedback) {
        self.deep = self.deep.saturating_add(feedback.deep);
        self.other_stacks = self.other_stacks.saturating_add(feedback.other_stacks);
        self.changed = self.changed.saturating_add(feedback.changed);
        self.interpreted = self.interpreted.saturating_add(feedback.interpreted);
        self.unread_waits = self.unread_waits.saturating_add(feedback.unread_waits);
    }
}

impl StackEvidence {
    /// One sample in this many must need a wakeup of its own: without it, 99.5 % of stacks are
    /// whole.
    pub(super) const WORTH: u32 = 200;
    /// The first samples each wake the reader, so that short programs benefit as well.
    const AT_FIRST: u32 = 32;
    /// So many unwound stacks show whether tails change.
    const LEARNED: u32 = 256;

    /// A pass over the rings has found samples. The stack tails of those that are `refused` may not
    /// be read.
    pub(super) fn found(&mut self, samples: u32, refused: u32, full_copies: bool) {
        self.recent.refused += refused;
        self.recent.add(samples);
        self.has_full_copies |= full_copies;
    }

    /// The session has unwound samples.
    pub(super) fn learn(&mut self, feedback: Feedback) {
        self.unwound = self.unwound.saturating_add(feedback.unwound);
        self.recent.learn(feedback);
    }

    /// A process runs an interpreter. Until the session has unwound its samples, any of them may
    /// need its frames.
    pub(super) fn expect_interpreted(&mut self) {
        self.recent.interpreted = self.recent.all;
    }

    /// There are interpreters: if this is new, they ran before they were sampled.
    pub(super) fn have_interpreters(&mut self) {
        if !self.has_interpreters {
            self.has_interpreters = true;
            self.expect_interpreted();
        }
    }

    /// Whether there are few samples yet, or the session has not said which of the first stacks
    /// change.
    pub(super) fn is_at_first(&self) -> bool {
        let is_unknown = self.has_full_copies && self.unwound < Self::AT_FIRST;
        self.recent.all < Self::AT_FIRST || is_unknown
    }

    /// Whether a stack ever filled its dump.
    pub(super) fn has_full_copies(&self) -> bool {
        self.has_full_copies
    }

    /// Whether reading stack tails with each sample pays: they change.
    pub(super) fn tails_change(&self) -> bool {
        // Stacks that an early wakeup has saved, or would have.
        self.pays((self.recent.changed).saturating_sub(self.recent.refused))
    }

    /// Whether reading stack tails soon pays: stacks are deeper than their dumps.
    pub(super) fn are_deep(&self) -> bool {
        self.pays(self.recent.deep)
    }

    /// Whether unwinding soon pays: stacks continue on others.
    pub(super) fn continue_on_others(&self) -> bool {
        self.pays(self.recent.other_stacks)
    }

    /// Whether reading interpreted frames with each sample pays.
    pub(super) fn have_interpreted(&self) -> bool {
        self.pays(self.recent.interpreted)
    }

    /// Whether reading waits in interpreters soon pays.
    pub(super) fn have_unread_waits(&self) -> bool {
        self.pays(self.recent.unread_waits)
    }

    /// Whether the next stack that fills its dump can show something new. Until enough are unwound,
    /// deep stacks may prove to change with it.
    pub(super) fn is_open(&self) -> bool {
        let may_change = self.unwound < Self::LEARNED && !self.tails_change();
        may_change || !self.are_deep()
    }

    fn pays(&self, needed: u32) -> bool {
        // A single one does not predict the next ones.
        needed > (self.recent.all / Self::WORTH).max(1)
    }
}
