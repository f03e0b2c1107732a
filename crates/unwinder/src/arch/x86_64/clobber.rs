//! Which registers instructions change whose results are of no interest.

use super::RBX;
use super::decode::Instruction;
use super::state::{State, Value, machine};

impl State {
    /// Instructions whose result is of no interest, but which register it lands in is.
    pub(super) fn clobber(&mut self, i: &Instruction) {
        let in_register = i.mode == 3;
        let extension = i.register & 7;
        match i.opcode {
            0x00..=0x3f if i.has_modrm => match i.opcode & 7 {
                // cmp
                _ if i.opcode >= 0x38 => {}
                2 | 3 => self.set(i.register, Value::Unknown),
                _ if in_register => self.set(i.rm, Value::Unknown),
                _ => {}
            },
            0x63 | 0x69 | 0x6b | 0x8a | 0x8b | 0x8d => self.set(i.register, Value::Unknown),
            0x80..=0x83 if extension == 7 => {}
            0xf6 | 0xf7 if extension < 2 => {}
            0xf6 | 0xf7 if extension >= 4 => {
                self.set(machine::AX, Value::Unknown);
                self.set(machine::DX, Value::Unknown);
            }
            0x86 | 0x87 => {
                self.set(i.register, Value::Unknown);
                if in_register {
                    self.set(i.rm, Value::Unknown);
                }
            }
            0x80..=0x83
            | 0x88
            | 0x89
            | 0xc0
            | 0xc1
            | 0xc6
            | 0xc7
            | 0xd0..=0xd3
            | 0xf6
            | 0xf7
            | 0xfe
            | 0xff
                if in_register =>
            {
                self.set(i.rm, Value::Unknown);
            }
            0x91..=0x97 => {
                self.set(machine::AX, Value::Unknown);
                self.set(i.opcode_register, Value::Unknown);
            }
            0xb0..=0xbf => self.set(i.opcode_register, Value::Unknown),
            0x98 | 0xa0 | 0xa1 => self.set(machine::AX, Value::Unknown),
            0x99 => self.set(machine::DX, Value::Unknown),
            0xa4..=0xa7 | 0xaa..=0xaf => {
                for register in [machine::CX, machine::SI, machine::DI, machine::AX] {
                    self.set(register, Value::Unknown);
                }
            }
            _ => {}
        }
    }

    pub(super) fn clobber_extended(&mut self, i: &Instruction) {
        let in_register = i.mode == 3;
        match (i.map, i.opcode) {
            // syscall
            (1, 0x05) => {
                for register in [machine::AX, machine::CX, 11] {
                    self.set(register, Value::Unknown);
                }
            }
            (1, 0x40..=0x4f | 0xaf | 0xb6..=0xb8 | 0xbc..=0xbf | 0x2c | 0x2d) if !i.vector => {
                self.set(i.register, Value::Unknown);
            }
            (
                1,
                0x90..=0x9f | 0xa4 | 0xa5 | 0xac | 0xad | 0xb0 | 0xb1 | 0xba | 0xc0 | 0xc1 | 0x7e,
            ) if in_register && !i.vector => {
                self.set(i.rm, Value::Unknown);
            }
            (1, 0xc8..=0xcf) if !i.vector => self.set(i.opcode_register, Value::Unknown),
            (1, 0xa2) if !i.vector => {
                for register in [machine::AX, RBX, machine::CX, machine::DX] {
                    self.set(register, Value::Unknown);
                }
            }
            // BMI: andn, bextr, mulx, pdep, rorx and the like.
            (2, 0xf0..=0xf7) | (3, 0xf0) => self.set(i.register, Value::Unknown),
            _ => {}
        }
    }
}
