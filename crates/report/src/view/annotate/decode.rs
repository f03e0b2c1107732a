//! Machine code to text.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, IntelFormatter};
use prof_symbols::{Code, Machine};

/// How instructions are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Syntax {
    /// As GNU tools write them: `mov $1,%eax`.
    #[default]
    Att,
    /// As Intel writes them: `mov eax,1`.
    Intel,
}

/// An instruction without weights.
pub(super) struct Decoded {
    /// Where in the file it begins and ends.
    pub(super) offset: u64,
    pub(super) end: u64,
    pub(super) address: u64,
    pub(super) text: String,
}

/// All instructions of `code`, in order; none for machines that are not known.
pub(super) fn decode(code: &Code, syntax: Syntax) -> Vec<Decoded> {
    let Machine::X86(bits) = code.machine else {
        return Vec::new();
    };
    let mut formatter: Box<dyn Formatter> = match syntax {
        Syntax::Att => Box::new(GasFormatter::new()),
        Syntax::Intel => Box::new(IntelFormatter::new()),
    };
    let options = formatter.options_mut();
    options.set_first_operand_char_index(7);
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_space_after_operand_separator(false);
    options.set_branch_leading_zeros(false);
    options.set_rip_relative_addresses(false);
    let start = code.address.0;
    let mut decoder = Decoder::with_ip(bits, &code.bytes, start, DecoderOptions::NONE);
    let mut decoded = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let offset = code
            .offset
            .0
            .wrapping_add(instruction.ip().wrapping_sub(start));
        decoded.push(Decoded {
            offset,
            end: offset.saturating_add(instruction.len() as u64),
            address: instruction.ip(),
            text,
        });
    }
    decoded
}
