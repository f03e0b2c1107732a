//! Leaving a function without CFI: its code is followed, without running it, until it returns.
//!
//! Registers and stack slots are tracked as "what register R held at the start, plus N". At the
//! `ret`, the stack pointer's value tells where the return address is, and the registers that
//! were popped on the way tell where the caller's values are saved.

use super::decode::{Instruction, decode};
use super::{LAYOUT, RBP, RBX, RSP, SIGNAL_RETURN};
use crate::arch::Code;
use crate::rule::{CompactRule, Rule};

/// Instructions followed in all.
const STEPS: usize = 3_000;
/// Conditional jumps whose other side is tried if the first leads nowhere.
const BRANCHES: usize = 24;
/// Stack slots whose contents are tracked.
const SLOTS: usize = 24;
/// Jumps remembered to notice loops.
const JUMPS: usize = 64;

/// The rule for the code at `target`.
pub(in crate::arch) fn analyze(code: Code<'_>, target: u64, entry: u64) -> Rule {
    let mut bytes = [0; SIGNAL_RETURN.len()];
    if code(target, &mut bytes) == bytes.len() && bytes == SIGNAL_RETURN {
        return Rule::SignalReturn;
    }
    if entry != 0 && is_program_entry(code, target, entry) {
        return Rule::ProgramEntry;
    }
    match follow(code, target) {
        Some(rule) => Rule::Guess(rule),
        None => Rule::Unknown,
    }
}

/// Rules by the code in front of `target`, from where its function may start, nearest first; until
/// `believe` accepts one. For functions that end with a call which never returns.
pub(in crate::arch) fn analyze_from_entry(
    code: Code<'_>,
    target: u64,
    believe: &mut dyn FnMut(CompactRule) -> bool,
) -> bool {
    /// Where compilers let functions start.
    const ALIGNMENT: u64 = 16;
    const CANDIDATES: u64 = 64;
    let nearest = target.saturating_sub(1) & !(ALIGNMENT - 1);
    (0..CANDIDATES)
        .map_while(|index| nearest.checked_sub(index * ALIGNMENT))
        .filter_map(|start| follow_to(code, start, target))
        .any(believe)
}

/// The rule at `target`, if a function starts at `start` and its code leads there.
fn follow_to(code: Code<'_>, start: u64, target: u64) -> Option<CompactRule> {
    let mut before = [0; 5];
    if code(start.checked_sub(5)?, &mut before) < before.len() || !ends_function(&before) {
        return None;
    }
    let mut window = Window::default();
    let mut state = State::new(start);
    // What follows the end of a path is reached by a branch before it.
    let mut at_branch = None;
    while state.at < target {
        let instruction = window.decode(code, state.at)?;
        state.at += u64::from(instruction.length);
        match kind(&instruction) {
            Kind::Next => state.run(&instruction),
            Kind::Call => state.call(),
            Kind::Branch(_) => at_branch = Some(state),
            _ => {
                let next = state.at;
                state = at_branch?;
                state.at = next;
            }
        }
    }
    (state.at == target).then(|| state.rule_from_entry())?
}

/// Whether a function or the padding behind one can end so.
fn ends_function(before: &[u8; 5]) -> bool {
    matches!(before, [.., 0xc3 | 0xcc | 0x90 | 0xf4 | 0x00])
        || matches!(before, [0xe8 | 0xe9, ..] | [.., 0xeb, _] | [.., 0x0f, 0x0b])
}

/// Whether `target` is in the straight line of code that starts at the module's entry point. The
/// kernel's stack for a new program has no return address, and entry code never returns.
fn is_program_entry(code: Code<'_>, target: u64, entry: u64) -> bool {
    const LONGEST: u64 = 160;
    if !(entry..entry.saturating_add(LONGEST)).contains(&target) {
        return false;
    }
    let mut window = Window::default();
    let mut at = entry;
    while at < target {
        let Some(instruction) = window.decode(code, at) else {
            return false;
        };
        at += u64::from(instruction.length);
        if !matches!(
            kind(&instruction),
            Kind::Next | Kind::Call | Kind::Branch(_)
        ) {
            return false;
        }
    }
    true
}

