//! The interpreter in a process, of any language that is read.

use std::fs::File;
use std::ops::Range;

use object::ReadCache;
use prof_model::Account;

use crate::elf::{self, Elf, ReadError, Segments};
use crate::evaluation::EvaluationLoop;
use crate::native::{InterpreterThread, NativeStack};
use crate::stack::{InterpretedStack, Unknown};
use crate::{Memory, php, python, ruby};

/// A file that contains an interpreter.
#[derive(Clone, Debug)]
pub struct Library {
    contents: Contents,
    /// The addresses of the evaluation loop.
    evaluation: Vec<Range<u64>>,
    segments: Segments,
}

/// What the file says of an interpreter.
#[derive(Clone, Debug)]
enum Contents {
    Python(python::Library),
    Php(php::Library),
    Ruby(ruby::Library),
}

/// An interpreter in a process.
#[derive(Clone, Debug)]
pub struct Interpreter {
    /// The language that it runs.
    pub language: Language,
    evaluation: EvaluationLoop,
}

/// A language, and where its frames are; `None` if they cannot be read.
#[derive(Clone, Debug)]
pub enum Language {
    /// That of CPython.
    Python(Option<python::Interpreter>),
    /// PHP.
    Php(Option<php::Interpreter>),
    /// Ruby.
    Ruby(Option<ruby::Interpreter>),
}

/// What is remembered of the functions and threads of a process.
#[derive(Debug, Default)]
pub struct InterpreterCache {
    python: python::Cache,
    php: php::Functions,
    ruby: ruby::Functions,
}

impl InterpreterCache {
    /// That of a process with this account.
    pub fn new(account: &Account) -> Self {
        Self {
            python: python::Cache::new(account),
            php: php::Functions::new(account),
            ruby: ruby::Functions::new(account),
        }
    }
}

impl Library {
    /// Whether a file of this name may contain one.
    pub fn is_named(name: &str) -> bool {
        python::Library::is_named(name)
            || php::Library::is_named(name)
            || ruby::Library::is_named(name)
    }

    /// Reads the tables of `file`, at most so many bytes, and returns how many they have.
    ///
    /// # Errors
    ///
    /// It contains no interpreter, or its tables are larger.
    pub fn read(file: File, most: u64) -> Result<(Self, u64), ReadError> {
        let cache = ReadCache::new(file);
        let (elf, bytes) = Elf::parse_within(&cache, most)?;
        let library = Self::of(&elf).ok_or(ReadError::None)?;
        Ok((library, bytes))
    }

    fn of(elf: &Elf<'_>) -> Option<Self> {
        let python = python::Library::read(elf).map(|(it, code)| (Contents::Python(it), code));
        let php = || php::Library::read(elf).map(|(it, code)| (Contents::Php(it), code));
        let ruby = || ruby::Library::read(elf).map(|(it, code)| (Contents::Ruby(it), code));
        let (contents, evaluation) = python.or_else(php).or_else(ruby)?;
        Some(Self {
            contents,
            evaluation,
            segments: elf.mapped(),
        })
    }

    /// The interpreter of a process that has the file's bytes from `file_offset` on mapped at
    /// `start`; `None` if that is not part of it.
    pub fn at(
        &self,
        start: u64,
        file_offset: u64,
        memory: &mut impl Memory,
    ) -> Option<Interpreter> {
        let bias = self.segments.bias(start, file_offset)?;
        let language = match &self.contents {
            Contents::Python(it) => Language::Python(it.at(bias, memory)),
            Contents::Php(it) => Language::Php(it.at(bias)),
            Contents::Ruby(it) => Language::Ruby(it.at(bias)),
        };
        Some(Interpreter::new(
            language,
            elf::moved(&self.evaluation, bias),
        ))
    }
}

impl Interpreter {
    /// The interpreter of a language, by the addresses of its evaluation loop.
    pub fn new(language: Language, evaluation: Vec<Range<u64>>) -> Self {
        Self {
            language,
            evaluation: EvaluationLoop { code: evaluation },
        }
    }

    /// Whether its frames can be read.
    pub fn is_readable(&self) -> bool {
        use Language::{Php, Python, Ruby};
        matches!(
            self.language,
            Python(Some(_)) | Php(Some(_)) | Ruby(Some(_))
        )
    }

    /// Whether the evaluation loop is at this address.
    pub fn evaluates_at(&self, address: u64) -> bool {
        self.evaluation.contains(address)
    }

    /// The frames of the thread whose native stack this is.
    ///
    /// # Errors
    ///
    /// The memory does not form a stack, or the version is unknown.
    pub fn stack(
        &self,
        memory: &mut impl Memory,
        thread: InterpreterThread,
        native: &NativeStack<'_>,
        cache: &mut InterpreterCache,
    ) -> Result<InterpretedStack, Unknown> {
        let evaluation = &self.evaluation;
        match &self.language {
            Language::Python(Some(it)) => it.stack(memory, thread, native, &mut cache.python),
            Language::Php(Some(it)) => it.stack(memory, evaluation, native, &mut cache.php),
            Language::Ruby(Some(it)) => it.stack(memory, evaluation, native, &mut cache.ruby),
            Language::Python(None) | Language::Php(None) | Language::Ruby(None) => {
                Err(Unknown::Version)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Pages;

    const LOOP: Range<u64> = 0x100..0x200;

    #[test]
    fn unknown_versions_have_a_loop_but_no_stack() {
        let native = NativeStack {
            start: 0x7000_0000,
            bytes: &[],
            is_whole: true,
            registers: &[],
            instruction_pointer: None,
        };
        let thread = InterpreterThread {
            tid: 77,
            is_main: true,
        };
        for language in [
            Language::Python(None),
            Language::Php(None),
            Language::Ruby(None),
        ] {
            let interpreter = Interpreter::new(language, vec![LOOP]);
            assert!(!interpreter.is_readable() && interpreter.evaluates_at(LOOP.start));
            let mut cache = InterpreterCache::default();
            let stack = interpreter.stack(&mut Pages::default(), thread, &native, &mut cache);
            assert_eq!(stack, Err(Unknown::Version));
        }
    }
}
