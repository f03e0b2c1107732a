//! Waiting for readable descriptors.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Waits until one of these can be read, or has ended, or the time is over: `false` for the last.
///
/// # Errors
///
/// When the system refuses to wait, which does not happen.
pub fn wait_readable(fds: &[BorrowedFd<'_>], timeout: Option<Duration>) -> io::Result<bool> {
    let mut polled: Vec<_> = fds
        .iter()
        .map(|fd| PollFd::new(fd, PollFlags::IN))
        .collect();
    let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
    match rustix::event::poll(&mut polled, timeout.as_ref()) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(errno) => Err(errno.into()),
    }
}
