//! Machine code, for disassemblers.

use std::path::PathBuf;

use prof_model::{ElfAddress, FileOffset};

use crate::status::ModuleStatus;

/// The machine code of one function, from the file that ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Code {
    /// Its offset in the file.
    pub offset: FileOffset,
    /// Its address by the file's own tables: the one that disassemblers print.
    pub address: ElfAddress,
    /// All of it, or the first mebibyte.
    pub bytes: Vec<u8>,
    /// How many more bytes it has.
    pub left_out: u64,
    /// Its architecture.
    pub machine: Machine,
}

/// The instruction set of machine code.
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

/// Why machine code is unavailable.
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
        /// The problem.
        reason: String,
    },
    /// No symbol says where the function begins and ends.
    #[error("no symbol says where the function begins and ends")]
    NoSymbol,
    /// Code that was made at run time, of which only names were kept.
    #[error(
        "of code that was made at run time, {} has the names only; a jitdump has the code, too \
         (node --perf-prof --no-logfile-per-isolate --logfile=+)",
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

impl Code {
    /// In bytes. Hardly a function is longer; a damaged symbol may be.
    pub(crate) const LONGEST: u64 = 1 << 20;
}

impl Machine {
    /// The kernel's.
    pub(crate) fn of_this_machine() -> Self {
        match std::env::consts::ARCH {
            "x86_64" => Self::X86(64),
            "aarch64" => Self::Aarch64,
            _ => Self::Other,
        }
    }
}
