//! Instructions: classified by their effect on the control flow, the stack and the registers.

/// Stack pointer, where an instruction does not mean the register of zeros.
const SP: u8 = 31;
const LR: u8 = 30;

/// The effect of an instruction on the control flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Next,
    /// To the address in this register.
    Return(u8),
    /// To this address.
    Jump(u64),
    Branch(u64),
    Call,
    /// To the address in this register: a jump table, or a tail call.
    IndirectJump(u8),
    /// Control goes nowhere.
    Stop,
}

/// The effect of the instruction `word` at an address.
pub(super) fn kind(word: u32, at: u64) -> Kind {
    let relative = |bits: u32, low: u32| {
        let distance = (word << (32 - bits - low)) as i32 >> (32 - bits);
        at.wrapping_add_signed(i64::from(distance) * 4)
    };
    let is = |mask: u32, value: u32| word & mask == value;
    if is_call(word) {
        Kind::Call
    } else if is(0xfc00_0000, 0x1400_0000) {
        Kind::Jump(relative(26, 0))
    } else if is(0xff00_0000, 0x5400_0000) || is(0x7e00_0000, 0x3400_0000) {
        // b.cond; cbz, cbnz
        Kind::Branch(relative(19, 5))
    } else if is(0x7e00_0000, 0x3600_0000) {
        // tbz, tbnz
        Kind::Branch(relative(14, 5))
    } else if is(0xffff_fbff, 0xd65f_0bff) {
        // retaa, retab
        Kind::Return(LR)
    } else if is(0xffff_fc1f, 0xd65f_0000) {
        Kind::Return(first(word))
    } else if is(0xffff_fc1f, 0xd61f_0000) || is(0xfeff_f800, 0xd61f_0800) {
        Kind::IndirectJump(first(word))
    } else if is(0xffe0_001f, 0xd420_0000) || is(0xffe0_001f, 0xd440_0000) || word >> 16 == 0 {
        // brk, hlt, udf
        Kind::Stop
    } else {
        Kind::Next
    }
}

/// Whether the instruction is a call: bl, blr, or one with pointer authentication.
pub(super) fn is_call(word: u32) -> bool {
    word >> 26 == 0b100101 || word & 0xffff_fc1f == 0xd63f_0000 || word & 0xfeff_f800 == 0xd63f_0800
}

/// What an instruction that continues with the next one does to registers and the stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Nothing of interest.
    None,
    /// The first register becomes the second plus this.
    Add(u8, u8, i64),
    Access(Access),
    /// The register gets another value.
    Sets(u8),
}

/// A load or store with an immediate offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) is_load: bool,
    /// The registers, of 8 bytes each; the second may be missing.
    pub(super) registers: [Option<u8>; 2],
    /// Whether they are registers of 64 bits that memory has one after the other.
    pub(super) is_wide: bool,
    pub(super) base: u8,
    /// From the base.
    pub(super) offset: i64,
    /// How much is added to the base.
    pub(super) added: i64,
}

pub(super) fn effect(word: u32) -> Effect {
    match word >> 25 & 0xf {
        0b1000 | 0b1001 => immediate(word),
        0b0100 | 0b0110 | 0b1100 | 0b1110 => memory(word),
        0b0101 | 0b1101 => computation(word),
        0b1010 | 0b1011 => system(word),
        // Between general and vector registers.
        0b1111 if word & 0x5f20_fc00 == 0x1e20_0000 => sets(target(word)),
        _ => Effect::None,
    }
}

/// Data processing with an immediate.
fn immediate(word: u32) -> Effect {
    const SETS_FLAGS: u32 = 1 << 29;
    let is_sum = word >> 23 & 0x3f == 0b10_0010;
    if is_sum && word & SETS_FLAGS == 0 {
        if word >> 31 == 0 {
            return Effect::Sets(target(word));
        }
        let amount = i64::from(word >> 10 & 0xfff) << (12 * (word >> 22 & 1));
        let amount = match word >> 30 & 1 {
            1 => -amount,
            _ => amount,
        };
        return Effect::Add(target(word), first(word), amount);
    }
    let is_logic = word >> 23 & 0x3f == 0b10_0100;
    match is_logic && word >> 29 & 0b11 != 0b11 {
        // and sp, x0, #-16
        true => Effect::Sets(target(word)),
        false => sets(target(word)),
    }
}

