//! The caller that a chain of frame pointers lacks.
//!
//! ```text
//!   main ─▶ middle ─▶ leaf       leaf keeps no frame pointer, as compilers have it for functions
//!                                that call no other: rbp is still that of middle, so that
//!   chain: leaf, main            the first return address is the one into main
//! ```

use prof_model::{AbsoluteAddress, FileOffset, ModuleId, Modules, Pid, Process, StackEnd};
use prof_symbols::EmbeddedSymbols;
use prof_unwinder::{Target, Unwinder};
use rustc_hash::FxHashMap;

use super::chain::Chain;
use super::files::RecordedFiles;

/// Finds chains that lack a caller.
#[derive(Default)]
pub(in crate::load) struct SkippedCallers {
    unwinder: Option<Unwinder>,
    files: RecordedFiles,
    /// What the recording carries of files that may be gone.
    stored: Option<EmbeddedSymbols>,
    /// Whether code at these places keeps no frame pointer.
    known: FxHashMap<(ModuleId, FileOffset), bool>,
}

impl SkippedCallers {
    /// With the symbols that the recording carries.
    pub(in crate::load) fn new(symbols: Option<&[u8]>, files: RecordedFiles) -> Self {
        Self {
            files,
            stored: symbols.and_then(|bytes| EmbeddedSymbols::from_bytes(bytes).ok()),
            ..Self::default()
        }
    }

    /// Marks the gap behind the innermost function of a chain, if the caller is missing there.
    pub(in crate::load) fn mark(
        &mut self,
        chain: &mut Chain,
        pid: Pid,
        process: &Process,
        modules: &Modules,
    ) {
        let [innermost, _, ..] = chain.user[..] else {
            return;
        };
        let at = AbsoluteAddress(innermost);
        let Some(mapping) = process.space().find(at) else {
            return;
        };
        let key = (mapping.module, mapping.file_offset_of(at));
        let target = Target {
            pid,
            process,
            modules,
        };
        let Self {
            unwinder,
            files,
            stored,
            known,
        } = self;
        let is_skipped = *known.entry(key).or_insert_with(|| {
            let (module, offset) = (&modules[key.0], key.1);
            let is_stored = |stored: &EmbeddedSymbols| stored.skips_caller(module, offset.0);
            let unwinder = unwinder.get_or_insert_with(|| Unwinder::new(files.clone()));
            stored.as_ref().is_some_and(is_stored)
                || unwinder.keeps_frame_pointer(&target, at) == Some(false)
        });
        if is_skipped {
            chain.note.end = StackEnd::SkippedCaller;
            (chain.note.elided, chain.note.elided_at) = (1, 1);
        }
    }
}
