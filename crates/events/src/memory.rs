//! The memory of a running process.

use std::num::NonZero;

use prof_model::Pid;
use rustix::io::Errno;

/// Reads the memory of a running process (process_vm_readv): allowed for root and, unless it
/// hides its memory, for its own user.
#[derive(Clone, Copy, Debug)]
pub struct LiveMemory {
    pid: NonZero<Pid>,
}

impl LiveMemory {
    /// The memory of the process `pid`; `None` for no valid process id.
    pub fn of(pid: Pid) -> Option<Self> {
        (pid > 0)
            .then(|| NonZero::new(pid))
            .flatten()
            .map(|pid| Self { pid })
    }

    /// Copies what is readable from `address` on, and returns how many bytes that was: less than
    /// the buffer has room for if unmapped memory begins before its end.
    ///
    /// # Errors
    ///
    /// EFAULT when not even the first byte can be read, EPERM, ESRCH.
    pub fn read(self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        let local = libc::iovec {
            iov_base: buffer.as_mut_ptr().cast(),
            iov_len: buffer.len(),
        };
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: buffer.len(),
        };
        // SAFETY: the local vector is the buffer, which is ours to write; the remote one is only
        // a number to the kernel.
        let read = unsafe {
            libc::process_vm_readv(self.pid.get(), &raw const local, 1, &raw const remote, 1, 0)
        };
        usize::try_from(read).map_err(|_| {
            Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_readable_and_null_is_not() {
        let here = [7_u8; 100];
        let memory = LiveMemory::of(std::process::id() as Pid).expect("a pid");
        let mut copy = [0; 100];
        assert_eq!(memory.read(here.as_ptr() as u64, &mut copy), Ok(100));
        assert_eq!(copy, here);
        assert_eq!(memory.read(0, &mut copy), Err(Errno::FAULT));
        assert!(LiveMemory::of(0).is_none());
    }
}
