//! The interpreter in a process, of any language that is read.

use std::fs::File;

use object::ReadCache;

use crate::elf::Elf;
use crate::{Memory, php, python, ruby};

/// A file that contains an interpreter.
#[derive(Clone, Debug)]
pub enum Library {
    /// CPython.
    Python(python::Library),
    /// PHP.
    Php(php::Library),
    /// Ruby.
    Ruby(ruby::Library),
}

/// An interpreter in a process.
#[derive(Clone, Debug)]
pub enum Interpreter {
    /// CPython.
    Python(python::Interpreter),
    /// PHP.
    Php(php::Interpreter),
    /// Ruby.
    Ruby(ruby::Interpreter),
}

impl Library {
    /// Whether a file of this name may contain one.
    pub fn is_named(name: &str) -> bool {
        python::Library::is_named(name)
            || php::Library::is_named(name)
            || ruby::Library::is_named(name)
    }

    /// Reads the symbol tables of `file`; `None` if it contains no interpreter.
    pub fn read(file: File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let elf = Elf::parse(&cache)?;
        let python = python::Library::read(&elf).map(Self::Python);
        let php = || php::Library::read(&elf).map(Self::Php);
        let ruby = || ruby::Library::read(&elf).map(Self::Ruby);
        python.or_else(php).or_else(ruby)
    }

    /// The interpreter of a process that has the file's bytes from `file_offset` on mapped at
    /// `start`; `None` if that is not part of it.
    pub fn at(
        &self,
        start: u64,
        file_offset: u64,
        memory: &mut impl Memory,
    ) -> Option<Interpreter> {
        match self {
            Self::Python(it) => it.at(start, file_offset, memory).map(Interpreter::Python),
            Self::Php(it) => it.at(start, file_offset).map(Interpreter::Php),
            Self::Ruby(it) => it.at(start, file_offset).map(Interpreter::Ruby),
        }
    }
}

impl Interpreter {
    /// Whether its frames can be read.
    pub fn is_readable(&self) -> bool {
        match self {
            Self::Python(it) => it.is_readable(),
            Self::Php(it) => it.is_readable(),
            Self::Ruby(it) => it.is_readable(),
        }
    }

    /// Whether its evaluation loop is at this address.
    pub fn evaluates_at(&self, address: u64) -> bool {
        match self {
            Self::Python(it) => it.evaluates_at(address),
            Self::Php(it) => it.evaluates_at(address),
            Self::Ruby(it) => it.evaluates_at(address),
        }
    }
}
