//! Threads that wait: when they left their CPU, and where they wait.

pub(crate) mod blocked_threads;
pub(crate) mod tracker;
