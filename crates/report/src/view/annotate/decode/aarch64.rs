//! 64-bit ARM.

use prof_symbols::Code;
use yaxpeax_arch::{Decoder, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Instruction, Opcode, Operand};

use super::{Decoded, decoded};

/// All instructions of `code`, four bytes each, in either byte order of data.
pub(super) fn decode(code: &Code) -> Vec<Decoded> {
    let (words, _) = code.bytes.as_chunks::<4>();
    let all = (0..).step_by(4).zip(words).map(|(inside, word)| {
        let text = match InstDecoder::default().decode(&mut U8Reader::new(word)) {
            Ok(instruction) => text(&instruction, code.address.0.wrapping_add(inside)),
            Err(_) => format!(".inst  {:#010x}", u32::from_le_bytes(*word)),
        };
        decoded(code, inside, word.len(), text)
    });
    all.collect()
}

/// An instruction at this address.
fn text(instruction: &Instruction, address: u64) -> String {
    let text = instruction.to_string();
    let (name, operands) = text.split_once(' ').unwrap_or((&text, ""));
    let mut operands = operands.to_owned();
    let distances = instruction
        .operands
        .iter()
        .filter_map(|operand| match operand {
            Operand::PCOffset(distance) => Some(*distance),
            _ => None,
        });
    for distance in distances {
        let from = match instruction.opcode {
            Opcode::ADRP => address & !0xfff,
            _ => address,
        };
        let relative = match distance {
            0.. => format!("$+{distance:#x}"),
            _ => format!("$-{:#x}", distance.unsigned_abs()),
        };
        let target = format!("{:#x}", from.wrapping_add_signed(distance));
        operands = operands.replacen(&relative, &target, 1);
    }
    match operands.is_empty() {
        true => name.to_owned(),
        false => format!("{name:<6} {operands}"),
    }
}
