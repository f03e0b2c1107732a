//! The memory of a running process.

use std::num::NonZero;
use std::ops::Range;

use prof_model::{Pid, Tid};
use rustix::io::Errno;

/// Reads the memory of a running process (process_vm_readv): allowed for root and, unless it
/// hides its memory, for its own user.
#[derive(Clone, Copy, Debug)]
pub struct LiveMemory {
    pid: NonZero<Pid>,
    tid: Tid,
}

impl LiveMemory {
    /// The memory of the process `pid`, of which `tid` is a thread; `None` for no valid process
    /// id. It can be read until both the main thread and this one have ended.
    pub fn of(pid: Pid, tid: Tid) -> Option<Self> {
        (pid > 0)
            .then(|| NonZero::new(pid))
            .flatten()
            .map(|pid| Self { pid, tid })
    }

    /// Copies readable memory from `address` on, and returns how many bytes: fewer than the
    /// buffer's size if unmapped memory begins before its end.
    ///
    /// # Errors
    ///
    /// EFAULT when not even the first byte can be read, EPERM, ESRCH.
    pub fn read(self, address: u64, buffer: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: the buffer is ours to write.
        unsafe { self.read_to(address, buffer.as_mut_ptr(), buffer.len()) }
    }

    /// Copies these ranges of memory, one after the other, with one system call, and returns how
    /// many bytes: fewer than the buffer's size if some range is not readable to its end, or there
    /// are more than 1,024.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn read_ranges(self, ranges: &[Range<u64>], buffer: &mut [u8]) -> Result<usize, Errno> {
        let remote: Vec<_> = (ranges.iter().take(libc::UIO_MAXIOV as usize))
            .map(|range| libc::iovec {
                iov_base: range.start as *mut libc::c_void,
                iov_len: range.end.saturating_sub(range.start) as usize,
            })
            .collect();
        // SAFETY: the buffer is ours to write.
        unsafe { self.read_vectors(&remote, buffer.as_mut_ptr(), buffer.len()) }
    }

    /// Appends at most `length` bytes from `address` on to `out`, and returns how many.
    ///
    /// # Errors
    ///
    /// As for [`read`](Self::read).
    pub fn append(self, address: u64, length: usize, out: &mut Vec<u8>) -> Result<usize, Errno> {
        out.reserve(length);
        let spare = out.spare_capacity_mut();
        let length = length.min(spare.len());
        // SAFETY: the spare capacity is ours to write, and the bytes that the kernel reports as
        // written are initialized and become part of the vector.
        unsafe {
            let read = self.read_to(address, spare.as_mut_ptr().cast(), length)?;
            out.set_len(out.len() + read.min(length));
            Ok(read)
        }
    }

    /// # Safety
    ///
    /// `length` bytes at `to` must be valid for writes.
    unsafe fn read_to(self, address: u64, to: *mut u8, length: usize) -> Result<usize, Errno> {
        let remote = libc::iovec {
            iov_base: address as *mut libc::c_void,
            iov_len: length,
        };
        // SAFETY: as the caller promises.
        unsafe { self.read_vectors(&[remote], to, length) }
    }

    /// # Safety
    ///
    /// `length` bytes at `to` must be valid for writes.
    unsafe fn read_vectors(
        self,
        remote: &[libc::iovec],
        to: *mut u8,
        length: usize,
    ) -> Result<usize, Errno> {
        // SAFETY: as the caller promises.
        let read = |id| unsafe { read_by(id, remote, to, length) };
        match read(self.pid.get()) {
            // A main thread that has ended has no memory, the others still do.
            Err(Errno::SRCH) if self.tid > 0 && self.tid != self.pid.get() => read(self.tid),
            result => result,
        }
    }
}

/// Reads the memory of a process by the id of one of its threads.
///
/// # Safety
///
/// `length` bytes at `to` must be valid for writes.
unsafe fn read_by(
    tid: Tid,
    remote: &[libc::iovec],
    to: *mut u8,
    length: usize,
) -> Result<usize, Errno> {
    let local = libc::iovec {
        iov_base: to.cast(),
        iov_len: length,
    };
    // SAFETY: the local vector is the caller's memory, valid for writes; the remote ones are
    // only numbers to the kernel.
    let read = unsafe {
        libc::process_vm_readv(
            tid,
            &raw const local,
            1,
            remote.as_ptr(),
            remote.len() as libc::c_ulong,
            0,
        )
    };
    usize::try_from(read)
        .map_err(|_| Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_memory_is_readable_and_null_is_not() {
        let here = [7_u8; 100];
        let own = std::process::id() as Pid;
        let memory = LiveMemory::of(own, own).expect("a pid");
        let mut copy = [0; 100];
        assert_eq!(memory.read(here.as_ptr() as u64, &mut copy), Ok(100));
        assert_eq!(copy, here);
        let mut out = vec![1];
        assert_eq!(memory.append(here.as_ptr() as u64, 50, &mut out), Ok(50));
        assert_eq!(out.get(1..), here.get(..50));
        let start = here.as_ptr() as u64;
        let parts = [start..start + 10, start + 90..start + 100];
        assert_eq!(memory.read_ranges(&parts, &mut copy), Ok(20));
        let partly = [start..start + 10, 0..10, start..start + 10];
        assert_eq!(memory.read_ranges(&partly, &mut copy), Ok(10));
        assert_eq!(memory.read(0, &mut copy), Err(Errno::FAULT));
        assert!(LiveMemory::of(0, 0).is_none());
    }
}
