//! The numbers of registers in perf's samples (asm/perf_regs.h of each architecture).

/// `enum perf_event_x86_regs`: AX BX CX DX SI DI BP SP IP, flags and segments, R8 to R15.
pub mod x86_64 {
    /// RBX.
    pub const BX: u32 = 1;
    /// RCX.
    pub const CX: u32 = 2;
    /// RBP.
    pub const BP: u32 = 6;
    /// RSP.
    pub const SP: u32 = 7;
    /// RIP.
    pub const IP: u32 = 8;
    /// R12; R13 to R15 follow.
    pub const R12: u32 = 20;
    /// The registers of a call's first arguments (System V ABI): RDI, RSI, RDX, RCX.
    pub const ARGUMENTS: [u32; 4] = [5, 4, 3, CX];
    /// All registers of 64-bit code: without DS, ES, FS and GS.
    pub const ALL: u64 = 0xff_0fff;
}

/// `enum perf_event_arm_regs`: X0 to X30, SP, PC, as DWARF has them.
pub mod aarch64 {
    /// X29, which points to a frame record.
    pub const FP: u32 = 29;
    /// The stack pointer.
    pub const SP: u32 = 31;
    /// The program counter.
    pub const PC: u32 = 32;
    /// The registers of a call's first arguments (AAPCS64).
    pub const ARGUMENTS: [u32; 4] = [0, 1, 2, 3];
    /// All registers.
    pub const ALL: u64 = (1 << 33) - 1;
}

/// The stack pointer of this machine.
pub const STACK_POINTER: u32 = if cfg!(target_arch = "aarch64") {
    aarch64::SP
} else {
    x86_64::SP
};

/// The instruction pointer of this machine.
pub const INSTRUCTION_POINTER: u32 = if cfg!(target_arch = "aarch64") {
    aarch64::PC
} else {
    x86_64::IP
};

/// The registers of a call's first arguments on this machine.
pub const ARGUMENTS: [u32; 4] = if cfg!(target_arch = "aarch64") {
    aarch64::ARGUMENTS
} else {
    x86_64::ARGUMENTS
};
