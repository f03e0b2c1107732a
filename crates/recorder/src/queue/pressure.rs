//! How full the queue between reader and session is.

/// How full the queue is, which decides how much of a sample is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pressure {
    /// Everything is kept.
    Low,
    /// Stack tails are not read.
    Raised,
    /// Stacks are cut to [`CUT_STACK`] bytes.
    High,
    /// Samples are dropped. Records of other kinds never are.
    Full,
}

/// The bytes of a stack that are kept under high pressure: most stacks are shorter.
pub(crate) const CUT_STACK: usize = 8192;

impl Pressure {
    /// The pressure when `used` bytes of `budget` are taken.
    pub(crate) fn of(used: usize, budget: usize) -> Self {
        if used < budget / 2 {
            Self::Low
        } else if used < budget / 4 * 3 {
            Self::Raised
        } else if used < budget {
            Self::High
        } else {
            Self::Full
        }
    }
}
