//! Waits for the first of: a signal, the end of a target, the end of an interval.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

use prof_events::{Interrupt, Signals};
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// What ended the wait.
pub(super) enum Wake {
    Signal(Interrupt),
    /// All targets have ended.
    Ended,
    /// The time is up.
    Time,
}

/// Waits until a descriptor is readable, which is then removed from `ends`, a signal arrives, or
/// the time is up.
pub(super) fn wait(
    ends: &mut Vec<BorrowedFd<'_>>,
    signals: &Signals,
    until: Option<Instant>,
) -> io::Result<Wake> {
    let waiting = !ends.is_empty();
    loop {
        if let Some(signal) = signals.next() {
            return Ok(Wake::Signal(signal));
        }
        if waiting && ends.is_empty() {
            return Ok(Wake::Ended);
        }
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        if left == Some(Duration::ZERO) {
            return Ok(Wake::Time);
        }
        let timeout = left.map(timespec);
        let mut polled = vec![PollFd::from_borrowed_fd(signals.as_fd(), PollFlags::IN)];
        polled.extend(
            ends.iter()
                .map(|end| PollFd::from_borrowed_fd(*end, PollFlags::IN)),
        );
        match rustix::event::poll(&mut polled, timeout.as_ref()) {
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno.into()),
        }
        let mut ended = polled
            .iter()
            .skip(1)
            .map(|polled| !polled.revents().is_empty());
        ends.retain(|_| !ended.next().unwrap_or(false));
    }
}

fn timespec(time: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(time.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: time.subsec_nanos().into(),
    }
}
