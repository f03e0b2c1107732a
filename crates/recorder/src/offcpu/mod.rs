//! Off-CPU time: when threads were blocked, and where.

pub(crate) mod blocked_threads;
pub(crate) mod tracker;
