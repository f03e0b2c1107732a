//! The interpreter in a process, of any language that is read.

use std::fs::File;

use prof_model::InterpretedLanguage;
use prof_runtimes::{Memory, php, python};

/// A file that contains an interpreter.
#[derive(Debug)]
pub(crate) enum Library {
    Python(python::Library),
    Php(php::Library),
}

/// An interpreter in a process.
#[derive(Debug)]
pub(crate) enum Interpreter {
    Python(python::Interpreter),
    Php(php::Interpreter),
}

impl Library {
    /// Whether a file of this name may contain one.
    pub(crate) fn is_named(name: &str) -> bool {
        python::Library::is_named(name) || php::Library::is_named(name)
    }

    /// Reads a file; `None` if it contains no interpreter.
    pub(crate) fn read(file: File) -> Option<Self> {
        let python = file.try_clone().ok().and_then(python::Library::read);
        match python {
            Some(python) => Some(Self::Python(python)),
            None => php::Library::read(file).map(Self::Php),
        }
    }

    /// The interpreter of a process that has the file's bytes from `offset` on mapped at `start`.
    pub(crate) fn at(
        &self,
        start: u64,
        offset: u64,
        memory: &mut impl Memory,
    ) -> Option<Interpreter> {
        match self {
            Self::Python(it) => it.at(start, offset, memory).map(Interpreter::Python),
            Self::Php(it) => it.at(start, offset).map(Interpreter::Php),
        }
    }
}

impl Interpreter {
    /// The language that it runs.
    pub(crate) fn language(&self) -> InterpretedLanguage {
        match self {
            Self::Python(_) => InterpretedLanguage::Python,
            Self::Php(_) => InterpretedLanguage::Php,
        }
    }

    /// Whether its frames can be read.
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Self::Python(it) => it.is_readable(),
            Self::Php(it) => it.is_readable(),
        }
    }

    /// Whether its evaluation loop is at this address.
    pub(crate) fn evaluates_at(&self, address: u64) -> bool {
        match self {
            Self::Python(it) => it.evaluates_at(address),
            Self::Php(it) => it.evaluates_at(address),
        }
    }
}
