//! The register values of one frame.

/// Register values by DWARF number; some may be unknown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    values: [u64; Self::COUNT],
    known: u64,
}

impl Default for Registers {
    fn default() -> Self {
        Self {
            values: [0; Self::COUNT],
            known: 0,
        }
    }
}

impl Registers {
    const COUNT: usize = 33;

    /// The value of a register, if it is known.
    #[inline]
    pub(crate) fn get(&self, register: u8) -> Option<u64> {
        let value = self.values.get(usize::from(register))?;
        (self.known >> register & 1 != 0).then_some(*value)
    }

    /// The value of a register, or if it was [forgotten](Self::forget), its last value; or 0.
    #[inline]
    pub(crate) fn last(&self, register: u8) -> u64 {
        self.values.get(usize::from(register)).copied().unwrap_or(0)
    }

    /// Sets a register; invalid numbers are ignored.
    #[inline]
    pub(crate) fn set(&mut self, register: u8, value: u64) {
        if let Some(slot) = self.values.get_mut(usize::from(register)) {
            *slot = value;
            self.known |= 1 << register;
        }
    }

    /// Forgets the value of a register.
    pub(crate) fn forget(&mut self, register: u8) {
        if usize::from(register) < Self::COUNT {
            self.known &= !(1 << register);
        }
    }
}
