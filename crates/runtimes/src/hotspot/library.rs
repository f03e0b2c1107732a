//! The tables of libjvm.so.

use std::fs::File;

use object::ReadCache;
use prof_model::Account;

use super::HotSpot;
use crate::Memory;
use crate::elf::{Elf, ReadError, Segments};

/// The file that contains the virtual machine.
#[derive(Clone, Debug)]
pub struct Library {
    /// The addresses of its tables' symbols in the file's own address space.
    symbols: Vec<(String, u64)>,
    segments: Segments,
}

impl Library {
    const PREFIX: &str = "gHotSpotVM";
    /// The most symbols; there are 23.
    const SYMBOLS: usize = 256;

    /// Whether a file of this name may be libjvm.so.
    pub fn is_named(name: &str) -> bool {
        name == "libjvm.so"
    }

    /// Reads the tables of `file`, at most so many bytes, and returns how many they have.
    ///
    /// # Errors
    ///
    /// It is not HotSpot for this processor, or its tables are larger.
    pub fn read(file: File, most: u64) -> Result<(Self, u64), ReadError> {
        let cache = ReadCache::new(file);
        let (elf, bytes) = Elf::parse_within(&cache, most)?;
        let library = Self::of(&elf).ok_or(ReadError::None)?;
        Ok((library, bytes))
    }

    fn of(elf: &Elf<'_>) -> Option<Self> {
        elf.has_known_frames().then_some(())?;
        let mut symbols = Vec::new();
        elf.symbols(|name, range| {
            let name = str::from_utf8(name).ok();
            let table = name.filter(|it| it.starts_with(Self::PREFIX) && range.start != 0);
            let table = table.filter(|_| symbols.len() < Self::SYMBOLS);
            symbols.extend(table.map(|name| (name.to_owned(), range.start)));
        });
        (!symbols.is_empty()).then(|| Self {
            symbols,
            segments: elf.mapped(),
        })
    }

    /// The virtual machine of a process that has the file's bytes from `file_offset` on mapped at
    /// `start`; `None` if its tables lack something, perhaps because it has just started.
    pub fn at(
        &self,
        start: u64,
        file_offset: u64,
        memory: &mut impl Memory,
        account: &Account,
    ) -> Option<HotSpot> {
        let bias = self.segments.bias(start, file_offset)?;
        let symbols = self.symbols.iter();
        let symbols = symbols.map(|(name, at)| (&**name, at.wrapping_add(bias)));
        HotSpot::new(&symbols.collect::<Vec<_>>(), memory, account)
    }
}
