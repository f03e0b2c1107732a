//! Reading a counter without a system call.

use std::time::{Duration, Instant};

use prof_events::counting::{Inherit, RawCount, RawCounter, UserPage};

use crate::count::Count;
use crate::error::{ReadError, ReaderError};
use crate::member::{self, Baseline, Member};

/// Reads a counter of the calling thread in the fastest way.
///
/// It needs no system call if kernel and processor allow that (`rdpmc`): tens of nanoseconds
/// instead of hundreds. It uses a system call for software events, while the event is not on the
/// hardware, and in virtual machines that make `rdpmc` slow: it measures once which is faster, when
/// it is created.
///
/// It stays on its thread:
///
/// ```compile_fail
/// fn send<T: Send>(_: T) {}
/// fn other_thread(counter: &prof_counters::Counter) {
///     send(counter.reader().unwrap());
/// }
/// ```
///
/// A later reset of the counter does not affect the reader.
///
/// ```
/// use prof_counters::{Counter, Target, event};
///
/// let clock = Counter::new(&event("task-clock:u")?, Target::ThisThread)?;
/// clock.enable()?;
/// let reader = clock.reader()?;
/// let before = reader.read()?;
/// let after = reader.read()?;
/// assert!(after.value >= before.value);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Reader<'a> {
    event: &'a RawCounter,
    page: UserPage,
    baseline: Baseline,
    /// Whether the page is the faster way.
    prefers_page: bool,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(member: &'a Member) -> Result<Self, ReaderError> {
        if !member.places.is_this_thread() {
            return Err(ReaderError::NotThisThread);
        }
        let inherits = member
            .spec
            .terms
            .inherit
            .unwrap_or(member.options.inherit != Inherit::No);
        if inherits {
            return Err(ReaderError::Inherited);
        }
        let event = member.opened().next().ok_or(ReaderError::NotThisThread)?;
        let baseline = member.baselines().first().copied().unwrap_or_default();
        let mut reader = Self {
            event,
            page: event.user_page()?,
            baseline,
            prefers_page: false,
        };
        reader.prefers_page = reader.page_is_faster();
        Ok(reader)
    }

    /// The count of the counter.
    ///
    /// # Errors
    ///
    /// A system call was needed, and failed.
    #[inline]
    pub fn read(&self) -> Result<Count, ReadError> {
        if self.prefers_page
            && let Some(count) = self.direct()
        {
            return Ok(count);
        }
        Ok(member::since(member::read(self.event)?, &self.baseline))
    }

    /// The count of the counter, read without a system call; `None` if that is not possible at this
    /// moment. The times may be of the thread's last switch onto a CPU, if the processor's time
    /// stamps are not usable as a clock.
    #[inline]
    pub fn direct(&self) -> Option<Count> {
        let count = self.page.read()?;
        let count = RawCount {
            value: count.value,
            enabled: count.enabled,
            running: count.running,
        };
        Some(member::since(count, &self.baseline))
    }

    /// Whether [`read`](Self::read) avoids system calls if possible.
    pub fn is_direct(&self) -> bool {
        self.prefers_page
    }

    fn page_is_faster(&self) -> bool {
        const ATTEMPTS: usize = 16;
        let shortest = |read: &dyn Fn() -> bool| -> Option<Duration> {
            let time = || {
                let start = Instant::now();
                let good = read();
                (start.elapsed(), good)
            };
            (0..ATTEMPTS)
                .map(|_| time())
                .filter(|(_, good)| *good)
                .map(|(time, _)| time)
                .min()
        };
        let page = shortest(&|| self.page.read().is_some());
        let call = shortest(&|| self.event.read().is_ok());
        // An event that is not on the hardware now may be there later.
        page.zip(call).is_none_or(|(page, call)| page < call)
    }
}
