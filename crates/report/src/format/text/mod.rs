//! For people at a terminal.

pub mod annotate;
pub mod coverage;
pub mod diff;
pub mod failures;
mod places;
pub mod runs;
pub mod stack_check;
pub mod table;
pub mod timeline;
pub mod tree;
