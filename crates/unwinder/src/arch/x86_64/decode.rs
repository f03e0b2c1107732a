//! Instruction lengths, and just enough operands to follow the stack pointer.
//!
//! Source: Intel's Software Developer's Manual, volume 2, chapter 2 and appendix A.

/// One instruction.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its size in bytes.
    pub(super) length: u8,
    /// Opcode map: 0 is the one-byte map, 1 is 0F, 2 is 0F 38, 3 is 0F 3A.
    pub(super) map: u8,
    pub(super) opcode: u8,
    /// Encoded with VEX or EVEX: works on vector (or some general) registers.
    pub(super) vector: bool,
    /// REX.W: 64-bit operands.
    pub(super) wide: bool,
    /// The ModRM byte's three fields, extended by REX.
    pub(super) mode: u8,
    pub(super) register: u8,
    pub(super) rm: u8,
    /// Whether there is a ModRM byte.
    pub(super) has_modrm: bool,
    /// The memory operand is base register + displacement and no more.
    pub(super) base: Option<u8>,
    pub(super) displacement: i32,
    pub(super) immediate: i64,
    /// The low three bits of the opcode, extended by REX: the register of push, pop, mov imm.
    pub(super) opcode_register: u8,
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// A little-endian number of 0, 1, 2, 4 or 8 bytes, sign-extended.
    fn number(&mut self, size: u8) -> Option<i64> {
        let mut value = 0_i64;
        for at in 0..u32::from(size) {
            value |= i64::from(self.byte()?) << (8 * at);
        }
        let unused = 64 - 8 * u32::from(size.clamp(1, 8));
        Some(value << unused >> unused)
    }
}

/// The instruction that these bytes start with; `None` if they are none, or too few.
pub(super) fn decode(bytes: &[u8]) -> Option<Instruction> {
    const LONGEST: usize = 15;
    let bytes = bytes.get(..bytes.len().min(LONGEST))?;
    let mut reader = Reader { bytes, at: 0 };
    let mut instruction = Instruction::default();
    let (mut half, mut rex) = (false, 0_u8);
    let opcode = loop {
        match reader.byte()? {
            0x66 => half = true,
            0x26 | 0x2e | 0x36 | 0x3e | 0x64 | 0x65 | 0x67 | 0xf0 | 0xf2 | 0xf3 => {}
            byte @ 0x40..=0x4f => {
                rex = byte;
                // Only right before the opcode does REX count.
                if !is_prefix(*reader.bytes.get(reader.at)?) {
                    break reader.byte()?;
                }
                rex = 0;
            }
            byte => break byte,
        }
    };
    let opcode = instruction.read_opcode(opcode, &mut rex, &mut reader)?;
    instruction.opcode = opcode;
    instruction.wide = rex & 8 != 0;
    instruction.opcode_register = opcode & 7 | (rex & 1) << 3;
    if has_modrm(&instruction) {
        instruction.read_modrm(rex, &mut reader)?;
    }
    let size = immediate_size(&instruction, half)?;
    instruction.immediate = if opcode == 0xc8 && instruction.map == 0 {
        reader.number(2)?;
        reader.number(1)?
    } else {
        reader.number(size)?
    };
    instruction.length = reader.at as u8;
    Some(instruction)
}

fn is_prefix(byte: u8) -> bool {
    matches!(
        byte,
        0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3
    )
}

impl Instruction {
    /// Follows escapes to other opcode maps, VEX and EVEX.
    fn read_opcode(&mut self, first: u8, rex: &mut u8, reader: &mut Reader<'_>) -> Option<u8> {
        match first {
            0x0f => {
                let (map, opcode) = match reader.byte()? {
                    0x38 => (2, reader.byte()?),
                    0x3a => (3, reader.byte()?),
                    second => (1, second),
                };
                self.map = map;
                Some(opcode)
            }
            0xc5 => {
                *rex = vex_rex(reader.byte()? | 0x60, 0);
                (self.vector, self.map) = (true, 1);
                reader.byte()
            }
            0xc4 => {
                let (one, two) = (reader.byte()?, reader.byte()?);
                *rex = vex_rex(one, two);
                (self.vector, self.map) = (true, one & 0x1f);
                reader.byte()
            }
            0x62 => {
                let (one, two, _) = (reader.byte()?, reader.byte()?, reader.byte()?);
                *rex = vex_rex(one, two);
                (self.vector, self.map) = (true, one & 7);
                reader.byte()
            }
            _ => Some(first),
        }
    }

    fn read_modrm(&mut self, rex: u8, reader: &mut Reader<'_>) -> Option<()> {
        let modrm = reader.byte()?;
        self.has_modrm = true;
        self.mode = modrm >> 6;
        self.register = modrm >> 3 & 7 | (rex & 4) << 1;
        self.rm = modrm & 7 | (rex & 1) << 3;
        if self.mode == 3 {
            return Some(());
        }
        let mut base = Some(self.rm);
        let mut displacement = [0, 1, 4][usize::from(self.mode)];
        if modrm & 7 == 4 {
            let sib = reader.byte()?;
            let index = sib >> 3 & 7 | (rex & 2) << 2;
            base = (index == 4).then_some(sib & 7 | (rex & 1) << 3);
            if sib & 7 == 5 && self.mode == 0 {
                (base, displacement) = (None, 4);
            }
        } else if modrm & 7 == 5 && self.mode == 0 {
            // Relative to the instruction pointer.
            (base, displacement) = (None, 4);
        }
        self.base = base;
        self.displacement = reader.number(displacement)? as i32;
        Some(())
    }
}

