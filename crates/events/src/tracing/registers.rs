//! The registers of a stopped thread, in the order of perf's samples.

use prof_model::{RegisterAbi, Tid, UserRegisters};
use rustix::io::Errno;

use super::calls;
use crate::attr::arch;

/// The state of a stopped thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedRegisters {
    /// The next instruction.
    pub ip: u64,
    /// The top of its stack.
    pub sp: u64,
    /// All registers of a sample.
    pub user: Option<UserRegisters>,
}

/// Reads them in the layout for debuggers (NT_PRSTATUS): `user_regs_struct` of sys/user.h, which is
/// words.
pub(super) fn read(tid: Tid) -> Result<StoppedRegisters, Errno> {
    let mut bytes = [0; arch::DEBUGGER_REGISTERS * 8];
    let length = calls::registers(tid, &mut bytes)?;
    if length < bytes.len() {
        return compat(&bytes[..length]).ok_or(Errno::NOTSUP);
    }
    let word = |index: usize| {
        let word = bytes.get(index * 8..index * 8 + 8)?;
        Some(u64::from_ne_bytes(word.try_into().ok()?))
    };
    let values = arch::SAMPLED_FROM_DEBUGGER
        .iter()
        .map(|&index| word(index).unwrap_or(0));
    let user = UserRegisters::new(RegisterAbi::Bits64, arch::USER_REGISTERS, values);
    Ok(StoppedRegisters {
        ip: word(arch::DEBUGGER_IP).ok_or(Errno::NOTSUP)?,
        sp: word(arch::DEBUGGER_SP).ok_or(Errno::NOTSUP)?,
        user,
    })
}

/// The registers of a 32-bit program: `user_regs_struct32`, which is words of 32 bits. Missing
/// registers are 0.
fn compat(bytes: &[u8]) -> Option<StoppedRegisters> {
    let word = |index: usize| {
        let start = index.checked_mul(4)?;
        let word = bytes.get(start..start + 4)?;
        Some(u64::from(u32::from_ne_bytes(word.try_into().ok()?)))
    };
    let values = arch::SAMPLED_FROM_COMPAT
        .iter()
        .map(|&index| word(index).unwrap_or(0));
    Some(StoppedRegisters {
        ip: word(arch::COMPAT_IP)?,
        sp: word(arch::COMPAT_SP)?,
        user: UserRegisters::new(RegisterAbi::Bits32, arch::USER_REGISTERS, values),
    })
}
