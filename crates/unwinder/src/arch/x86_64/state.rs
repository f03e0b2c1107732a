//! The values of registers and stack slots, relative to the registers at the start.

use iced_x86::{
    Instruction, InstructionInfoFactory, InstructionInfoOptions, Mnemonic, OpAccess, OpKind,
    Register,
};

use super::{FRAME_RECORD, LAYOUT, RBP, RBX, RSP, frame};
use crate::registers::Registers;
use crate::rule::CompactRule;

/// The number of stack slots that are tracked.
const SLOTS: usize = 24;

/// The value of a register or stack slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    /// A register's value at the start, plus this.
    Register(u8, i32),
    /// The value in memory, at the start, at a place.
    Slot(Base, i32),
    /// The value in memory at a register's value plus the first number, plus the second.
    Through(u8, i32, i32),
}

impl Value {
    /// The value, by the registers and memory at the start.
    pub(super) fn resolve(
        self,
        registers: &Registers,
        read: &mut dyn FnMut(u64) -> Option<u64>,
    ) -> Option<u64> {
        let plus = |value: u64, offset: i32| value.wrapping_add_signed(i64::from(offset));
        match self {
            Self::Unknown => None,
            Self::Register(register, offset) => Some(plus(registers.get(register)?, offset)),
            Self::Through(register, slot, offset) => {
                Some(plus(read(plus(registers.get(register)?, slot))?, offset))
            }
            Self::Slot(Base::Register(register), offset) => {
                read(plus(registers.get(register)?, offset))
            }
            Self::Slot(Base::Through(register, slot), offset) => {
                let base = read(plus(registers.get(register)?, slot))?;
                read(plus(base, offset))
            }
        }
    }
}

/// The base of a place in memory: a register, or a saved pointer that is itself in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Base {
    Register(u8),
    Through(u8, i32),
}

#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) at: u64,
    registers: [Value; 16],
    /// Stores to the stack: (address, value), oldest first.
    stores: [(Value, Value); SLOTS],
    stored: usize,
}

impl State {
    pub(super) fn new(at: u64) -> Self {
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

    pub(super) fn pop(&mut self) -> Value {
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

    /// The value of a register by its DWARF number.
    pub(super) fn of(&self, register: u8) -> Value {
        self.get(to_machine(register))
    }

    /// The value of the register that is the instruction's first operand.
    pub(super) fn first_operand(&self, i: &Instruction) -> Option<Value> {
        wide(i.op0_register()).map(|register| self.get(register))
    }

    /// Forgets the registers that a called function may change.
    pub(super) fn call(&mut self) {
        for register in [0, 1, 2, 6, 7, 8, 9, 10, 11] {
            self.set(register, Value::Unknown);
        }
    }

    /// The address of the instruction's memory operand, if it is a register plus a number.
    fn address(&self, i: &Instruction) -> Value {
        match wide(i.memory_base()) {
            Some(base)
                if i.memory_index() == Register::None && i.segment_prefix() == Register::None =>
            {
                plus(self.get(base), i.memory_displacement64() as i64)
            }
            _ => Value::Unknown,
        }
    }

    /// Applies an instruction that continues with the next one.
    pub(super) fn run(&mut self, i: &Instruction, clobbers: &mut Clobbers) {
        let (first, second) = (wide(i.op0_register()), wide(i.op1_register()));
        match (i.mnemonic(), first, second) {
            (Mnemonic::Push | Mnemonic::Pushfq, ..) if i.stack_pointer_increment() == -8 => {
                self.push(first.map_or(Value::Unknown, |register| self.get(register)));
            }
            (Mnemonic::Pop | Mnemonic::Popfq, ..) if i.stack_pointer_increment() == 8 => {
                let value = self.pop();
                first
                    .into_iter()
                    .for_each(|register| self.set(register, value));
            }
            (Mnemonic::Leave, ..) => {
                self.set(machine::SP, self.get(machine::BP));
                let value = self.pop();
                self.set(machine::BP, value);
            }
            (Mnemonic::Add, Some(to), None) if has_immediate(i) => {
                self.add(to, i.immediate(1) as i64);
            }
            (Mnemonic::Sub, Some(to), None) if has_immediate(i) => {
                self.add(to, (i.immediate(1) as i64).wrapping_neg());
            }
            (Mnemonic::Mov, Some(to), Some(from)) => self.set(to, self.get(from)),
            (Mnemonic::Mov, None, Some(from)) if i.op0_kind() == OpKind::Memory => {
                self.store(self.address(i), self.get(from));
            }
            (Mnemonic::Mov, Some(to), None) if i.op1_kind() == OpKind::Memory => {
                self.set(to, self.load(self.address(i)));
            }
            (Mnemonic::Lea, Some(to), _) => self.set(to, self.address(i)),
            // The result, and the registers that the kernel changes.
            (Mnemonic::Syscall | Mnemonic::Int, ..) => {
                self.set(machine::AX, Value::Unknown);
                clobbers.apply(i, self);
            }
            _ => clobbers.apply(i, self),
        }
    }

    /// Whether the stack pointer is lower than at the start.
    pub(super) fn has_frame(&self) -> bool {
        matches!(self.get(machine::SP), Value::Register(RSP, offset) if offset < 0)
    }

    /// Whether the frame pointer leads to the caller's one and, above that, to the return address,
    /// if the walk began at the function's start. The code may have come here from elsewhere, if
    /// the CFA is not that far from the stack pointer: then there is none.
    pub(super) fn has_frame_pointer(&self, cfa_offset: i32) -> Option<bool> {
        const RECORD: i32 = -8;
        let is_elsewhere = match self.get(machine::SP) {
            Value::Register(RSP, offset) => offset != 8_i32.checked_sub(cfa_offset)?,
            _ => false,
        };
        let leads = self.get(machine::BP) == Value::Register(RSP, RECORD);
        Some(leads && !is_elsewhere)
    }

    /// The rule for the current place, if the walk began at the function's start.
    pub(super) fn rule_from_entry(&self) -> Option<CompactRule> {
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
    pub(super) fn rule(&self) -> Option<CompactRule> {
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
            // The frame pointer is restored from where it points: the usual record.
            return frame(RBP, FRAME_RECORD);
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

/// Finds the registers that instructions change whose results are not tracked.
#[derive(Default)]
pub(super) struct Clobbers(Option<InstructionInfoFactory>);

impl Clobbers {
    pub(super) fn new() -> Self {
        Self::default()
    }

    fn apply(&mut self, instruction: &Instruction, state: &mut State) {
        let options = InstructionInfoOptions::NO_MEMORY_USAGE;
        let factory = self.0.get_or_insert_with(InstructionInfoFactory::new);
        for used in factory.info_options(instruction, options).used_registers() {
            let reads = matches!(used.access(), OpAccess::Read | OpAccess::CondRead);
            if let (false, Some(register)) = (reads, wide(used.register().full_register())) {
                state.set(register, Value::Unknown);
            }
        }
    }
}

/// The number of a general register of 64 bits.
fn wide(register: Register) -> Option<u8> {
    register.is_gpr64().then_some(register.number() as u8)
}

fn has_immediate(instruction: &Instruction) -> bool {
    matches!(
        instruction.op1_kind(),
        OpKind::Immediate8to64 | OpKind::Immediate32to64
    )
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
    pub(super) const SP: u8 = 4;
    pub(super) const BP: u8 = 5;
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
