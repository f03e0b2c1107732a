//! Where functions end whose symbols have no size: assembly, the start files of a program.
//!
//! The next symbol alone is no end: in stripped files it may be hundreds of KiB away, with
//! functions between whose symbols are gone.
//!
//! ```text
//!   in an unwind table     f ├──────── FDE ────────┤             the entry's end
//!   in none                g ─▶ jmp ▲ ─▶ ret │ nop nop │ h       where the code ends, at most
//!                               └───┘        └ end               at the next entry's start
//! ```

use std::ops::Range;

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use object::{Architecture, Object, ObjectSection};

use crate::image::Image;
use crate::table::fde::UnwindTables;

/// Finds the ends of functions in the code of one file.
pub(crate) struct CodeEnds<'a, 'data> {
    image: &'a Image<'data>,
    tables: UnwindTables<'data>,
}

impl<'a, 'data> CodeEnds<'a, 'data> {
    /// Of the file that ran: debug files have no code.
    pub(crate) fn of(image: &'a Image<'data>) -> Self {
        Self {
            image,
            tables: UnwindTables::of(image),
        }
    }

    /// Where the function ends that begins at `start`, at most `limit`.
    pub(crate) fn end(&self, start: u64, limit: u64) -> u64 {
        if let Some(entry) = self.tables.entry(start) {
            return entry.end.min(limit);
        }
        let limit = self
            .tables
            .next_start(start)
            .map_or(limit, |next| next.min(limit));
        let decode = match self.image.object().architecture() {
            Architecture::X86_64 => x86::<64>,
            Architecture::I386 => x86::<32>,
            Architecture::Aarch64 => aarch64,
            _ => return limit,
        };
        let Some(code) = self.code(start..limit) else {
            return limit;
        };
        start.saturating_add(code_end(code, start, decode) as u64)
    }

    fn code(&self, range: Range<u64>) -> Option<&'data [u8]> {
        let size = range.end.checked_sub(range.start)?.min(LONGEST);
        let mut sections = self.image.object().sections();
        sections.find_map(|section| section.data_range(range.start, size).ok().flatten())
    }
}

/// Longer functions end here, in bytes.
const LONGEST: u64 = 1 << 20;
/// Functions begin at multiples of this address, if there is space before them.
const ALIGNMENT: u64 = 16;
/// A conditional branch this far ahead is within its function, in bytes.
const BRANCH: u64 = 32 << 10;
/// So is a jump: those that lead farther are calls of other functions at the end of this one.
const JUMP: u64 = 1 << 10;

/// What an instruction does to the course of the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Flow {
    /// It goes on with the next one.
    On,
    /// Or at another address.
    Branch(u64),
    /// At another address.
    Jump(u64),
    /// Somewhere: a table of addresses, or another function.
    JumpByRegister,
    /// Out of the function.
    Leave,
    /// It does nothing, or traps, and fills the space between functions.
    Fill,
    /// It is none.
    Bad,
}

type Decode = fn(&[u8], u64) -> (usize, Flow);

/// How long the function is whose code begins here: up to where its code leaves it for the last
/// time.
fn code_end(code: &[u8], start: u64, decode: Decode) -> usize {
    let mut at = 0;
    // The highest address that the code so far leads to.
    let mut reached = start;
    let mut has_tables = false;
    while let Some(rest) = code.get(at..).filter(|rest| !rest.is_empty()) {
        let address = start.wrapping_add(at as u64);
        let (size, flow) = decode(rest, address);
        let next = address.wrapping_add(size as u64);
        let within = |target: u64, most| (next..next.saturating_add(most)).contains(&target);
        at += size;
        match flow {
            Flow::On | Flow::Fill => continue,
            Flow::Branch(target) => {
                if within(target, BRANCH) {
                    reached = reached.max(target);
                }
                continue;
            }
            Flow::Jump(target) if within(target, JUMP) => reached = reached.max(target),
            Flow::JumpByRegister => has_tables = true,
            Flow::Jump(_) | Flow::Leave => {}
            // Data, or code that does not belong to the start that is asked for.
            Flow::Bad => return at - size,
        }
        let after = code.get(at..).unwrap_or_default();
        if reached < next && (!has_tables || ends_aligned(after, next, decode)) {
            return at;
        }
    }
    code.len()
}

/// Whether only what fills space comes before the next place where functions begin.
fn ends_aligned(code: &[u8], address: u64, decode: Decode) -> bool {
    let mut at = 0;
    while !(address.wrapping_add(at as u64)).is_multiple_of(ALIGNMENT) {
        let rest = code.get(at..).unwrap_or_default();
        match decode(rest, address.wrapping_add(at as u64)) {
            (size @ 1.., Flow::Fill) => at += size,
            _ => return rest.is_empty(),
        }
    }
    true
}