/// What a register or stack slot holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Value {
    #[default]
    Unknown,
    /// A register's value at the start, plus this.
    Register(u8, i32),
    /// What was in memory, at the start, at a place.
    Slot(Base, i32),
    /// What was in memory, at a register's value plus the first number, plus the second.
    Through(u8, i32, i32),
}

/// What a place in memory is relative to: a register, or a saved pointer that is itself in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    Register(u8),
    Through(u8, i32),
}

#[derive(Clone, Copy)]
struct State {
    at: u64,
    registers: [Value; 16],
    /// Stores to the stack: (address, value), oldest first.
    stores: [(Value, Value); SLOTS],
    stored: usize,
}

/// What an instruction does to the flow of control.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Next,
    Return,
    Jump(i64),
    Branch(i64),
    Call,
    /// Control goes elsewhere or nowhere.
    Stop,
    /// Through a register or memory: a jump table, or a tail call.
    IndirectJump,
}

fn follow(code: Code<'_>, target: u64) -> Option<CompactRule> {
    let mut window = Window::default();
    let mut branches = [None; BRANCHES];
    let mut waiting = 0;
    let mut jumps = [0_u64; JUMPS];
    let mut jumped = 0;
    let mut state = State::new(target);
    for _ in 0..STEPS {
        let instruction = window.decode(code, state.at);
        let kind = instruction.map_or(Kind::Stop, |instruction| kind(&instruction));
        let here = state.at;
        let next = here + instruction.map_or(0, |instruction| u64::from(instruction.length));
        state.at = next;
        let dead = match kind {
            Kind::Next => {
                state.run(&instruction?);
                false
            }
            Kind::Call => {
                state.call();
                false
            }
            Kind::Return | Kind::IndirectJump => match state.rule() {
                Some(rule) => return Some(rule),
                None => true,
            },
            Kind::Jump(distance) => {
                state.at = next.wrapping_add_signed(distance);
                let seen = jumps[..jumped.min(JUMPS)].contains(&here);
                jumps[jumped % JUMPS] = here;
                jumped += 1;
                seen
            }
            Kind::Branch(distance) => {
                let other = next.wrapping_add_signed(distance);
                let seen = jumps[..jumped.min(JUMPS)].contains(&here);
                if !seen && other > here && waiting < BRANCHES {
                    jumps[jumped % JUMPS] = here;
                    jumped += 1;
                    branches[waiting] = Some(State { at: other, ..state });
                    waiting += 1;
                }
                false
            }
            Kind::Stop => true,
        };
        if dead {
            waiting = waiting.checked_sub(1)?;
            state = branches[waiting]?;
        }
    }
    None
}

/// A piece of code.
struct Window {
    bytes: [u8; Self::SIZE],
    start: u64,
    filled: usize,
}

impl Default for Window {
    fn default() -> Self {
        Self {
            bytes: [0; Self::SIZE],
            start: 0,
            filled: 0,
        }
    }
}

impl Window {
    const SIZE: usize = 256;
    const LONGEST: usize = 15;

    fn decode(&mut self, code: Code<'_>, at: u64) -> Option<Instruction> {
        let filled = &self.bytes[..self.filled];
        let skip = at.wrapping_sub(self.start);
        let known = usize::try_from(skip)
            .ok()
            .and_then(|skip| filled.get(skip..));
        if let Some(bytes) = known.filter(|bytes| bytes.len() >= Self::LONGEST) {
            return decode(bytes);
        }
        self.start = at;
        self.filled = code(at, &mut self.bytes).min(Self::SIZE);
        decode(&self.bytes[..self.filled])
    }
}

pub(super) fn kind(instruction: &Instruction) -> Kind {
    if instruction.vector {
        return Kind::Next;
    }
    let distance = instruction.immediate;
    match (instruction.map, instruction.opcode) {
        (0, 0xc2 | 0xc3) => Kind::Return,
        (0, 0xe9 | 0xeb) => Kind::Jump(distance),
        (0, 0x70..=0x7f | 0xe0..=0xe3) | (1, 0x80..=0x8f) => Kind::Branch(distance),
        (0, 0xe8) => Kind::Call,
        (0, 0xff) => match instruction.register & 7 {
            2 => Kind::Call,
            4 => Kind::IndirectJump,
            3 | 5 => Kind::Stop,
            _ => Kind::Next,
        },
        // hlt, int3, iret, far return, far calls; ud2, sysret.
        (0, 0xf4 | 0xcc | 0xca | 0xcb | 0xcf) | (1, 0x0b | 0x07 | 0xb9 | 0xff) => Kind::Stop,
        _ => Kind::Next,
    }
}