/// Data processing with registers.
fn computation(word: u32) -> Effect {
    /// `mov x1, x2` is `orr x1, xzr, x2`.
    const MOVE: u32 = 0xaa00_03e0;
    const SETS_FLAGS: u32 = 1 << 29;
    let source = (word >> 16 & 0x1f) as u8;
    if word & 0xffe0_ffe0 == MOVE && source != 31 && target(word) != 31 {
        return Effect::Add(target(word), source, 0);
    }
    // The authentication code of an address; its other bits stay.
    if word & 0xffff_0000 == 0xdac1_0000 {
        return Effect::None;
    }
    // sub sp, sp, x0
    let is_extended_sum = word & 0x1fe0_0000 == 0x0b20_0000;
    match is_extended_sum && word & SETS_FLAGS == 0 {
        true => Effect::Sets(target(word)),
        false => sets(target(word)),
    }
}

fn system(word: u32) -> Effect {
    const IS_READ: u32 = 1 << 21;
    match word {
        _ if word & 0xffe0_001f == 0xd400_0001 => Effect::Sets(0),
        _ if word & 0xffc0_0000 == 0xd500_0000 && word & IS_READ != 0 => sets(target(word)),
        _ => Effect::None,
    }
}

fn memory(word: u32) -> Effect {
    let is_vector = word >> 26 & 1 != 0;
    match word >> 27 & 0b111 {
        0b101 => pair(word, is_vector),
        0b111 => single(word, is_vector),
        // Exclusive accesses, and literals.
        _ if !is_vector => sets(target(word)),
        _ => Effect::None,
    }
}

/// ldp, stp.
fn pair(word: u32, is_vector: bool) -> Effect {
    let size = word >> 30;
    let scale: i64 = match (is_vector, size) {
        (true, _) => 4 << size,
        (false, 2) => 8,
        _ => 4,
    };
    let amount = i64::from((word << 10) as i32 >> 25) * scale;
    let second = (word >> 10 & 0x1f) as u8;
    Effect::Access(Access {
        is_load: word >> 22 & 1 != 0,
        registers: match is_vector {
            true => [None, None],
            false => [Some(target(word)), Some(second)],
        },
        is_wide: !is_vector && size == 2,
        base: first(word),
        ..by_mode(word >> 23 & 0b11, amount)
    })
}

/// ldr, str.
fn single(word: u32, is_vector: bool) -> Effect {
    let (size, operation) = (word >> 30, word >> 22 & 0b11);
    let is_prefetch = !is_vector && size == 3 && operation == 2;
    let is_scaled = word >> 24 & 0b11 == 0b01;
    let is_by_register = word >> 24 & 0b11 == 0 && word >> 21 & 1 != 0;
    if is_prefetch || is_by_register && is_vector {
        return Effect::None;
    }
    if is_by_register {
        return sets(target(word));
    }
    let scale = match is_vector && operation >= 2 {
        true => 4,
        false => size,
    };
    let modes = match is_scaled {
        true => by_mode(0b10, i64::from(word >> 10 & 0xfff) << scale),
        false => {
            let amount = i64::from((word << 11) as i32 >> 23);
            match word >> 10 & 0b11 {
                0b01 => by_mode(0b01, amount),
                0b11 => by_mode(0b11, amount),
                _ => by_mode(0b10, amount),
            }
        }
    };
    Effect::Access(Access {
        is_load: operation != 0,
        registers: [(!is_vector).then_some(target(word)), None],
        is_wide: !is_vector && size == 3,
        base: first(word),
        ..modes
    })
}

/// An access whose address is the base plus this amount, the base itself (01), or the base plus the
/// amount that is added to it (11).
fn by_mode(mode: u32, amount: i64) -> Access {
    let (offset, added) = match mode {
        0b01 => (0, amount),
        0b11 => (amount, amount),
        _ => (amount, 0),
    };
    Access {
        is_load: false,
        registers: [None, None],
        is_wide: false,
        base: 0,
        offset,
        added,
    }
}

