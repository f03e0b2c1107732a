//! How long prof waits for another process: until a deadline, or until a signal ends it.

use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use prof_events::Signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// The end of all waits of an exchange. A process that answers a little each time does not move it.
pub(super) struct Deadline<'a> {
    signals: &'a Signals,
    end: Instant,
}

impl<'a> Deadline<'a> {
    /// So long from now, unless one of these signals comes.
    pub(super) fn after(time: Duration, signals: &'a Signals) -> Self {
        let end = Instant::now() + time;
        Self { signals, end }
    }

    /// So long from now, and no later than this one.
    pub(super) fn at_most(&self, time: Duration) -> Self {
        Self {
            signals: self.signals,
            end: self.end.min(Instant::now() + time),
        }
    }

    /// Whether it is over.
    pub(super) fn has_passed(&self) -> bool {
        Instant::now() >= self.end
    }

    /// Waits until a descriptor that never blocks can be read from or written to.
    ///
    /// # Errors
    ///
    /// `TimedOut` at the deadline, `Interrupted` after a signal.
    pub(super) fn ready(&self, fd: BorrowedFd<'_>, to: PollFlags) -> io::Result<()> {
        while !self.wait(Some((fd, to)), self.end)? {}
        Ok(())
    }

    /// Waits a moment, for what no descriptor announces.
    ///
    /// # Errors
    ///
    /// As [`ready`](Self::ready).
    pub(super) fn pause(&self) -> io::Result<()> {
        const MOMENT: Duration = Duration::from_millis(10);
        self.wait(None, Instant::now() + MOMENT).map(drop)
    }

    /// Waits until a descriptor is ready, which it returns, or until this time.
    fn wait(&self, other: Option<(BorrowedFd<'_>, PollFlags)>, until: Instant) -> io::Result<bool> {
        if self.has_passed() {
            return Err(io::Error::new(ErrorKind::TimedOut, "it does not answer"));
        }
        let left = until
            .min(self.end)
            .saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).map_err(io::Error::other)?;
        let signals = self.signals.as_fd();
        let (fd, to) = other.unwrap_or((signals, PollFlags::IN));
        let mut polled = [
            PollFd::from_borrowed_fd(signals, PollFlags::IN),
            PollFd::from_borrowed_fd(fd, to),
        ];
        match poll(&mut polled, Some(&left)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        // A request for another file comes too late, and ends nothing.
        while let Some(signal) = self.signals.next() {
            if !signal.rotates() {
                return Err(io::Error::new(
                    ErrorKind::Interrupted,
                    "a signal ended the wait for its answer",
                ));
            }
        }
        Ok(other.is_some() && !polled[1].revents().is_empty())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn no_wait_is_longer_than_all() {
        let signals = Signals::block().expect("a descriptor");
        let all = Deadline::after(Duration::ZERO, &signals);
        let one = all.at_most(Duration::from_secs(3600));
        assert!(one.has_passed());
        let (silent, _peer) = UnixStream::pair().expect("sockets");
        for waited in [one.ready(silent.as_fd(), PollFlags::IN), one.pause()] {
            assert_eq!(waited.unwrap_err().kind(), ErrorKind::TimedOut);
        }
        // What is ready is not waited for.
        let one = Deadline::after(Duration::from_secs(3600), &signals);
        one.ready(silent.as_fd(), PollFlags::OUT).expect("ready");
    }
}