impl State {
    fn new(at: u64) -> Self {
        let mut registers = [Value::Unknown; 16];
        for (number, value) in (0..).zip(&mut registers) {
            *value = Value::Register(from_machine(number), 0);
        }
        Self {
            at,
            registers,
            stores: [(Value::Unknown, Value::Unknown); SLOTS],
            stored: 0,
        }
    }

    fn get(&self, register: u8) -> Value {
        self.registers
            .get(usize::from(register))
            .copied()
            .unwrap_or_default()
    }

    fn set(&mut self, register: u8, value: Value) {
        if let Some(slot) = self.registers.get_mut(usize::from(register)) {
            *slot = value;
        }
    }

    fn push(&mut self, value: Value) {
        self.add(machine::SP, -8);
        self.store(self.get(machine::SP), value);
    }

    fn pop(&mut self) -> Value {
        let value = self.load(self.get(machine::SP));
        self.add(machine::SP, 8);
        value
    }

    fn add(&mut self, register: u8, amount: i64) {
        let sum = plus(self.get(register), amount);
        self.set(register, sum);
    }

    fn store(&mut self, address: Value, value: Value) {
        if self.stored < SLOTS {
            self.stores[self.stored] = (address, value);
            self.stored += 1;
        } else {
            self.stores.rotate_left(1);
            self.stores[SLOTS - 1] = (address, value);
        }
    }

    fn load(&self, address: Value) -> Value {
        let (base, offset) = match address {
            Value::Register(register, offset) => (Base::Register(register), offset),
            Value::Through(register, slot, offset) => (Base::Through(register, slot), offset),
            Value::Slot(Base::Register(register), slot) => (Base::Through(register, slot), 0),
            _ => return Value::Unknown,
        };
        self.stores[..self.stored]
            .iter()
            .rev()
            .find(|(at, _)| *at == address)
            .map_or(Value::Slot(base, offset), |&(_, value)| value)
    }

