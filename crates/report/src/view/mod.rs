//! Views: parts of a profile as plain values without a format.

pub mod annotate;
mod attribution;
pub mod chart;
pub mod diff;
pub mod failures;
pub mod flat;
pub mod groups;
pub mod outline;
pub mod stack_check;
pub mod timeline;
