//! Samples of the first and last instructions of the kernel.
//!
//! An event that samples by NMI can hit the kernel before it has saved the user's registers. The
//! kernel then delivers those of the entry before, and the stack from there (perf_get_regs_user in
//! arch/x86/kernel/perf_regs.c). The registers at the sample show more:
//!
//! ```text
//!   entry_SYSCALL_64            sp is the user's, cx holds the user's ip: all is known
//!     swapgs; sp = kernel stack; push ...     (the kernel delivers no registers)
//!   asm_exc_..., asm_sysvec_... sp is in the CPU's entry area; the user's ip and sp are on that
//!     call error_entry          stack, out of reach
//!     sp = kernel stack         from here on they are saved
//! ```

use prof_model::UserRegisters;
use prof_model::perf_registers::x86_64::{BP, BX, CX, IP, R12, SP};

use crate::entry::Entry;

/// The mapping of the stacks for interrupt entry (cpu_entry_area in
/// Documentation/arch/x86/x86_64/mm.rst).
const ENTRY_AREA: std::ops::Range<u64> = 0xffff_fe00_0000_0000..0xffff_fe80_0000_0000;
/// Kernel addresses have this bit.
const KERNEL: u64 = 1 << 63;

pub(in crate::arch) fn entry(saved: Option<&UserRegisters>, at_sample: &UserRegisters) -> Entry {
    let (Some(sp), Some(cx)) = (at_sample.get(SP), at_sample.get(CX)) else {
        return Entry::Saved;
    };
    if ENTRY_AREA.contains(&sp) {
        // On the way back, the registers have their values again.
        let back =
            |saved: &UserRegisters| saved.get(CX) == Some(cx) && saved.get(BP) == at_sample.get(BP);
        return match saved {
            Some(saved) if !back(saved) => Entry::Unsaved,
            _ => Entry::Saved,
        };
    }
    if (sp | cx) & KERNEL != 0 {
        return Entry::Saved;
    }
    called(sp, cx, at_sample).map_or(Entry::Saved, Entry::Called)
}

/// The registers of code that has just made a system call.
fn called(sp: u64, ip: u64, at_sample: &UserRegisters) -> Option<UserRegisters> {
    const MASK: u64 = 1 << BX | 1 << BP | 1 << SP | 1 << IP | 0xf << R12;
    let mut values = [0; MASK.count_ones() as usize];
    let numbers = (0..u64::BITS).filter(|number| MASK >> number & 1 != 0);
    for (value, number) in values.iter_mut().zip(numbers) {
        *value = match number {
            IP => ip,
            SP => sp,
            _ => at_sample.get(number)?,
        };
    }
    UserRegisters::new(at_sample.abi(), MASK, values)
}

#[cfg(test)]
mod tests {
    use prof_model::RegisterAbi;

    use super::*;

    /// bx cx bp sp r12 to r15
    const SAMPLED: u64 = 0xf0_00c6;

    fn registers(mask: u64, values: &[u64]) -> UserRegisters {
        UserRegisters::new(RegisterAbi::Bits64, mask, values.iter().copied()).unwrap()
    }

    fn check(at_sample: &[u64], expected: Entry) {
        // cx, bp, sp, ip
        let saved = registers(0x1c4, &[0x5000, 0x7ff0, 0x7fe0, 0x4000]);
        let at_sample = registers(SAMPLED, at_sample);
        assert_eq!(entry(Some(&saved), &at_sample), expected);
    }

    #[test]
    fn a_call_of_the_kernel_leaves_the_users_registers() {
        let all = 1 << BX | 1 << BP | 1 << SP | 1 << IP | 0xf << R12;
        let called = registers(all, &[1, 0x7ff8, 0x7fd0, 0x4010, 12, 13, 14, 15]);
        let at_sample = [1, 0x4010, 0x7ff8, 0x7fd0, 12, 13, 14, 15];
        check(&at_sample, Entry::Called(called));
        let kernel = 0xffff_c900_01ba_8000;
        check(&[1, 0x4010, 0x7ff8, kernel, 12, 13, 14, 15], Entry::Saved);
        check(&[1, kernel, 0x7ff8, 0x7fd0, 12, 13, 14, 15], Entry::Saved);
    }

    #[test]
    fn an_interrupt_of_user_code_hides_them_until_they_are_saved() {
        let area = 0xffff_fe00_0003_e000;
        check(&[1, 0x4010, 0x7ff8, area, 12, 13, 14, 15], Entry::Unsaved);
        check(&[1, 0x5000, 0x7ff8, area, 12, 13, 14, 15], Entry::Unsaved);
        check(&[1, 0x5000, 0x7ff0, area, 12, 13, 14, 15], Entry::Saved);
    }

    #[test]
    fn without_the_registers_nothing_is_known() {
        let none = registers(1, &[7]);
        assert_eq!(entry(None, &none), Entry::Saved);
    }
}
