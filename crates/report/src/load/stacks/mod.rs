//! The stacks of samples: from call chains or dumps to interned stacks.
//!
//! ```text
//!   call chain of the sample ─┐
//!                             ├─> Chain ─> skipped callers, interpreters' functions ─> Interner
//!   dump of its stack ─ Dumps ┘
//! ```

pub(super) mod chain;
pub(super) mod dumps;
pub(super) mod files;
pub(super) mod intern;
pub(super) mod interpreted;
pub(super) mod skipped_callers;
pub(super) mod stack_check;
