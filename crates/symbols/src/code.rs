//! The machine code of functions, for disassemblers.

use std::ops::Range;
use std::path::PathBuf;

use object::{Architecture, Object, ObjectSection};
use prof_model::{ElfAddress, FileOffset, Module, Pid};

use crate::image::Image;
use crate::jit;
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
    /// How many more bytes it has.
    pub left_out: u64,
    /// What it is for.
    pub machine: Machine,
}

/// What machine code is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Machine {
    /// x86, of so many bits.
    X86(u32),
    /// 64-bit ARM.
    Aarch64,
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
    /// The kernel's memory can't be read.
    #[error(
        "the kernel's code cannot be read: {}: {reason} (root can, where the kernel has that file)",
        path.display()
    )]
    KernelMemory {
        /// `/proc/kcore`.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// No symbol says where the function begins and ends.
    #[error("no symbol says where the function begins and ends")]
    NoSymbol,
    /// Code that was made at run time, of which only names were kept.
    #[error(
        "of code that was made at run time, {} has the names only; a jitdump has the code, too \
         (node --perf-prof)",
        path.display()
    )]
    NoJitDump {
        /// The perf map.
        path: PathBuf,
    },
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
        let files = self.files_from_anywhere(module).map_err(CodeError::File)?;
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

    /// The kernel's functions that hold these recorded addresses, which their offsets are, too: as
    /// they are in memory (`/proc/kcore`, for root), each once, by address.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn kernel_code(&self, addresses: &[u64]) -> Result<Vec<Code>, CodeError> {
        self.kernel.code(addresses, &self.options)
    }

    /// The functions that a process made at run time which hold these addresses, which their offsets
    /// are, too: as its jitdump has them, each once, by address.
    ///
    /// # Errors
    /// [`CodeError`] if none can be had.
    pub fn jit_code(&self, pid: Pid, addresses: &[u64]) -> Result<Vec<Code>, CodeError> {
        jit::code(pid, addresses, self.places.as_ref(), &self.options)
    }
}

impl Code {
    /// In bytes. Hardly a function is longer; a damaged symbol may be.
    pub(crate) const LONGEST: u64 = 1 << 20;
}

impl Machine {
    /// What the kernel's code is for.
    pub(crate) fn of_this_machine() -> Self {
        match std::env::consts::ARCH {
            "x86_64" => Self::X86(64),
            "aarch64" => Self::Aarch64,
            _ => Self::Other,
        }
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