    /// What a called function may change.
    fn call(&mut self) {
        for register in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
            self.set(register, Value::Unknown);
        }
    }

    /// The instruction's memory operand, if it is in reach.
    fn address(&self, instruction: &Instruction) -> Value {
        instruction.base.map_or(Value::Unknown, |base| {
            plus(self.get(base), i64::from(instruction.displacement))
        })
    }

    fn run(&mut self, i: &Instruction) {
        if i.vector || i.map != 0 {
            return self.clobber_extended(i);
        }
        let in_register = i.mode == 3;
        match i.opcode {
            0x50..=0x57 => self.push(self.get(i.opcode_register)),
            0x58..=0x5f => {
                let value = self.pop();
                self.set(i.opcode_register, value);
            }
            0x68 | 0x6a | 0x9c => self.push(Value::Unknown),
            0x9d => drop(self.pop()),
            0x8f => {
                let value = self.pop();
                if in_register {
                    self.set(i.rm, value);
                }
            }
            0xff if i.register & 7 == 6 => self.push(Value::Unknown),
            0x81 | 0x83 if in_register && i.wide && i.register & 7 == 0 => {
                self.add(i.rm, i.immediate);
            }
            0x81 | 0x83 if in_register && i.wide && i.register & 7 == 5 => {
                self.add(i.rm, i.immediate.wrapping_neg());
            }
            0x89 if i.wide && in_register => self.set(i.rm, self.get(i.register)),
            0x89 if i.wide => self.store(self.address(i), self.get(i.register)),
            0x8b if i.wide && in_register => self.set(i.register, self.get(i.rm)),
            0x8b if i.wide => self.set(i.register, self.load(self.address(i))),
            0x8d if i.wide => self.set(i.register, self.address(i)),
            0xc8 => self.set(machine::SP, Value::Unknown),
            0xc9 => {
                self.set(machine::SP, self.get(machine::BP));
                let value = self.pop();
                self.set(machine::BP, value);
            }
            _ => self.clobber(i),
        }
    }

    /// Instructions whose result is of no interest, but which register it lands in is.
    fn clobber(&mut self, i: &Instruction) {
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

    fn clobber_extended(&mut self, i: &Instruction) {
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

    /// The rule for the current place, if the walk began where the function does.
    fn rule_from_entry(&self) -> Option<CompactRule> {
        let relative_to = |register| match self.get(register) {
            Value::Register(RSP, offset) => Some(offset),
            _ => None,
        };
        let (cfa_register, offset) = match relative_to(machine::SP) {
            Some(offset) => (RSP, offset),
            None => (RBP, relative_to(machine::BP)?),
        };
        if offset > 0 {
            return None;
        }
        let mut rule = CompactRule {
            cfa_register,
            cfa_offset: 8_i32.checked_sub(offset)?,
            return_address: Some(-1),
            ..CompactRule::default()
        };
        for &(address, value) in &self.stores[..self.stored] {
            if let (Value::Register(RSP, at), Value::Register(register, 0)) = (address, value)
                && let Some(slot) = LAYOUT.saved_slot(u16::from(register))
            {
                rule.save(slot, i64::from(at) - 8)?;
            }
        }
        Some(rule)
    }

    /// The rule, if this is where the function returns.
    fn rule(&self) -> Option<CompactRule> {
        let (base, offset) = match self.get(machine::SP) {
            Value::Register(register, offset) => (Base::Register(register), offset),
            Value::Through(register, slot, offset) => (Base::Through(register, slot), offset),
            Value::Slot(Base::Register(register), slot) => (Base::Through(register, slot), 0),
            _ => return None,
        };
        let (cfa_register, cfa_through) = match base {
            Base::Register(register) => (register, None),
            Base::Through(register, slot) => (register, Some(i16::try_from(slot).ok()?)),
        };
        let cfa_offset = offset.checked_add(8)?;
        let mut rule = CompactRule {
            cfa_register,
            cfa_offset,
            cfa_through,
            return_address: Some(-1),
            ..CompactRule::default()
        };
        if self.get(machine::BP) == Value::Slot(Base::Register(RBP), 0)
            && base == Base::Register(RSP)
        {
            // The frame pointer comes from where the frame pointer points: the usual record.
            let mut rule = CompactRule {
                cfa_register: RBP,
                cfa_offset: 16,
                return_address: Some(-1),
                ..CompactRule::default()
            };
            rule.save(LAYOUT.saved_slot(u16::from(RBP))?, -16)?;
            return Some(rule);
        }
        for (slot, &register) in LAYOUT.saved.iter().enumerate() {
            if let Value::Slot(from, at) = self.get(to_machine(register))
                && from == base
            {
                let from_cfa = i64::from(at) - i64::from(cfa_offset);
                rule.save(slot, from_cfa)?;
            }
        }
        Some(rule)
    }
}

fn plus(value: Value, amount: i64) -> Value {
    match value {
        Value::Register(base, offset) => i32::try_from(i64::from(offset) + amount)
            .map_or(Value::Unknown, |offset| Value::Register(base, offset)),
        Value::Through(base, slot, offset) => i32::try_from(i64::from(offset) + amount)
            .map_or(Value::Unknown, |offset| Value::Through(base, slot, offset)),
        Value::Slot(Base::Register(base), slot) => i32::try_from(amount)
            .map_or(Value::Unknown, |offset| Value::Through(base, slot, offset)),
        _ => Value::Unknown,
    }
}

/// Register numbers in instructions, where they differ from DWARF's.
mod machine {
    pub(super) const AX: u8 = 0;
    pub(super) const CX: u8 = 1;
    pub(super) const DX: u8 = 2;
    pub(super) const SP: u8 = 4;
    pub(super) const BP: u8 = 5;
    pub(super) const SI: u8 = 6;
    pub(super) const DI: u8 = 7;
}

/// DWARF's number for a register.
fn from_machine(number: u8) -> u8 {
    const DWARF: [u8; 8] = [0, 2, 1, RBX, RSP, RBP, 4, 5];
    DWARF.get(usize::from(number)).copied().unwrap_or(number)
}

fn to_machine(dwarf: u8) -> u8 {
    match dwarf {
        RBP => machine::BP,
        RSP => machine::SP,
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: u64 = 0x1000;

    fn analyze_at(bytes: &[u8], offset: u64, entry: u64) -> Rule {
        let mut code = |address: u64, buffer: &mut [u8]| {
            let rest = usize::try_from(address - TEXT)
                .ok()
                .and_then(|at| bytes.get(at..))
                .unwrap_or_default();
            let count = rest.len().min(buffer.len());
            buffer[..count].copy_from_slice(&rest[..count]);
            count
        };
        analyze(&mut code, TEXT + offset, entry)
    }

    /// The rule at each of the offsets: (offset, CFA register, offset from it, saved registers
    /// as (DWARF number, offset from the CFA)).
    #[expect(clippy::type_complexity, reason = "a table")]
    fn check(bytes: &[u8], expected: &[(u64, u8, i32, &[(u8, i64)])]) {
        for &(offset, cfa_register, cfa_offset, saved) in expected {
            let mut rule = CompactRule {
                cfa_register,
                cfa_offset,
                return_address: Some(-1),
                ..CompactRule::default()
            };
            for &(register, at) in saved {
                let slot = LAYOUT.saved_slot(u16::from(register)).unwrap();
                rule.save(slot, at).unwrap();
            }
            assert_eq!(analyze_at(bytes, offset, 0), Rule::Guess(rule), "{offset}");
        }
    }

    #[test]
    fn pushes_and_pops() {
        // push %rbx; push %r12; sub $24,%rsp; 1: dec %rax; jnz 1b; add $24,%rsp; pop %r12;
        // pop %rbx; ret
        let code = [
            0x53, 0x41, 0x54, 0x48, 0x83, 0xec, 0x18, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0x48, 0x83,
            0xc4, 0x18, 0x41, 0x5c, 0x5b, 0xc3,
        ];
        let saved: &[(u8, i64)] = &[(RBX, -16), (12, -24)];
        check(
            &code,
            &[
                (0, RSP, 8, &[]),
                (1, RSP, 16, &[(RBX, -16)]),
                (3, RSP, 24, saved),
                (7, RSP, 48, saved),
                (10, RSP, 48, saved),
                (16, RSP, 24, saved),
                (18, RSP, 16, &[(RBX, -16)]),
                (19, RSP, 8, &[]),
            ],
        );
    }

    #[test]
    fn frame_pointers() {
        // push %rbp; mov %rsp,%rbp; sub $64,%rsp; call +0; leave; ret
        let code = [
            0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x40, 0xe8, 0, 0, 0, 0, 0xc9, 0xc3,
        ];
        check(
            &code,
            &[
                (0, RSP, 8, &[]),
                (1, RSP, 16, &[(RBP, -16)]),
                (4, RBP, 16, &[(RBP, -16)]),
                (13, RBP, 16, &[(RBP, -16)]),
                (14, RSP, 8, &[]),
            ],
        );
    }

    #[test]
    fn code_that_does_not_return_tells_nothing() {
        // ud2
        assert_eq!(analyze_at(&[0x0f, 0x0b], 0, 0), Rule::Unknown);
        // 1: jmp 1b
        assert_eq!(analyze_at(&[0xeb, 0xfe], 0, 0), Rule::Unknown);
        // and $-64,%rsp; ret
        assert_eq!(
            analyze_at(&[0x48, 0x83, 0xe4, 0xc0, 0xc3], 0, 0),
            Rule::Unknown
        );
    }

    #[test]
    fn known_places() {
        assert_eq!(analyze_at(&SIGNAL_RETURN, 0, 0), Rule::SignalReturn);
        // mov %rsp,%rdi; call +0; hlt; ret
        let code = [0x48, 0x89, 0xe7, 0xe8, 0, 0, 0, 0, 0xf4, 0xc3];
        assert_eq!(analyze_at(&code, 8, TEXT), Rule::ProgramEntry);
        assert_ne!(analyze_at(&code, 9, TEXT), Rule::ProgramEntry);
    }
}
