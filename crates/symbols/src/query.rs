//! Questions and answers.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prof_model::{Module, Pid};

use crate::demangling::shorten::shorten;
use crate::status::ModuleStatus;

/// The space in which addresses are looked up, which says what kind of numbers they are.
#[derive(Clone, Copy, Debug)]
pub enum Source<'a> {
    /// A file or the vdso; the addresses are offsets in that file.
    File(&'a Module),
    /// The running kernel and its modules; absolute addresses.
    Kernel,
    /// Code that a process made at run time (a perf map or a jitdump); absolute addresses.
    Jit {
        /// The process, as the recorder's PID namespace numbers it.
        pid: Pid,
    },
}

/// All the addresses of one module, each once.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The module or process to search.
    pub source: Source<'a>,
    /// Sorted and distinct: lookup addresses, that is inside the instruction (the return
    /// address − 1 for callers). Unsorted ones are answered as well, only slower.
    pub addresses: &'a [u64],
}

/// One frame, physical or inlined.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct SymbolFrame {
    /// The function's name, demangled as the options say.
    pub function: Arc<str>,
    /// The source file that control is in *within this function*, by the path that the compiler
    /// recorded (made absolute with the compilation directory).
    pub file: Option<Arc<str>>,
    /// The line there, from 1. For a frame that others are inlined into, the line of the call.
    pub line: Option<u32>,
    /// Whether the compiler inlined this function into the next frame of the answer.
    pub inlined: bool,
}

/// How detailed symbols are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Detail {
    /// No names.
    Nothing,
    /// Functions, from a symbol table: inlined functions are counted as their callers.
    Functions,
    /// Functions, lines and inlined frames, from DWARF.
    Inlines,
}

/// The answer to one [`Query`].
#[derive(Clone, Debug)]
pub struct Resolved {
    pub(crate) status: ModuleStatus,
    pub(crate) detail: Detail,
    pub(crate) file: Option<PathBuf>,
    pub(crate) downloads: Option<String>,
    /// The frames of all addresses, one address after the other.
    pub(crate) frames: Vec<SymbolFrame>,
    /// The end of each address's frames in `frames`.
    pub(crate) ends: Vec<u32>,
    /// By the index of an address without a name: where its function begins, if that is known.
    pub(crate) starts: HashMap<usize, u64>,
    /// For each address the range with the same answer; empty if unknown.
    pub(crate) extents: Vec<Option<Range<u64>>>,
}

impl Resolved {
    /// Whether names were found, and why not.
    pub fn status(&self) -> &ModuleStatus {
        &self.status
    }

    /// How much was known.
    pub fn detail(&self) -> Detail {
        self.detail
    }

    /// The file that the names came from, if any.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Why debug info that a server might have was not downloaded: it failed, or was skipped.
    /// `None` if there was no need, or no server has it.
    pub fn download_problem(&self) -> Option<&str> {
        self.downloads.as_deref()
    }

    /// The number of requested addresses.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether no addresses were requested.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// The frames at the `index`-th address of the query, innermost first: inlined functions,
    /// then the function they were all inlined into. Empty if the address has no name; such a
    /// frame is best shown as module + offset.
    pub fn frames(&self, index: usize) -> &[SymbolFrame] {
        let end = self.ends.get(index).map_or(0, |&end| end as usize);
        let start = match index.checked_sub(1) {
            Some(previous) => self.ends.get(previous).map_or(0, |&end| end as usize),
            None => 0,
        };
        self.frames.get(start..end).unwrap_or_default()
    }

    /// Where the function begins that the `index`-th address is in, as an address of the query, if
    /// it has no name and the file's unwind tables know its bounds.
    pub fn unnamed_start(&self, index: usize) -> Option<u64> {
        self.starts.get(&index).copied()
    }

    /// The addresses around the `index`-th one that have the same answer, as those of the query, if
    /// that is known: where a symbol table alone names them.
    pub fn extent(&self, index: usize) -> Option<Range<u64>> {
        self.extents.get(index).cloned().flatten()
    }

    /// How many addresses have a name.
    pub fn named(&self) -> usize {
        (0..self.len())
            .filter(|&index| !self.frames(index).is_empty())
            .count()
    }

    /// Shortens all names.
    pub(crate) fn shorten(&mut self) {
        let mut short: HashMap<Arc<str>, Arc<str>> = HashMap::new();
        for frame in &mut self.frames {
            let name = short
                .entry(Arc::clone(&frame.function))
                .or_insert_with(|| Arc::from(shorten(&frame.function)));
            frame.function = Arc::clone(name);
        }
    }

    /// Adds the answer for the next address: its only frame, or that it has no name.
    pub(crate) fn push(&mut self, frame: Option<SymbolFrame>) {
        self.push_all(frame, None);
    }

    /// Adds the answer for the next address: its frames, innermost first, or where its function
    /// begins, if it has none.
    pub(crate) fn push_all(
        &mut self,
        frames: impl IntoIterator<Item = SymbolFrame>,
        start: Option<u64>,
    ) {
        let index = self.len();
        self.starts.extend(start.map(|start| (index, start)));
        self.frames.extend(frames);
        let end = u32::try_from(self.frames.len()).unwrap_or(u32::MAX);
        self.ends.push(end);
    }

    /// The answer for all of `addresses`: that of `rest` for those of them that are in `missing`,
    /// which is in the same order. Of the two, the status is the one that explains missing names.
    pub(crate) fn completed(self, addresses: &[u64], missing: &[u64], rest: &Self) -> Self {
        let status = match rest.status.is_named() {
            true => self.status.clone(),
            false => rest.status.clone(),
        };
        let mut all = Self {
            detail: self.detail.max(rest.detail),
            file: rest.file.clone(),
            downloads: rest.downloads.clone(),
            ..Self::unnamed(status, 0)
        };
        let mut next = 0;
        for (index, address) in addresses.iter().enumerate() {
            let (answer, index) = match missing.get(next) == Some(address) {
                true => {
                    next += 1;
                    (rest, next - 1)
                }
                false => (&self, index),
            };
            let frames = answer.frames(index).iter().cloned();
            all.push_all(frames, answer.unnamed_start(index));
        }
        all
    }

    /// An answer without any names.
    pub(crate) fn unnamed(status: ModuleStatus, addresses: usize) -> Self {
        Self {
            status,
            detail: Detail::Nothing,
            file: None,
            downloads: None,
            frames: Vec::new(),
            ends: vec![0; addresses],
            starts: HashMap::new(),
            extents: Vec::new(),
        }
    }
}
