//! Finds the machine code of functions.

use std::ops::Range;

use object::{Architecture, Object, ObjectSection};
use prof_model::{ElfAddress, FileOffset, Module, Pid};

use crate::code::{Code, CodeError, Machine};
use crate::image::Image;
use crate::jit;
use crate::symbolizer::Symbolizer;
use crate::table::SymbolTable;

impl Symbolizer {
    /// The functions that hold these places in the file of `module`, each once, by address. Those
    /// that can't be had are left out.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn code(&self, module: &Module, offsets: &[FileOffset]) -> Result<Vec<Code>, CodeError> {
        let files = self.files_from_anywhere(module).map_err(CodeError::File)?;
        let images = files.images().map_err(CodeError::File)?;
        let places = offsets.iter().filter_map(|&offset| {
            let ElfAddress(address) = images.main.address_of(offset)?;
            Some((address, offset))
        });
        let mut places: Vec<(u64, FileOffset)> = places.collect();
        places.sort_unstable();
        let addresses: Vec<u64> = places.iter().map(|&(address, _)| address).collect();
        let table = SymbolTable::of_images(images.with_symbols(), &addresses);
        let mut ranges: Vec<(Range<u64>, FileOffset)> = Vec::new();
        for (address, offset) in places {
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

    /// The kernel's functions that hold these recorded addresses, which their offsets are, too: as
    /// they are in memory (`/proc/kcore`, for root), each once, by address.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn kernel_code(&self, addresses: &[u64]) -> Result<Vec<Code>, CodeError> {
        self.kernel.code(addresses, &self.options)
    }

    /// The functions that a process made at run time which hold these addresses, which their
    /// offsets are, too: as its jitdump has them, each once, by address.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn jit_code(&self, pid: Pid, addresses: &[u64]) -> Result<Vec<Code>, CodeError> {
        jit::code(pid, addresses, self.places.as_ref(), &self.options)
    }
}

fn code(image: &Image<'_>, range: Range<u64>, offset: FileOffset) -> Option<Code> {
    let whole = range.end - range.start;
    let size = whole.min(Code::LONGEST);
    let object = image.object();
    let bytes = object
        .sections()
        .find_map(|section| section.data_range(range.start, size).ok().flatten())?;
    Some(Code {
        offset,
        address: ElfAddress(range.start),
        bytes: bytes.to_vec(),
        left_out: whole - size,
        machine: match object.architecture() {
            Architecture::X86_64 => Machine::X86(64),
            Architecture::I386 => Machine::X86(32),
            Architecture::Aarch64 => Machine::Aarch64,
            _ => Machine::Other,
        },
    })
}