fn x86<const BITS: u32>(code: &[u8], address: u64) -> (usize, Flow) {
    let mut decoder = Decoder::with_ip(BITS, code, address, DecoderOptions::NONE);
    let instruction = decoder.decode();
    let flow = match instruction.flow_control() {
        _ if instruction.is_invalid() => return (1, Flow::Bad),
        FlowControl::ConditionalBranch | FlowControl::XbeginXabortXend => {
            Flow::Branch(instruction.near_branch_target())
        }
        FlowControl::UnconditionalBranch => Flow::Jump(instruction.near_branch_target()),
        FlowControl::IndirectBranch => Flow::JumpByRegister,
        FlowControl::Return | FlowControl::Exception => Flow::Leave,
        FlowControl::Interrupt if is_trap(&instruction) => Flow::Leave,
        _ if is_filler(&instruction) => Flow::Fill,
        _ => Flow::On,
    };
    (instruction.len(), flow)
}

fn is_trap(instruction: &Instruction) -> bool {
    instruction.mnemonic() == iced_x86::Mnemonic::Int3
}

/// Assemblers fill with `nop` in all its lengths.
fn is_filler(instruction: &Instruction) -> bool {
    instruction.mnemonic() == iced_x86::Mnemonic::Nop
}

fn aarch64(code: &[u8], address: u64) -> (usize, Flow) {
    let Some(word) = code.first_chunk() else {
        return (code.len(), Flow::Bad);
    };
    let word = u32::from_le_bytes(*word);
    // A signed number of words, `bits` wide, whose lowest bit is at `from`.
    let target = |from: u32, bits: u32| {
        let words = ((word << (32 - bits - from)) as i32) >> (32 - bits);
        address.wrapping_add_signed(4 * i64::from(words))
    };
    let flow = match word {
        0xd503_201f => Flow::Fill,
        _ if word & 0xfc00_0000 == 0x1400_0000 => Flow::Jump(target(0, 26)),
        // B.cond and BC.cond, CBZ and CBNZ, TBZ and TBNZ.
        _ if word & 0xff00_0000 == 0x5400_0000 || word & 0x7e00_0000 == 0x3400_0000 => {
            Flow::Branch(target(5, 19))
        }
        _ if word & 0x7e00_0000 == 0x3600_0000 => Flow::Branch(target(5, 14)),
        // RET, RETAA, RETAB; BR, BRAA, BRAB.
        _ if word & 0xffff_f800 == 0xd65f_0000 => Flow::Leave,
        _ if word & 0xfeff_f800 == 0xd61f_0000 => Flow::JumpByRegister,
        // BRK, UDF.
        _ if word & 0xffe0_001f == 0xd420_0000 || word < 0x1_0000 => Flow::Leave,
        _ => Flow::On,
    };
    (4, flow)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], expected: usize) {
        assert_eq!(code_end(code, 0x1000, x86::<64>), expected);
    }

    #[test]
    fn a_function_ends_where_no_branch_leads_on() {
        check(&[0x90, 0xc3, 0x90, 0xc3], 2);
        // je +1; ret; ret; and another function.
        check(&[0x74, 1, 0xc3, 0xc3, 0xc3], 4);
        // jmp +1 into a loop; nop; jne -3; ret.
        check(&[0xeb, 1, 0x90, 0x75, 0xfd, 0xc3, 0xc3], 6);
        // A jump far ahead is a call at the end.
        check(&[0xe9, 0, 0x10, 0, 0, 0xc3], 5);
        check(&[0x0f, 0x0b, 0x90], 2);
        check(&[0x90, 0x90], 2);
        check(&[], 0);
    }

    #[test]
    fn what_is_no_code_is_no_part_of_a_function() {
        check(&[0x90, 0x06, 0xc3], 1);
        check(&[0x90, 0x0f], 1);
    }

    /// `jmp *%rax` may lead to all that follows, up to where another function can begin.
    #[test]
    fn after_a_table_of_addresses_a_function_ends_at_a_gap() {
        let mut code = vec![0xff, 0xe0, 0xc3, 0xc3];
        code.resize(16, 0x90);
        code.push(0xc3);
        check(&code, 4);
        code.splice(2..4, [0x58, 0xc3]);
        check(&code, 4);
    }

    #[test]
    fn functions_of_aarch64_end_as_well() {
        let code = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let check = |words: &[u32], expected| {
            let code: Vec<u8> = code(words);
            assert_eq!(code_end(&code, 0x1000, aarch64), expected);
        };
        let (nop, ret) = (0xd503_201f, 0xd65f_03c0);
        check(&[nop, ret, nop, ret], 8);
        // cbz x0, +8; ret; ret.
        check(&[0xb400_0040, ret, ret, ret], 12);
        // b.ne -4; b far ahead.
        check(&[nop, 0x54ff_ffe1, 0x1400_4000, ret], 12);
        // tbz w0, #0, +8.
        check(&[0x3600_0040, ret, ret, ret], 12);
        check(&[0xd420_0000, nop], 4);
    }
}
