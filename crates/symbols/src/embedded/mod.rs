//! Names that travel in the recording, so that it can be reported where the files are not.

mod bytes;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use prof_model::{BuildId, FileIdentity, Pid};

use crate::ambiguous_paths::AmbiguousPaths;
use crate::query::{Detail, Query, Resolved, Source, SymbolFrame};
use crate::status::ModuleStatus;

/// The answers to a set of queries, in a form that can be stored.
///
/// ```text
///   modules ─ addresses, sorted ─ each a run of numbers into ─▶ frames ─▶ strings
///                              └─ or where its function begins, if it has no frames
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EmbeddedSymbols {
    /// Names and files, each once.
    strings: Vec<Arc<str>>,
    /// Frames, each once.
    frames: Vec<Frame>,
    modules: Vec<Module>,
    /// Addresses of code that keeps no frame pointer, sorted, where a chain of frame pointers lacks
    /// a caller. The unwind tables that tell are not stored.
    skipped_callers: Vec<(Key, Vec<u64>)>,
    /// Whether all modules of the recording are here.
    whole: bool,
}

/// An answer from stored symbols.
pub(crate) struct Stored {
    pub(crate) resolved: Resolved,
    /// The addresses that nothing is stored of, in the order of the query: they come from another
    /// recording, which is reported together with the one that carries symbols.
    pub(crate) missing: Vec<u64>,
}

impl Stored {
    /// Whether the module had names: all that there are, or some.
    pub(crate) fn has_names(&self) -> bool {
        self.resolved.status().is_named() || self.resolved.named() > 0
    }
}

/// Why stored symbols could not be read.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The bytes end early or contradict themselves.
    #[error("the symbols in the recording are damaged; archive it again where it was made")]
    Damaged,
    /// Written by a later version.
    #[error(
        "the symbols in the recording have format {0}, which this version does not know; \
         use a newer one"
    )]
    UnknownVersion(u64),
}

/// A frame; its strings by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Frame {
    function: u32,
    file: Option<u32>,
    line: Option<u32>,
    inlined: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Module {
    key: Key,
    detail: Detail,
    /// Why it has no names, if it has none.
    problem: Option<String>,
    /// Sorted.
    addresses: Vec<u64>,
    /// For each address, where its frames end in `frames`.
    ends: Vec<u32>,
    /// Numbers of frames.
    frames: Vec<u32>,
    /// By an address without frames: where its function begins, if that is known.
    starts: BTreeMap<u64, u64>,
}

/// The identity of a module.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File(PathBuf, FileKey),
    Kernel,
    Jit(Pid),
}

/// Which of the files of one path.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum FileKey {
    BuildId(BuildId),
    /// Without a build id: by its inode, if that was recorded and stored.
    Identity(Option<FileIdentity>),
}

impl Key {
    fn of(source: Source<'_>) -> Self {
        match source {
            Source::File(module) => {
                let inode = || FileKey::Identity(module.identity);
                let file = module.build_id.map_or_else(inode, FileKey::BuildId);
                Self::File(module.path.clone(), file)
            }
            Source::Kernel => Self::Kernel,
            Source::Jit { pid } => Self::Jit(pid),
        }
    }

    /// Whether what is stored under this key answers queries about `source`.
    fn answers(&self, source: Source<'_>, ambiguous: &AmbiguousPaths) -> bool {
        match (self, source) {
            (Self::File(path, FileKey::BuildId(id)), Source::File(module)) => {
                module.build_id == Some(*id) && *path == module.path
            }
            (Self::File(path, FileKey::Identity(identity)), Source::File(module)) => {
                module.build_id.is_none()
                    && *path == module.path
                    && ambiguous.are_of(module, *identity)
            }
            (Self::Kernel, Source::Kernel) => true,
            (Self::Jit(stored), Source::Jit { pid }) => *stored == pid,
            _ => false,
        }
    }
}

impl Module {
    /// The numbers of the frames at an address.
    fn frames_at(&self, address: u64) -> Option<&[u32]> {
        let index = self.addresses.binary_search(&address).ok()?;
        let end = *self.ends.get(index)? as usize;
        let start = match index.checked_sub(1) {
            Some(before) => *self.ends.get(before)? as usize,
            None => 0,
        };
        self.frames.get(start..end)
    }
}

