//! Where unwinding stopped short of the root.

use std::collections::HashMap;
use std::sync::Arc;

use prof_model::{StackEnd, UnwindFailure};

use crate::profile::Frame;
use crate::symbolize::SymbolizedProfile;

/// Unwind failures by place, the most frequent first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failures {
    /// How many user stacks there are, whole or not.
    pub stacks: u64,
    /// How many of them are whole.
    pub whole: u64,
    /// Partial stacks by reason, the most frequent first.
    pub reasons: Vec<(StackEnd, u64)>,
    /// The places.
    pub rows: Vec<Row>,
}

/// A place where unwinding stopped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Reason, module, offset and count.
    pub failure: UnwindFailure,
    /// The function there, if it has a name: that of the last frame that was found.
    pub function: Option<Arc<str>>,
}

impl Failures {
    /// The failures of a profile, as far as they were recorded by place.
    pub fn new(symbolized: &SymbolizedProfile) -> Self {
        let quality = symbolized.quality();
        let names = names(symbolized);
        let row = |failure: &UnwindFailure| Row {
            function: names
                .get(&(failure.module.as_str(), failure.offset))
                .cloned(),
            failure: failure.clone(),
        };
        Self {
            stacks: quality.user_stacks(),
            whole: quality.whole_stacks(),
            reasons: quality.partial_stacks(),
            rows: quality.failures.iter().map(row).collect(),
        }
    }
}

/// The names of functions by module path and file offset.
pub(super) fn names(symbolized: &SymbolizedProfile) -> HashMap<(&str, u64), Arc<str>> {
    let profile = symbolized.profile();
    let named = profile.frames.iter().filter_map(|(id, frame)| {
        let Frame::Module { module, offset } = frame else {
            return None;
        };
        // Non-UTF-8 paths have no row that could ask for them by this name.
        let path = profile.modules[module].path.to_str()?;
        let physical = symbolized.locations(id).last()?;
        let name = Arc::clone(&symbolized[physical.function].name);
        Some(((path, offset.0), name))
    });
    named.collect()
}
