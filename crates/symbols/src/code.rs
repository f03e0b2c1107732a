//! The machine code of functions, for disassemblers.

use std::ops::Range;

use object::{Architecture, Object, ObjectSection};
use prof_model::{ElfAddress, FileOffset, Module};

use crate::image::Image;
use crate::status::ModuleStatus;
use crate::symbolizer::Symbolizer;
use crate::table::SymbolTable;

/// The machine code of one function, from the file that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Where it is in the file.
    pub offset: FileOffset,
    /// Where it is by the file's own tables: what disassemblers print.
    pub address: ElfAddress,
    /// All of it, or the first mebibyte.
    pub bytes: Vec<u8>,
    /// What it is for.
    pub machine: Machine,
}

/// What machine code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// x86, of so many bits.
    X86(u32),
    /// Another one.
    Other,
}

/// Why there is no machine code to be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CodeError {
    /// The module's file is not there, or not the one that ran.
    #[error("{0}")]
    File(ModuleStatus),
    /// No symbol says where the function begins and ends.
    #[error("no symbol says where the function begins and ends")]
    NoSymbol,
    /// The file has the function's place but not its bytes: debug files are like that.
    #[error("the file that was found holds no code")]
    NoBytes,
}

impl Symbolizer {
    /// The functions that hold these places in the file of `module`, each once, by address. Those
    /// that can't be had are left out.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn code(&self, module: &Module, offsets: &[FileOffset]) -> Result<Vec<Code>, CodeError> {
        let files = self.files(module).map_err(CodeError::File)?;
        let images = files.images().map_err(CodeError::File)?;
        let table = SymbolTable::of_images(images.with_symbols());
        let mut ranges: Vec<(Range<u64>, FileOffset)> = Vec::new();
        for &offset in offsets {
            let Some(ElfAddress(address)) = images.main.address_of(offset) else {
                continue;
            };
            if ranges.iter().any(|(range, _)| range.contains(&address)) {
                continue;
            }
            if let Some(range) = table.range(address) {
                let start = offset.0.wrapping_sub(address.wrapping_sub(range.start));
                ranges.push((range, FileOffset(start)));
            }
        }
        if ranges.is_empty() {
            return Err(CodeError::NoSymbol);
        }
        ranges.sort_by_key(|(range, _)| range.start);
        let code = |(range, offset)| code(&images.main, range, offset);
        let codes: Vec<Code> = ranges.into_iter().filter_map(code).collect();
        match codes.is_empty() {
            true => Err(CodeError::NoBytes),
            false => Ok(codes),
        }
    }
}

fn code(image: &Image<'_>, range: Range<u64>, offset: FileOffset) -> Option<Code> {
    /// Hardly a function is longer; a damaged symbol may be.
    const LONGEST: u64 = 1 << 20;
    let size = (range.end - range.start).min(LONGEST);
    let object = image.object();
    let bytes = object
        .sections()
        .find_map(|section| section.data_range(range.start, size).ok().flatten())?;
    Some(Code {
        offset,
        address: ElfAddress(range.start),
        bytes: bytes.to_vec(),
        machine: match object.architecture() {
            Architecture::X86_64 => Machine::X86(64),
            Architecture::I386 => Machine::X86(32),
            _ => Machine::Other,
        },
    })
}