impl EmbeddedSymbols {
    /// The answers to all queries that a recording gives rise to, as
    /// [`Symbolizer::resolve`](crate::Symbolizer::resolve) gave them.
    pub fn new(queries: &[Query<'_>], answers: &[Resolved]) -> Self {
        Self {
            whole: true,
            ..Self::some(queries, answers)
        }
    }

    /// The answers to some of the queries, whose files will not be found again. The others can
    /// still be answered by whoever has the files.
    pub fn some(queries: &[Query<'_>], answers: &[Resolved]) -> Self {
        let mut builder = Builder::default();
        for (query, answer) in queries.iter().zip(answers) {
            builder.add(query, answer);
        }
        builder.symbols
    }

    /// Adds the addresses in a file whose code keeps no frame pointer.
    pub fn add_skipped_callers(&mut self, module: &prof_model::Module, mut addresses: Vec<u64>) {
        addresses.sort_unstable();
        addresses.dedup();
        let key = Key::of(Source::File(module));
        self.skipped_callers.push((key, addresses));
    }

    /// Whether code at an address in a file was added as keeping no frame pointer.
    pub fn skips_caller(&self, module: &prof_model::Module, address: u64) -> bool {
        let key = Key::of(Source::File(module));
        let mut known = self.skipped_callers.iter();
        known.any(|(of, addresses)| *of == key && addresses.binary_search(&address).is_ok())
    }

    /// The form to store: a few bytes for each address.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::write(self)
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the bytes are not in a form that this version knows.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, EmbeddedError> {
        bytes::read(bytes)
    }

    /// Whether all modules of the recording are here: then no other symbols count that may be of
    /// another machine.
    pub(crate) fn is_whole(&self) -> bool {
        self.whole
    }

    /// The answer to a query, if its module is here with any of the addresses.
    ///
    /// A file may be here more than once: one that was mapped before the recording began and again
    /// during it is two modules of the recording, because `/proc` does not show the generation of
    /// its inode.
    pub(crate) fn answer(&self, query: &Query<'_>, ambiguous: &AmbiguousPaths) -> Option<Stored> {
        let is_asked = |module: &&Module| module.key.answers(query.source, ambiguous);
        let modules: Vec<&Module> = self.modules.iter().filter(is_asked).collect();
        let problems: Option<Vec<&String>> = modules
            .iter()
            .map(|module| module.problem.as_ref())
            .collect();
        let status = match problems.as_deref() {
            None => ModuleStatus::Named,
            Some(problems) => ModuleStatus::Archived {
                reason: (*problems.first()?).clone(),
            },
        };
        let mut resolved = Resolved::unnamed(status, 0);
        let details = modules.iter().map(|module| module.detail);
        resolved.detail = details.max().unwrap_or(Detail::Nothing);
        let mut missing = Vec::new();
        for &address in query.addresses {
            let answers = modules.iter().filter_map(|it| it.frames_at(address));
            match answers.max_by_key(|numbers| numbers.len()) {
                Some(numbers) => {
                    let starts = modules.iter().filter_map(|it| it.starts.get(&address));
                    let start = starts.copied().next().filter(|_| numbers.is_empty());
                    let frames = numbers.iter().filter_map(|&number| self.frame(number));
                    resolved.push_all(frames, start);
                }
                None => {
                    missing.push(address);
                    resolved.push(None);
                }
            }
        }
        (missing.len() < query.addresses.len()).then_some(Stored { resolved, missing })
    }

    fn frame(&self, number: u32) -> Option<SymbolFrame> {
        let frame = self.frames.get(number as usize)?;
        let string = |number: u32| self.strings.get(number as usize).cloned();
        Some(SymbolFrame {
            function: string(frame.function)?,
            file: frame.file.and_then(string),
            line: frame.line,
            inlined: frame.inlined,
        })
    }
}

#[derive(Default)]
struct Builder {
    symbols: EmbeddedSymbols,
    strings: HashMap<Arc<str>, u32>,
    frames: HashMap<Frame, u32>,
}

impl Builder {
    fn add(&mut self, query: &Query<'_>, answer: &Resolved) {
        let mut order: Vec<(u64, usize)> = query.addresses.iter().copied().zip(0..).collect();
        order.sort_unstable();
        order.dedup_by_key(|&mut (address, _)| address);
        let mut module = Module {
            key: Key::of(query.source),
            detail: answer.detail(),
            problem: (!answer.status().is_named()).then(|| answer.status().reason()),
            addresses: Vec::with_capacity(order.len()),
            ends: Vec::with_capacity(order.len()),
            frames: Vec::new(),
            starts: BTreeMap::new(),
        };
        for (address, index) in order {
            let start = answer.unnamed_start(index);
            module.starts.extend(start.map(|start| (address, start)));
            for frame in answer.frames(index) {
                let number = self.frame(frame);
                module.frames.push(number);
            }
            module.addresses.push(address);
            module.ends.push(module.frames.len() as u32);
        }
        self.symbols.modules.push(module);
    }

    fn frame(&mut self, frame: &SymbolFrame) -> u32 {
        let frame = Frame {
            function: self.string(&frame.function),
            file: frame.file.as_ref().map(|file| self.string(file)),
            line: frame.line,
            inlined: frame.inlined,
        };
        let frames = &mut self.symbols.frames;
        *self.frames.entry(frame).or_insert_with(|| {
            frames.push(frame);
            (frames.len() - 1) as u32
        })
    }

    fn string(&mut self, string: &Arc<str>) -> u32 {
        let strings = &mut self.symbols.strings;
        *self.strings.entry(Arc::clone(string)).or_insert_with(|| {
            strings.push(Arc::clone(string));
            (strings.len() - 1) as u32
        })
    }
}

/// The bytes of a path, to store it.
fn path_bytes(path: &Path) -> &[u8] {
    use std::os::unix::ffi::OsStrExt;
    path.as_os_str().as_bytes()
}

/// And back.
fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(bytes).into()
}
