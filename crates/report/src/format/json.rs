//! The report as JSON; docs/json.md describes it.

use std::io::{self, Write};

use crate::calltree::CallTree;

/// Writes `tree`.
///
/// # Errors
/// Those of `out`.
pub fn write(tree: &CallTree<'_>, mut out: impl Write) -> io::Result<()> {
    let _ = tree;
    out.flush()
}
