//! An interpreter of a process: its version, its threads, their frames.

use rustc_hash::FxHashSet;

use super::PythonError;
use super::frames::Frame;
use super::layout::{Layout, Version};
use super::object::Objects;
use super::symbols::Symbols;
use crate::memory::{Memory, Reader};

/// The CPython of a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    layout: Layout,
    /// In the process.
    symbols: Symbols,
}

/// A thread that an interpreter knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Where its `PyThreadState` is.
    pub state: u64,
    /// What `pthread_self` says in it; 0 before it has begun.
    pub id: u64,
    /// Its id in the PID namespace of the process, which CPython 3.11 and later keep.
    pub native_id: Option<u64>,
}

impl Interpreter {
    /// The most that is read to list threads: some 2,000,000 words.
    const LIST_LIMIT: usize = 16 << 20;
    /// The most that is read of one stack: 5,000 frames of functions with large tables.
    const STACK_LIMIT: usize = 32 << 20;
    /// No process has more.
    const INTERPRETERS: usize = 1024;
    const THREADS: usize = 65_536;

    /// The interpreter with these symbols, in whose process the file's address 0 is at `bias`.
    /// `file_name` is that of the file, without its folder: CPython up to 3.10 tells its version
    /// nowhere else.
    ///
    /// # Errors
    /// The version is not supported, or the memory cannot be read.
    pub fn new(
        symbols: Symbols,
        bias: u64,
        file_name: &str,
        memory: &mut impl Memory,
    ) -> Result<Self, PythonError> {
        let symbols = symbols.at(bias);
        let mut reader = Reader::new(memory, Self::LIST_LIMIT);
        let start = reader.bytes(symbols.runtime)?;
        if let Some(layout) = Layout::published(&start) {
            let layout = layout?;
            return Ok(Self { layout, symbols });
        }
        let version = match symbols.version {
            Some(address) => Version::of_hex(reader.word(address)?),
            None => Version::of_file_name(file_name),
        };
        let layout = version.and_then(Layout::of);
        let layout = *layout.ok_or(PythonError::UnknownVersion)?;
        Ok(Self { layout, symbols })
    }

    /// Where this version has its fields.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The threads of all interpreters of the process.
    ///
    /// # Errors
    /// Memory cannot be read, or the lists do not end.
    pub fn threads(&self, memory: &mut impl Memory) -> Result<Vec<Thread>, PythonError> {
        let mut reader = Reader::new(memory, Self::LIST_LIMIT);
        let layout = &self.layout;
        let head = self.symbols.runtime.wrapping_add(layout.interpreters_head);
        let mut interpreter = reader.word(head)?;
        if interpreter == 0 {
            return Err(PythonError::NotInitialized);
        }
        let (mut interpreters, mut seen) = (0, FxHashSet::default());
        let mut threads = Vec::new();
        while interpreter != 0 {
            interpreters += 1;
            if interpreters > Self::INTERPRETERS {
                return Err(PythonError::Endless);
            }
            let mut state = reader.word(interpreter.wrapping_add(layout.threads_head))?;
            while state != 0 {
                if seen.len() >= Self::THREADS || !seen.insert(state) {
                    return Err(PythonError::Endless);
                }
                let at = |offset: u64| state.wrapping_add(offset);
                let native_id = layout.native_thread_id.map(|field| reader.word(at(field)));
                threads.push(Thread {
                    state,
                    id: reader.word(at(layout.thread_id))?,
                    native_id: native_id.transpose()?,
                });
                state = reader.word(at(layout.thread_next))?;
            }
            interpreter = reader.word(interpreter.wrapping_add(layout.interpreter_next))?;
        }
        Ok(threads)
    }

    /// The frames of a thread, innermost first; none if it runs no Python.
    ///
    /// A thread that runs on changes its frames meanwhile. Types and limits are checked, but whether
    /// the frames are of one moment, and of which, only the thread's own stack can tell.
    ///
    /// # Errors
    /// What was read is no stack of Python frames, or could not be read.
    pub fn frames(
        &self,
        thread: &Thread,
        memory: &mut impl Memory,
    ) -> Result<Vec<Frame>, PythonError> {
        let mut objects = Objects {
            reader: Reader::new(memory, Self::STACK_LIMIT),
            layout: &self.layout,
            symbols: &self.symbols,
        };
        objects.frames(thread.state)
    }
}
