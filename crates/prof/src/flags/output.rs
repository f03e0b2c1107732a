//! The outputs that the flags of `prof report` request.

use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

use super::report::{OutputFlags, TextFlags};

impl OutputFlags {
    /// Refuses several outputs to the standard output.
    pub(crate) fn check_standard_output(&self) -> Result<()> {
        let is_standard = |path: &&PathBuf| *path == Path::new("-");
        let picture = self.text.timeline.iter().flatten();
        let files = self.files.paths().chain(picture).filter(is_standard);
        let text = match &self.text.timeline {
            Some(picture) => picture.is_none() && self.files.json.is_none(),
            None if self.text.has_json() => self.files.json.is_none(),
            None => self.text.coverage || self.text.is_tree(),
        };
        if files.count() + usize::from(text) > 1 {
            bail!("only one output can go to the standard output: name files for the others");
        }
        Ok(())
    }

    /// The requested files that show functions or calls.
    pub(crate) fn call_files(&self) -> impl Iterator<Item = &PathBuf> {
        let json = self.files.json.iter().filter(|_| self.text.has_json());
        let elsewhere = json.count();
        self.files.paths().skip(elsewhere)
    }

    /// Whether functions or calls are shown as text: if requested, or if nothing else is.
    /// `--callers`, `--callees` and `--sort` also affect files.
    pub(crate) fn wants_calls(&self) -> bool {
        let to_standard_output = || self.files.paths().any(|path| path == Path::new("-"));
        let sorts = self.text.sort.is_some() && !to_standard_output();
        self.text.is_tree() || sorts || self.files.paths().next().is_none()
    }
}

impl TextFlags {
    /// Whether calls are shown as a tree from the outermost functions inwards.
    pub(crate) fn is_tree(&self) -> bool {
        let is_shown = |backend: &String| backend != "none";
        self.tree || self.call_graph.as_ref().is_some_and(is_shown)
    }

    /// Whether tables are sorted by total.
    pub(crate) fn by_total(&self) -> bool {
        let sorted = self.sort.is_some_and(|sort| sort.by_total);
        (sorted || self.children) && !self.no_children
    }

    /// Whether a view other than functions and calls is requested.
    pub(crate) fn has_view(&self) -> bool {
        self.has_json() || self.coverage
    }

    /// Whether `--json` writes that view.
    pub(crate) fn has_json(&self) -> bool {
        self.unwind_failures || self.check_stacks || self.timeline.is_some()
    }
}
