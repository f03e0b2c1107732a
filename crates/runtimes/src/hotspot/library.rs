//! The tables of libjvm.so.

use std::fs::File;

use object::{Object, ObjectSymbol, ReadCache};

use super::HotSpot;
use crate::Memory;
use crate::elf::Segments;

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

    /// Reads the symbol table of `file`; `None` if it is not HotSpot for this processor.
    pub fn read(file: File) -> Option<Self> {
        let cache = ReadCache::new(file);
        let elf = object::File::parse(&cache).ok()?;
        if elf.architecture() != object::Architecture::X86_64 {
            return None;
        }
        let symbols = elf.dynamic_symbols().filter_map(|symbol| {
            let name = symbol.name().ok()?;
            let is_table = name.starts_with(Self::PREFIX) && symbol.is_definition();
            is_table.then(|| (name.to_owned(), symbol.address()))
        });
        let symbols: Vec<_> = symbols.take(Self::SYMBOLS).collect();
        (!symbols.is_empty()).then(|| Self {
            symbols,
            segments: Segments::of(&elf),
        })
    }

    /// The virtual machine of a process that has the file's bytes from `file_offset` on mapped at
    /// `start`; `None` if its tables lack something, perhaps because it has just started.
    pub fn at(&self, start: u64, file_offset: u64, memory: &mut impl Memory) -> Option<HotSpot> {
        let bias = self.segments.bias(start, file_offset)?;
        let symbols = self.symbols.iter();
        let symbols = symbols.map(|(name, at)| (&**name, at.wrapping_add(bias)));
        HotSpot::new(&symbols.collect::<Vec<_>>(), memory)
    }
}
