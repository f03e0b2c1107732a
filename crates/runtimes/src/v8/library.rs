//! The file that contains V8.

use std::fs::File;
use std::ops::Range;

use object::ReadCache;
use prof_model::Account;

use super::engine::{FileCode, V8};
use super::layout::{Constants, Layout};
use crate::elf::{Elf, ReadError};

/// The file that contains V8: Node's executable, or its library.
#[derive(Clone, Debug)]
pub struct Library {
    constants: Constants,
    code: FileCode,
}

impl Library {
    const CONSTANTS: &[u8] = b"v8dbg_";
    /// The most constants; there are 540.
    const MOST: usize = 4096;
    const BUILTINS: &[u8] = b"Builtins_";
    const INTERPRETER: &[u8] = b"InterpreterEntryTrampoline";

    /// Whether a file of this name may contain V8.
    pub fn is_named(name: &str) -> bool {
        matches!(name, "node" | "nodejs") || name.starts_with("libnode.so")
    }

    /// Reads the tables of `file`, at most so many bytes, and returns how many they have.
    ///
    /// # Errors
    ///
    /// It contains no V8 for this processor whose layout is known, or its tables are larger.
    pub fn read(file: File, most: u64) -> Result<(Self, u64), ReadError> {
        let cache = ReadCache::new(file);
        let (elf, bytes) = Elf::parse_within(&cache, most)?;
        let library = Self::of(&elf).ok_or(ReadError::None)?;
        Ok((library, bytes))
    }

    fn of(elf: &Elf<'_>) -> Option<Self> {
        elf.has_known_frames().then_some(())?;
        let (mut variables, mut interpreter) = (Vec::new(), None);
        let mut builtins: Option<Range<u64>> = None;
        elf.symbols(|name, range| {
            if let Some(name) = name.strip_prefix(Self::CONSTANTS) {
                let name = str::from_utf8(name).ok();
                let name = name.filter(|_| variables.len() < Self::MOST);
                variables.extend(name.map(|name| (name.to_owned(), range.start)));
            } else if let Some(name) = name.strip_prefix(Self::BUILTINS) {
                let all = builtins.get_or_insert(range.clone());
                *all = all.start.min(range.start)..all.end.max(range.end);
                if name == Self::INTERPRETER {
                    interpreter = Some(range);
                }
            }
        });
        let value = |address: u64| {
            let bytes = elf.at(address..address.checked_add(4)?)?;
            Some(i32::from_le_bytes(*bytes.first_chunk()?))
        };
        let constants = variables.into_iter();
        let constants = constants.filter_map(|(name, address)| Some((name, value(address)?)));
        let constants = constants.collect();
        Layout::new(&constants)?;
        let segments = elf.mapped();
        let in_file = |range: Range<u64>| segments.file_range(&range);
        Some(Self {
            constants,
            code: FileCode {
                builtins: builtins.and_then(in_file),
                interpreter: interpreter.and_then(in_file),
            },
        })
    }

    /// V8 in a process that has mapped the file.
    pub fn start(&self, account: &Account) -> Option<V8> {
        V8::new(&self.constants, self.code.clone(), account)
    }
}
