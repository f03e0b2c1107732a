//! The three address spaces a profiler confuses at its peril, one type each.
//!
//! ```text
//!   AbsoluteAddress   where the code ran in a process           0x7f21_4c03_51a0
//!        │  - mapping.start + mapping.file_offset  (Mapping::file_offset_of)
//!        ▼
//!   FileOffset        the same byte in the mapped file               0x3_51a0
//!        │  - segment.p_offset + segment.p_vaddr  (whoever parsed the ELF file)
//!        ▼
//!   ElfAddress        the address the file's tables speak of         0x3_61a0
//! ```

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! address_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(pub u64);

        impl $name {
            /// The address `bytes` further up, or `None` past the end of the space.
            pub fn checked_add(self, bytes: u64) -> Option<Self> {
                self.0.checked_add(bytes).map(Self)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:#x})"), self.0)
            }
        }

        impl fmt::LowerHex for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::LowerHex::fmt(&self.0, f)
            }
        }
    };
}

address_type! {
    /// A virtual address in a process (or in the kernel) while it ran.
    AbsoluteAddress
}
address_type! {
    /// An address as an ELF file states it (`p_vaddr`, `st_value`, DWARF's addresses).
    ElfAddress
}
address_type! {
    /// A position in a file, in bytes from its start.
    FileOffset
}

/// Where a frame's code is, and whether the address is that of the instruction or of the one
/// after a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrameAddress {
    /// The instruction that was about to run: a sample's own address, or one that a signal
    /// interrupted.
    Instruction(AbsoluteAddress),
    /// The address a call returns to. Users want the call itself named.
    Return(AbsoluteAddress),
}

impl FrameAddress {
    /// The address to look up in tables: inside the instruction that ran or called.
    pub fn lookup(self) -> AbsoluteAddress {
        match self {
            Self::Instruction(address) => address,
            Self::Return(address) => AbsoluteAddress(address.0.wrapping_sub(1)),
        }
    }
}
