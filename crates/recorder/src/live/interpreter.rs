//! The interpreter in a process, of any language that is read.

use std::fs::File;

use prof_model::InterpretedLanguage;
use prof_runtimes::{Memory, php, python, ruby};

/// A file that contains an interpreter.
#[derive(Debug)]
pub(crate) enum Library {
    Python(python::Library),
    Php(php::Library),
    Ruby(ruby::Library),
}

/// An interpreter in a process.
#[derive(Debug)]
pub(crate) enum Interpreter {
    Python(python::Interpreter),
    Php(php::Interpreter),
    Ruby(ruby::Interpreter),
}

impl Library {
    /// Whether a file of this name may contain one.
    pub(crate) fn is_named(name: &str) -> bool {
        python::Library::is_named(name)
            || php::Library::is_named(name)
            || ruby::Library::is_named(name)
    }

    /// Reads a file; `None` if it contains no interpreter.
    pub(crate) fn read(file: File) -> Option<Self> {
        let again = || file.try_clone().ok();
        let python = again().and_then(python::Library::read);
        let php = || again().and_then(php::Library::read);
        let ruby = || again().and_then(ruby::Library::read);
        python
            .map(Self::Python)
            .or_else(|| php().map(Self::Php))
            .or_else(|| ruby().map(Self::Ruby))
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
            Self::Ruby(it) => it.at(start, offset).map(Interpreter::Ruby),
        }
    }
}

impl Interpreter {
    /// The language that it runs.
    pub(crate) fn language(&self) -> InterpretedLanguage {
        match self {
            Self::Python(_) => InterpretedLanguage::Python,
            Self::Php(_) => InterpretedLanguage::Php,
            Self::Ruby(_) => InterpretedLanguage::Ruby,
        }
    }

    /// Whether its frames can be read.
    pub(crate) fn is_readable(&self) -> bool {
        match self {
            Self::Python(it) => it.is_readable(),
            Self::Php(it) => it.is_readable(),
            Self::Ruby(it) => it.is_readable(),
        }
    }

    /// Whether its evaluation loop is at this address.
    pub(crate) fn evaluates_at(&self, address: u64) -> bool {
        match self {
            Self::Python(it) => it.evaluates_at(address),
            Self::Php(it) => it.evaluates_at(address),
            Self::Ruby(it) => it.evaluates_at(address),
        }
    }
}
