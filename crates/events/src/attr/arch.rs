//! The differences between processor architectures.

#[cfg(target_arch = "aarch64")]
use prof_model::perf_registers::aarch64;
#[cfg(target_arch = "x86_64")]
use prof_model::perf_registers::x86_64;
use prof_model::perf_registers::{INSTRUCTION_POINTER, STACK_POINTER};

/// The user registers to sample: all general ones, the flags, CS and SS; the kernel has no
/// DS, ES, FS and GS in 64-bit mode.
#[cfg(target_arch = "x86_64")]
pub(crate) const USER_REGISTERS: u64 = x86_64::ALL;

/// The user registers to sample.
#[cfg(target_arch = "aarch64")]
pub(crate) const USER_REGISTERS: u64 = aarch64::ALL;

/// The registers that show the state of the user's code at the kernel's entry: a system call keeps
/// bx, bp, r12 to r15 and for a few instructions sp, and has the instruction pointer in cx.
#[cfg(target_arch = "x86_64")]
pub(crate) const ENTRY_REGISTERS: u64 =
    1 << x86_64::BX | 1 << x86_64::CX | 1 << x86_64::BP | 1 << x86_64::SP | 0xf << x86_64::R12;

/// Interrupts do not occur there.
#[cfg(target_arch = "aarch64")]
pub(crate) const ENTRY_REGISTERS: u64 = 0;

/// The registers that /proc shows of a blocked thread: its stack pointer and its instruction
/// pointer.
pub(crate) const BLOCKED_REGISTERS: u64 = 1 << STACK_POINTER | 1 << INSTRUCTION_POINTER;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("prof samples x86_64 and aarch64 only");

/// Words of `user_regs_struct`, the debuggers' view of registers: r15 r14 r13 r12 rbp rbx r11 r10
/// r9 r8 rax rcx rdx rsi rdi orig_rax rip cs eflags rsp ss fs_base gs_base ds es fs gs.
#[cfg(target_arch = "x86_64")]
pub(crate) const DEBUGGER_REGISTERS: usize = 27;

/// Where the sampled registers are among them: ax bx cx dx si di bp sp ip flags cs ss r8 to r15.
#[cfg(target_arch = "x86_64")]
pub(crate) const SAMPLED_FROM_DEBUGGER: [usize; 20] = [
    10, 5, 11, 12, 13, 14, 4, 19, 16, 18, 17, 20, 9, 8, 7, 6, 3, 2, 1, 0,
];

#[cfg(target_arch = "x86_64")]
pub(crate) const DEBUGGER_IP: usize = 16;
#[cfg(target_arch = "x86_64")]
pub(crate) const DEBUGGER_SP: usize = 19;

/// Among the 32-bit words of `user_regs_struct32`: eip and esp.
#[cfg(target_arch = "x86_64")]
pub(crate) const COMPAT_IP: usize = 12;
#[cfg(target_arch = "x86_64")]
pub(crate) const COMPAT_SP: usize = 15;

/// Where the sampled registers are among the words of a 32-bit program: ebx ecx edx esi edi ebp eax
/// ds es fs gs orig_eax eip cs eflags esp ss. It has no r8 to r15.
#[cfg(target_arch = "x86_64")]
pub(crate) const SAMPLED_FROM_COMPAT: [usize; 20] = {
    const NONE: usize = usize::MAX;
    [
        6, 0, 1, 2, 3, 4, 5, 15, 12, 14, 13, 16, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE,
    ]
};

/// Words of `user_regs_struct`: x0 to x30, sp, pc, pstate.
#[cfg(target_arch = "aarch64")]
pub(crate) const DEBUGGER_REGISTERS: usize = 34;

/// The sampled ones are the first.
#[cfg(target_arch = "aarch64")]
pub(crate) const SAMPLED_FROM_DEBUGGER: [usize; 33] = [
    0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25,
    26, 27, 28, 29, 30, 31, 32,
];

#[cfg(target_arch = "aarch64")]
pub(crate) const DEBUGGER_IP: usize = 32;
#[cfg(target_arch = "aarch64")]
pub(crate) const DEBUGGER_SP: usize = 31;

/// Among the 32-bit words of a 32-bit program's registers: pc and sp.
#[cfg(target_arch = "aarch64")]
pub(crate) const COMPAT_IP: usize = 15;
#[cfg(target_arch = "aarch64")]
pub(crate) const COMPAT_SP: usize = 13;

/// r0 to r14; the kernel's samples have sp and pc of 32-bit programs where 64-bit ones have theirs.
#[cfg(target_arch = "aarch64")]
pub(crate) const SAMPLED_FROM_COMPAT: [usize; 33] = {
    let mut from = [usize::MAX; 33];
    let mut register = 0;
    while register < 15 {
        from[register] = register;
        register += 1;
    }
    from[31] = COMPAT_SP;
    from[32] = COMPAT_IP;
    from
};
