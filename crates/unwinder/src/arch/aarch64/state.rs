//! The values of registers and stack slots, relative to the registers at the start.

use super::decode::{Access, Effect, effect};
use super::{FP, LAYOUT, LR, SP};
use crate::rule::{CompactRule, words};

/// The number of stack slots that are tracked.
const SLOTS: usize = 24;

/// The value of a register or stack slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Value {
    #[default]
    Unknown,
    /// A register's value at the start, plus this.
    Register(u8, i64),
    /// The value in memory, at the start, at a register's value then plus this.
    Slot(u8, i64),
}

#[derive(Clone, Copy)]
pub(super) struct State {
    pub(super) at: u64,
    registers: [Value; 32],
    /// Stores to the stack: (address, value), oldest first.
    stores: [(Value, Value); SLOTS],
    stored: usize,
}

impl State {
    pub(super) fn new(at: u64) -> Self {
        let mut registers = [Value::Unknown; 32];
        for (number, value) in (0..).zip(&mut registers) {
            *value = Value::Register(number, 0);
        }
        Self {
            at,
            registers,
            stores: [(Value::Unknown, Value::Unknown); SLOTS],
            stored: 0,
        }
    }

    pub(super) fn get(&self, register: u8) -> Value {
        let value = self.registers.get(usize::from(register));
        value.copied().unwrap_or_default()
    }

    fn set(&mut self, register: u8, value: Value) {
        if let Some(slot) = self.registers.get_mut(usize::from(register)) {
            *slot = value;
        }
    }

    /// Forgets the registers that a called function may change.
    pub(super) fn call(&mut self) {
        (0..=18).for_each(|register| self.set(register, Value::Unknown));
        self.set(LR, Value::Unknown);
    }

    /// Applies an instruction that continues with the next one.
    pub(super) fn run(&mut self, word: u32) {
        match effect(word) {
            Effect::None => {}
            Effect::Add(to, from, amount) => self.set(to, plus(self.get(from), amount)),
            Effect::Sets(register) => self.set(register, Value::Unknown),
            Effect::Access(access) => self.access(&access),
        }
    }

    fn access(&mut self, access: &Access) {
        let base = self.get(access.base);
        for (index, register) in (0..).zip(access.registers) {
            let Some(register) = register else { continue };
            let address = plus(base, access.offset + 8 * index);
            match (access.is_load, access.is_wide) {
                (true, _) if register == SP => {}
                (true, true) => self.set(register, self.load(address)),
                (true, false) => self.set(register, Value::Unknown),
                (false, true) if register != SP => self.store(address, self.get(register)),
                (false, _) => {}
            }
        }
        if access.added != 0 {
            self.set(access.base, plus(base, access.added));
        }
    }

    fn store(&mut self, address: Value, value: Value) {
        if !matches!(address, Value::Register(SP | FP, _)) {
            return;
        }
        if self.stored == SLOTS {
            self.stores.rotate_left(1);
            self.stored -= 1;
        }
        self.stores[self.stored] = (address, value);
        self.stored += 1;
    }

    fn load(&self, address: Value) -> Value {
        let Value::Register(base, offset) = address else {
            return Value::Unknown;
        };
        let mut stores = self.stores[..self.stored].iter().rev();
        stores
            .find(|(at, _)| *at == address)
            .map_or(Value::Slot(base, offset), |&(_, value)| value)
    }

    /// Whether the stack pointer is lower than at the start.
    pub(super) fn has_frame(&self) -> bool {
        matches!(self.get(SP), Value::Register(SP, offset) if offset < 0)
    }

    /// The rule, if this is where the function returns to the address in `link`.
    pub(super) fn rule(&self, link: u8) -> Option<CompactRule> {
        let (base, room) = match self.get(SP) {
            Value::Register(base @ (SP | FP), room) if base == FP || room >= 0 => (base, room),
            _ => return None,
        };
        let from_cfa = |value| match value {
            Value::Slot(from, at) if from == base => Some(at - room),
            _ => None,
        };
        let mut rule = CompactRule {
            cfa_register: base,
            cfa_offset: i32::try_from(room).ok()?,
            return_address: match self.get(link) {
                Value::Register(LR, 0) => None,
                saved => Some(words(from_cfa(saved)?)?),
            },
            ..CompactRule::default()
        };
        for (slot, &register) in LAYOUT.saved.iter().enumerate() {
            let value = self.get(register);
            match from_cfa(value) {
                Some(at) => rule.save(slot, at)?,
                None if register == FP && value != Value::Register(FP, 0) => return None,
                None => {}
            }
        }
        Some(rule)
    }

    /// Whether the caller's frame pointer and the return address are restored from where the frame
    /// pointer pointed at the start, if this is where the function returns to the address in
    /// `link`.
    pub(super) fn has_restored_record(&self, link: u8) -> bool {
        (self.get(FP), self.get(link)) == (Value::Slot(FP, 0), Value::Slot(FP, 8))
    }

    /// Whether the frame pointer points to a frame record, if the walk began at the function's
    /// start; `None` if that is unknown.
    pub(super) fn has_frame_pointer(&self) -> Option<bool> {
        let Value::Register(base, at) = self.get(FP) else {
            return None;
        };
        let record = [(at, FP), (at + 8, LR)];
        let is_stored =
            |(at, register)| self.load(Value::Register(SP, at)) == Value::Register(register, 0);
        Some(base == SP && record.into_iter().all(is_stored))
    }

    /// The rule for the current place, if the walk began at the function's start.
    pub(super) fn rule_from_entry(&self) -> Option<CompactRule> {
        let relative_to = |register| match self.get(register) {
            Value::Register(SP, offset) if offset <= 0 => Some((register, offset)),
            _ => None,
        };
        let (cfa_register, offset) = relative_to(SP).or_else(|| relative_to(FP))?;
        let mut rule = CompactRule {
            cfa_register,
            cfa_offset: i32::try_from(-offset).ok()?,
            ..CompactRule::default()
        };
        for &(address, value) in &self.stores[..self.stored] {
            if let (Value::Register(SP, at), Value::Register(register, 0)) = (address, value)
                && let Some(slot) = LAYOUT.saved_slot(u16::from(register))
            {
                rule.save(slot, at)?;
                if register == LR {
                    rule.return_address = Some(words(at)?);
                }
            }
        }
        let is_lost = rule.return_address.is_none() && self.get(LR) != Value::Register(LR, 0);
        (!is_lost).then_some(rule)
    }
}

fn plus(value: Value, amount: i64) -> Value {
    match value {
        Value::Register(base, offset) => Value::Register(base, offset.saturating_add(amount)),
        _ if amount == 0 => value,
        _ => Value::Unknown,
    }
}
