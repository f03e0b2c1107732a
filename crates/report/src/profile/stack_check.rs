//! Copies of stacks, unwound by two engines.

use prof_model::StackEnd;

/// How far prof's unwinder and framehop agree on the stack dumps in a recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StackCheck {
    /// How many stacks both unwound.
    pub stacks: u64,
    /// The number of stacks with the same frames, whole by both or by neither.
    pub same: u64,
    /// The number of further stacks with the same frames, whole by only one.
    pub same_frames: u64,
    /// How many are whole by prof's unwinder.
    pub whole_by_prof: u64,
    /// How many are whole by framehop.
    pub whole_by_framehop: u64,
    /// Where they differ, the most frequent first.
    pub differences: Vec<Difference>,
}

/// A frame whose caller is in question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The outermost frame that both have.
    pub place: CodePlace,
    /// Its caller by prof's unwinder, in the first such stack.
    pub prof: Answer,
    /// Its caller by framehop.
    pub framehop: Answer,
    /// How many stacks part there in this way.
    pub stacks: u64,
}

/// An engine's result for a frame's caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The caller.
    Caller(CodePlace),
    /// There is none, or it cannot be found.
    End(StackEnd),
}

/// A frame's code: where it is in its module's file, or in memory if it is in none.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct CodePlace {
    /// The module's path; empty if there is none.
    pub module: String,
    /// The offset in the file, or the address.
    pub offset: u64,
}

impl StackCheck {
    /// Adds the result for another recording.
    pub(super) fn append(&mut self, other: Self) {
        self.stacks += other.stacks;
        self.same += other.same;
        self.same_frames += other.same_frames;
        self.whole_by_prof += other.whole_by_prof;
        self.whole_by_framehop += other.whole_by_framehop;
        self.differences.extend(other.differences);
        self.sort();
    }

    /// Puts the most frequent differences first.
    pub(crate) fn sort(&mut self) {
        let by_place = |a: &Difference, b: &Difference| a.place.cmp(&b.place);
        self.differences
            .sort_by(|a, b| b.stacks.cmp(&a.stacks).then_with(|| by_place(a, b)));
    }
}
