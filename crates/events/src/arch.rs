//! What differs between processor architectures.

/// The user registers to sample, as bits of `enum perf_event_x86_regs`: all general ones, the
/// flags, CS and SS; DS, ES, FS and GS are not to be had in 64-bit mode.
#[cfg(target_arch = "x86_64")]
pub(crate) const USER_REGISTERS: u64 = 0xff_0fff;

/// The user registers to sample, as bits of `enum perf_event_arm_regs`: x0 to x30, sp and pc.
#[cfg(target_arch = "aarch64")]
pub(crate) const USER_REGISTERS: u64 = (1 << 33) - 1;

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
compile_error!("prof samples x86_64 and aarch64 only");