/// The effect on a register, where 31 is the register of zeros.
fn sets(register: u8) -> Effect {
    match register {
        SP => Effect::None,
        register => Effect::Sets(register),
    }
}

/// The register in the lowest bits.
fn target(word: u32) -> u8 {
    (word & 0x1f) as u8
}

/// The register in the five bits above.
fn first(word: u32) -> u8 {
    (word >> 5 & 0x1f) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: u64 = 0x1_0000;

    #[test]
    fn control_flow() {
        for (word, expected) in [
            (0x9400_0000, Kind::Call),             // bl .
            (0xd63f_0000, Kind::Call),             // blr x0
            (0xd73f_0801, Kind::Call),             // blraa x0, x1
            (0x17ff_ffff, Kind::Jump(AT - 4)),     // b .-4
            (0x5400_0041, Kind::Branch(AT + 8)),   // b.ne .+8
            (0xb4ff_ffe0, Kind::Branch(AT - 4)),   // cbz x0, .-4
            (0x3707_ff80, Kind::Branch(AT - 16)),  // tbnz w0, #0, .-16
            (0xd65f_03c0, Kind::Return(30)),       // ret
            (0xd65f_0bff, Kind::Return(30)),       // retaa
            (0xd65f_0fff, Kind::Return(30)),       // retab
            (0xd65f_0040, Kind::Return(2)),        // ret x2
            (0xd61f_0220, Kind::IndirectJump(17)), // br x17
            (0xd420_0020, Kind::Stop),             // brk #1
            (0xd503_201f, Kind::Next),             // nop
            (0xd400_0001, Kind::Next),             // svc #0
        ] {
            assert_eq!(kind(word, AT), expected, "{word:x}");
        }
    }

    fn access(is_load: bool, registers: [Option<u8>; 2], offset: i64, added: i64) -> Effect {
        Effect::Access(Access {
            is_load,
            registers,
            is_wide: registers[0].is_some(),
            base: SP,
            offset,
            added,
        })
    }

    #[test]
    fn effects() {
        let both = [Some(29), Some(30)];
        for (word, expected) in [
            (0xa9bd_7bfd, access(false, both, -48, -48)), // stp x29, x30, [sp, #-48]!
            (0xa8c3_7bfd, access(true, both, 0, 48)),     // ldp x29, x30, [sp], #48
            (0xa941_7bfd, access(true, both, 16, 0)),     // ldp x29, x30, [sp, #16]
            (0xf81f_0ffe, access(false, [Some(30), None], -16, -16)), // str x30, [sp, #-16]!
            (0xf841_07fe, access(true, [Some(30), None], 0, 16)), // ldr x30, [sp], #16
            (0xf940_0bf3, access(true, [Some(19), None], 16, 0)), // ldr x19, [sp, #16]
            (0x6dbe_27e8, access(false, [None, None], -32, -32)), // stp d8, d9, [sp, #-32]!
            (0x9100_03fd, Effect::Add(29, SP, 0)),        // mov x29, sp
            (0xd101_03ff, Effect::Add(SP, SP, -64)),      // sub sp, sp, #64
            (0x9140_07ff, Effect::Add(SP, SP, 4096)),     // add sp, sp, #1, lsl #12
            (0xaa1e_03f3, Effect::Add(19, 30, 0)),        // mov x19, x30
            (0xaa1f_03e0, Effect::Sets(0)),               // mov x0, xzr
            (0xcb20_63ff, Effect::Sets(SP)),              // sub sp, sp, x0
            (0x927c_ec1f, Effect::Sets(SP)),              // and sp, x0, #-16
            (0xeb01_001f, Effect::None),                  // cmp x0, x1
            (0xd503_233f, Effect::None),                  // paciasp
            (0xd280_1168, Effect::Sets(8)),               // mov x8, #139
            (0xd53b_d053, Effect::Sets(19)),              // mrs x19, tpidr_el0
            (0x9e66_0013, Effect::Sets(19)),              // fmov x19, d0
        ] {
            assert_eq!(effect(word), expected, "{word:x}");
        }
    }
}
