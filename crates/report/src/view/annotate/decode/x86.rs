//! x86.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter, IntelFormatter};
use prof_symbols::Code;

use super::{Decoded, Syntax, decoded};

/// All instructions of `code`, which is for machines of this many bits.
pub(super) fn decode(code: &Code, bits: u32, syntax: Syntax) -> Vec<Decoded> {
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
    let mut all = Vec::new();
    while decoder.can_decode() {
        let instruction = decoder.decode();
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        let inside = instruction.ip().wrapping_sub(start);
        all.push(decoded(code, inside, instruction.len(), text));
    }
    all
}
