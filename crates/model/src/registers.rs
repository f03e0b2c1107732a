//! User registers of a sample, in the kernel's numbering.

use crate::perf_registers::{aarch64, x86_64};

/// The registers that `PERF_SAMPLE_REGS_USER` delivered.
///
/// Register numbers are those of [`perf_registers`](crate::perf_registers); the event's
/// `sample_regs_user` mask says which registers a sample has. The values are copied, because
/// records are not aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UserRegisters {
    abi: RegisterAbi,
    mask: u64,
    /// The registers of the mask, lowest number first, without gaps.
    values: [u64; Self::CAPACITY],
}

/// The mode in which the thread ran (`enum perf_sample_regs_abi`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisterAbi {
    /// 32-bit code (compat mode on a 64-bit kernel).
    Bits32,
    /// 64-bit code.
    Bits64,
}

impl UserRegisters {
    /// The number of registers of the largest supported architecture (aarch64: x0-x30, sp, pc).
    const CAPACITY: usize = 33;

    /// The registers of `mask`, lowest number first. `None` if there are more
    /// than any architecture has, or fewer values than bits in the mask.
    pub fn new(abi: RegisterAbi, mask: u64, values: impl IntoIterator<Item = u64>) -> Option<Self> {
        let count = mask.count_ones() as usize;
        let mut registers = Self {
            abi,
            mask,
            values: [0; Self::CAPACITY],
        };
        let mut values = values.into_iter();
        for slot in registers.values.get_mut(..count)? {
            *slot = values.next()?;
        }
        Some(registers)
    }

    /// Whether the code was 32-bit or 64-bit code.
    pub fn abi(&self) -> RegisterAbi {
        self.abi
    }

    /// The stack pointer, for each architecture.
    pub fn stack_pointer(&self) -> Option<u64> {
        self.of_machine(x86_64::SP, aarch64::SP)
    }

    /// The instruction pointer, for each architecture.
    pub fn instruction_pointer(&self) -> Option<u64> {
        self.of_machine(x86_64::IP, aarch64::PC)
    }

    /// The frame pointer register, for each architecture.
    pub fn frame_pointer(&self) -> Option<u64> {
        self.of_machine(x86_64::BP, aarch64::FP)
    }

    fn of_machine(&self, x86_64: u32, aarch64: u32) -> Option<u64> {
        // x86-64 has no register of that number.
        let is_aarch64 = self.get(aarch64::SP).is_some();
        self.get(if is_aarch64 { aarch64 } else { x86_64 })
    }

    /// The value of the register with this number, if it was recorded.
    pub fn get(&self, number: u32) -> Option<u64> {
        let bit = 1_u64.checked_shl(number)?;
        let index = (self.mask & (bit - 1)).count_ones() as usize;
        (self.mask & bit != 0).then(|| self.values[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_by_their_kernel_number() {
        let registers = UserRegisters::new(RegisterAbi::Bits64, 0b1010_0001, [7, 8, 9]);
        let get = |number| registers.and_then(|r| r.get(number));
        assert_eq!(
            [0, 5, 7, 1, 63, 64].map(get),
            [Some(7), Some(8), Some(9), None, None, None]
        );
    }

    #[test]
    fn each_architecture_has_its_pointers() {
        for (numbers, expected) in [([6, 7, 8], [16, 17, 18]), ([29, 31, 32], [39, 41, 42])] {
            let mask = numbers.iter().fold(0, |mask, number| mask | 1 << number);
            let values = numbers.map(|number| number + 10);
            let registers = UserRegisters::new(RegisterAbi::Bits64, mask, values);
            let registers = registers.expect("values for all");
            let pointers = [
                registers.frame_pointer(),
                registers.stack_pointer(),
                registers.instruction_pointer(),
            ];
            assert_eq!(pointers, expected.map(Some));
        }
    }

    #[test]
    fn missing_values_and_too_many_registers_are_refused() {
        assert_eq!(UserRegisters::new(RegisterAbi::Bits64, 0b11, [1]), None);
        assert_eq!(
            UserRegisters::new(RegisterAbi::Bits64, u64::MAX, [0; 64]),
            None
        );
    }
}
