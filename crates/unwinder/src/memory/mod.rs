//! The bytes that stacks are read from: the copy in the sample, then the live target.

pub(crate) mod stack;
pub(crate) mod target;