/// VEX and EVEX have REX's bits inverted: R, X, B in one byte, W in the next.
fn vex_rex(one: u8, two: u8) -> u8 {
    (two & 0x80) >> 4 | (!one & 0xe0) >> 5
}

fn has_modrm(instruction: &Instruction) -> bool {
    let opcode = instruction.opcode;
    match (instruction.map, instruction.vector) {
        (0, _) => match opcode {
            0x00..=0x3f => opcode & 7 < 4,
            0x63 | 0x69 | 0x6b | 0x80..=0x8f | 0xc0 | 0xc1 | 0xc6 | 0xc7 => true,
            0xd0..=0xd3 | 0xd8..=0xdf | 0xf6 | 0xf7 | 0xfe | 0xff => true,
            _ => false,
        },
        (1, true) => opcode != 0x77,
        (1, false) => !matches!(
            opcode,
            0x05..=0x09 | 0x0b | 0x0e | 0x30..=0x37 | 0x77 | 0x80..=0x8f | 0xa0..=0xa2
                | 0xa8..=0xaa | 0xc8..=0xcf
        ),
        _ => true,
    }
}

/// The size of the immediate operand in bytes; `None` for opcodes that there are not.
fn immediate_size(instruction: &Instruction, half: bool) -> Option<u8> {
    let full = if half && !instruction.wide { 2 } else { 4 };
    let opcode = instruction.opcode;
    Some(match (instruction.map, instruction.vector) {
        (0, _) => match opcode {
            0x00..=0x3f => match opcode & 7 {
                4 => 1,
                5 => full,
                6 | 7 => return None,
                _ => 0,
            },
            0x60..=0x62 | 0x82 | 0x9a | 0xc4 | 0xc5 | 0xce | 0xd4..=0xd6 | 0xea => return None,
            0x68 | 0x69 | 0x81 | 0xa9 | 0xc7 => full,
            0x6a | 0x6b | 0x70..=0x80 | 0x83 | 0xa8 | 0xb0..=0xb7 | 0xc0 | 0xc1 | 0xc6 => 1,
            0xa0..=0xa3 => 8,
            0xb8..=0xbf if instruction.wide => 8,
            0xb8..=0xbf => full,
            0xc2 | 0xca => 2,
            0xcd | 0xe0..=0xe7 | 0xeb => 1,
            0xe8 | 0xe9 => 4,
            0xf6 if instruction.register & 7 < 2 => 1,
            0xf7 if instruction.register & 7 < 2 => full,
            _ => 0,
        },
        (1, vector) => match opcode {
            0x80..=0x8f if !vector => 4,
            0x0f | 0x70..=0x73 | 0xa4 | 0xac | 0xba | 0xc2 | 0xc4..=0xc6 => 1,
            _ => 0,
        },
        (3, _) => 1,
        (2, _) | (5 | 6, true) => 0,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(bytes: &[u8], expected: Instruction) {
        assert_eq!(decode(bytes), Some(expected), "{bytes:02x?}");
    }

    #[test]
    fn operands() {
        let instruction = Instruction::default();
        // push %r12
        check(
            &[0x41, 0x54],
            Instruction {
                length: 2,
                opcode: 0x54,
                opcode_register: 12,
                ..instruction
            },
        );
        // mov 96(%rsp), %r11
        check(
            &[0x4c, 0x8b, 0x5c, 0x24, 0x60],
            Instruction {
                length: 5,
                opcode: 0x8b,
                opcode_register: 3,
                wide: true,
                has_modrm: true,
                mode: 1,
                register: 11,
                rm: 4,
                base: Some(4),
                displacement: 96,
                ..instruction
            },
        );
        // sub $-128, %rsp
        check(
            &[0x48, 0x83, 0xec, 0x80],
            Instruction {
                length: 4,
                opcode: 0x83,
                opcode_register: 3,
                wide: true,
                has_modrm: true,
                mode: 3,
                register: 5,
                rm: 4,
                immediate: -128,
                ..instruction
            },
        );
    }

    #[test]
    fn lengths_are_those_of_objdump() {
        for file in ["/lib/x86_64-linux-gnu/libc.so.6", "/usr/bin/gdb"] {
            let objdump = std::process::Command::new("objdump")
                .args(["-d", "-w", "--insn-width=16", file])
                .output()
                .unwrap();
            let text = String::from_utf8_lossy(&objdump.stdout);
            let (mut count, mut wrong) = (0, Vec::new());
            for line in text.lines() {
                let mut fields = line.split('\t');
                let (Some(_), Some(bytes), Some(name)) =
                    (fields.next(), fields.next(), fields.next())
                else {
                    continue;
                };
                let byte = |text| u8::from_str_radix(text, 16).unwrap();
                let bytes: Vec<u8> = bytes.split_whitespace().map(byte).collect();
                let no_instruction = name.contains("(bad)") || name.starts_with(".byte");
                // objdump shows lone prefixes as instructions of their own.
                if no_instruction || bytes.iter().all(|&byte| is_prefix(byte)) {
                    continue;
                }
                count += 1;
                if decode(&bytes).map(|i| usize::from(i.length)) != Some(bytes.len()) {
                    wrong.push(line.to_owned());
                }
            }
            assert!(count > 100_000 || !std::path::Path::new(file).exists());
            assert!(
                wrong.is_empty(),
                "{file}: {} of {count}: {:#?}",
                wrong.len(),
                &wrong[..wrong.len().min(20)]
            );
        }
    }
}
