//! A signal for each sample, or only for rings that have filled.
//!
//! The watermark of a ring is fixed when it is mapped. In addition, the kernel can send a signal
//! for each sample (perf_event_open(2), "Overflow handling"), which one system call enables or
//! disables. It goes to the watchers of the rings, or to the reader if there are none:
//!
//! ```text
//!   on:   sample ── interrupt to itself ── signal ──> watcher     2 to 4 µs of the target's time
//!   off:  sample   sample   sample   sample           reader looks when it likes
//! ```

use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use rustix::io::Errno;

use crate::kernel;
use crate::process::signals::ThreadSignal;

/// Signals samples to the thread that requested it, or to those that watch the rings.
#[derive(Debug)]
pub(crate) struct OverflowSignal {
    /// `None` if it goes to the threads that watch the rings.
    own: Option<ThreadSignal>,
    on: bool,
}

impl OverflowSignal {
    /// Makes these events signal the calling thread for each sample, once it is
    /// [enabled](Self::set).
    pub(crate) fn begin<'a>(events: impl Iterator<Item = BorrowedFd<'a>>) -> io::Result<Self> {
        let signal = ThreadSignal::block()?;
        for event in events {
            kernel::signal_thread(event, ThreadSignal::this_thread(), ThreadSignal::NUMBER)?;
        }
        Ok(Self {
            own: Some(signal),
            on: false,
        })
    }

    /// Enables or disables the signal of the same events, by a system call for each.
    pub(crate) fn set<'a>(
        &mut self,
        on: bool,
        mut events: impl Iterator<Item = BorrowedFd<'a>>,
    ) -> Result<(), Errno> {
        if on == self.on {
            return Ok(());
        }
        self.on = on;
        events.try_for_each(|event| kernel::set_async(event, on))?;
        if !on {
            // Not when it is enabled: signals that come meanwhile count.
            self.clear();
        }
        Ok(())
    }

    /// Drops the signals that have come so far.
    pub(crate) fn clear(&self) {
        if let Some(own) = &self.own {
            own.clear();
        }
    }

    /// The signals were redirected to the threads that watch the rings.
    pub(crate) fn leave_to_watches(&mut self) {
        self.own = None;
    }

    pub(crate) fn goes_to_watches(&self) -> bool {
        self.own.is_none()
    }

    /// Readable when a sample has come, unless that is left to the threads that watch.
    pub(crate) fn readable(&self) -> Option<BorrowedFd<'_>> {
        self.own.as_ref().map(AsFd::as_fd)
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;
    use std::time::Duration;

    use super::*;
    use crate::Ring;
    use crate::attr::setup::{Sampling, Scope, Setup};
    use crate::parsing::EventSpec;
    use crate::request::target_threads::MonitoredThreads;
    use crate::wait_readable;

    /// Goes on until that many samples are in the ring.
    fn sampled(ring: &mut Ring, many: usize) {
        let mut samples = 0;
        while samples < many {
            (0..100_000_u64).for_each(|number| _ = black_box(number));
            ring.drain(|_| samples += 1);
        }
    }

    #[test]
    fn samples_are_signalled_only_on_request() {
        let mut setup = Setup::new(EventSpec::cpu_clock(), Sampling::Period(100_000));
        setup.scope = Scope::Thread;
        // So that everybody may.
        setup.spec.modifiers.kernel = false;
        let event =
            kernel::open(&mut setup.attr(), MonitoredThreads::CALLER, None, None).expect("a clock");
        let mut ring = Ring::map(event.as_fd(), 64 << 10).expect("a ring");
        let events = || [event.as_fd()].into_iter();
        let mut overflow_signal = OverflowSignal::begin(events()).expect("a descriptor");
        let mut check = |overflow_signal: &OverflowSignal, expected: bool| {
            sampled(&mut ring, 3);
            let readable = overflow_signal.readable().expect("our own");
            let signalled = wait_readable(&[readable], Some(Duration::ZERO));
            assert_eq!(signalled.ok(), Some(expected));
        };
        kernel::enable(event.as_fd()).expect("it goes on");
        check(&overflow_signal, false);
        overflow_signal.set(true, events()).expect("a descriptor");
        check(&overflow_signal, true);
        overflow_signal.set(false, events()).expect("a descriptor");
        check(&overflow_signal, false);
        overflow_signal.set(true, events()).expect("a descriptor");
        check(&overflow_signal, true);
        overflow_signal.clear();
    }
}
