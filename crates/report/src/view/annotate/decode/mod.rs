//! Machine code to text.

mod aarch64;
mod x86;

use prof_symbols::{Code, Machine};

/// How instructions of x86 are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// GNU syntax: `mov $1,%eax`.
    #[default]
    Att,
    /// Intel syntax: `mov eax,1`.
    Intel,
}

/// An instruction without weights.
pub(super) struct Decoded {
    /// Its start in the file.
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) address: u64,
    pub(super) text: String,
}

/// All instructions of `code`, in order; `None` for machines that are not known.
pub(super) fn decode(code: &Code, syntax: Syntax) -> Option<Vec<Decoded>> {
    match code.machine {
        Machine::X86(bits) => Some(x86::decode(code, bits, syntax)),
        Machine::Aarch64 => Some(aarch64::decode(code)),
        _ => None,
    }
}

/// The instruction of this many bytes that begins at the byte `inside` the code.
fn decoded(code: &Code, inside: u64, size: usize, text: String) -> Decoded {
    let offset = code.offset.0.wrapping_add(inside);
    Decoded {
        offset,
        end: offset.saturating_add(size as u64),
        address: code.address.0.wrapping_add(inside),
        text,
    }
}
