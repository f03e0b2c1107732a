//! Waiting for records.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use rustix::event::Timespec;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::io::Errno;

use crate::kernel;
use crate::sampler::overflow_signal::OverflowSignal;
use crate::sampler::{Sampler, Stream};

/// The reason why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wake {
    /// Whether all threads that were sampled have ended.
    pub all_ended: bool,
}

impl Sampler {
    /// Makes [`wait`](Self::wait) also end when `fd`, which must stay open, is readable.
    ///
    /// # Errors
    ///
    /// When the system refuses to wait for it: it is an ordinary file.
    pub fn watch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let data = EventData::new_u64(Self::WATCHED);
        epoll::add(&self.waiter, fd, data, EventFlags::IN)?;
        Ok(())
    }

    /// Undoes [`watch`](Self::watch).
    ///
    /// # Errors
    ///
    /// When it is not watched.
    pub fn unwatch(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Ok(epoll::delete(&self.waiter, fd)?)
    }

    /// Like [`watch`](Self::watch), of the signals to this process. While threads watch the rings,
    /// they are noticed with a delay instead: a descriptor for signals wakes its pollers with each
    /// signal to any thread of the process (`signalfd_notify` in Linux), so with each sample.
    ///
    /// # Errors
    ///
    /// When the process has no more file descriptors.
    pub fn watch_signals(&mut self, fd: BorrowedFd<'_>) -> io::Result<()> {
        let signals = fd.try_clone_to_owned()?;
        self.watch(signals.as_fd())?;
        self.signals = Some(signals);
        Ok(())
    }

    /// Waits until a ring has filled to its wake-up mark, a sample comes that is to be
    /// [signalled](Self::signal_each_overflow), something that is watched can be read,
    /// all sampled threads have ended, or the time is over.
    ///
    /// # Errors
    ///
    /// When the system refuses to wait, which does not happen.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<Wake> {
        let timeout = match self.leaves_rings {
            true => Some(timeout.unwrap_or(Duration::MAX).min(Self::SIGNAL_DELAY)),
            false => timeout,
        };
        let timeout = timeout.and_then(|time| Timespec::try_from(time).ok());
        let mut buffer = [const { MaybeUninit::uninit() }; 64];
        let ready = match epoll::wait(&self.waiter, &mut buffer, timeout.as_ref()) {
            Ok((ready, _)) => &*ready,
            Err(Errno::INTR) => &[],
            Err(errno) => return Err(errno.into()),
        };
        for event in ready {
            // Copied out, because the kernel's structure is packed.
            let (flags, data) = (event.flags, event.data);
            if flags.intersects(EventFlags::HUP | EventFlags::ERR) {
                self.next_of(data.u64())?;
            }
            if data.u64() == Self::OVERFLOW
                && let Some(signal) = &self.overflow_signal
            {
                signal.clear();
            }
        }
        if self.leaves_rings {
            self.notice_ends()?;
        }
        let over = |stream: &Stream| stream.waiting >= stream.events.len();
        Ok(Wake {
            all_ended: self.streams.iter().all(over),
        })
    }

    /// Makes waits end with the signal of a sample, unless that goes to other threads.
    pub(super) fn wait_for_overflow(&self, signal: &OverflowSignal) -> Result<(), Errno> {
        let Some(readable) = signal.readable() else {
            return Ok(());
        };
        let data = EventData::new_u64(Self::OVERFLOW);
        epoll::add(&self.waiter, readable, data, EventFlags::IN)
    }

    const WATCHED: u64 = u64::MAX;
    const OVERFLOW: u64 = u64::MAX - 1;
    /// After this long, a person would notice that a signal has no effect.
    const SIGNAL_DELAY: Duration = Duration::from_millis(200);

    /// Leaves it to the threads that watch the rings to say when one fills, or not any more. The
    /// kernel wakes everyone who polls an event when it sends the signal of a sample, and everyone
    /// who polls signals: this thread would be woken with each sample, for nothing.
    pub(super) fn leave_rings(&mut self, leaves: bool) -> Result<(), Errno> {
        if self.leaves_rings == leaves {
            return Ok(());
        }
        self.leaves_rings = leaves;
        if let Some(signals) = &self.signals {
            let data = EventData::new_u64(Self::WATCHED);
            match leaves {
                true => epoll::delete(&self.waiter, signals)?,
                false => epoll::add(&self.waiter, signals, data, EventFlags::IN)?,
            }
        }
        let mut streams = self.streams.iter().enumerate();
        streams.try_for_each(|(number, stream)| match leaves {
            true => self.wait_no_more_for(stream),
            false => self.wait_for(number, stream),
        })
    }

    /// Finds streams whose threads have all ended, of those that are not waited for.
    fn notice_ends(&mut self) -> Result<(), Errno> {
        for stream in &mut self.streams {
            while let Some(event) = stream.events.get(stream.waiting)
                && kernel::has_hung_up(event.fd.as_fd())?
            {
                stream.waiting += 1;
            }
        }
        Ok(())
    }

    /// All threads of the event by which a stream was awaited have ended: awaits its next event.
    fn next_of(&mut self, number: u64) -> Result<(), Errno> {
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let Some(stream) = self.streams.get(number) else {
            return Ok(());
        };
        self.wait_no_more_for(stream)?;
        let Some(stream) = self.streams.get_mut(number) else {
            return Ok(());
        };
        stream.waiting += 1;
        match self.streams.get(number) {
            Some(stream) => self.wait_for(number, stream),
            None => Ok(()),
        }
    }

    fn wait_no_more_for(&self, stream: &Stream) -> Result<(), Errno> {
        match stream.events.get(stream.waiting) {
            Some(event) => epoll::delete(&self.waiter, &event.fd),
            None => Ok(()),
        }
    }

    pub(crate) fn wait_for(&self, number: usize, stream: &Stream) -> Result<(), Errno> {
        let Some(event) = stream.events.get(stream.waiting) else {
            return Ok(());
        };
        let data = EventData::new_u64(number as u64);
        epoll::add(&self.waiter, &event.fd, data, EventFlags::IN)
    }

    /// The end of all threads makes the counters permanently readable, so it is reported once.
    pub(crate) fn wait_for_exits(&self, stream: &Stream) -> Result<(), Errno> {
        let Some(event) = stream.exit_counters.waiting() else {
            return Ok(());
        };
        let data = EventData::new_u64(Self::WATCHED);
        epoll::add(&self.waiter, event, data, EventFlags::IN | EventFlags::ET)
    }
}
