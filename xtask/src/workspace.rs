//! The paths of the checkout and its build directory.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::process;

/// The top of the checkout.
pub(crate) fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}

/// The output of `cargo metadata` about the members of the workspace at `root`.
pub(crate) fn metadata(root: &Path) -> Result<Value> {
    let mut command = process::cargo();
    command.current_dir(root);
    command.args(["metadata", "--no-deps", "--format-version", "1"]);
    serde_json::from_str(&process::output(&mut command)?)
        .context("cannot read what cargo metadata printed")
}

/// The directory that cargo builds into.
pub(crate) fn target_directory() -> Result<PathBuf> {
    let metadata = metadata(root())?;
    let directory = metadata["target_directory"].as_str();
    Ok(directory
        .context("cargo metadata names no target directory")?
        .into())
}
