//! The bytes of stacks: the dump in the sample, then the live target.

pub(crate) mod stack;
pub(crate) mod target;
