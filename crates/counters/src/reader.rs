//! Reading a counter without a system call.

use prof_events::counting::{Inherit, RawCount, RawCounter, UserPage};

use crate::count::Count;
use crate::error::{ReadError, ReaderError};
use crate::member::{self, Baseline, Member};

/// Reads a counter of the calling thread without a system call, where kernel and processor allow
/// it (`rdpmc`), and with one where not: software events, or while the event is not on the
/// hardware.
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
/// A reset of the counter after the reader was made does not reach the reader.
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
        Ok(Self {
            event,
            page: event.user_page()?,
            baseline,
        })
    }

    /// What the counter counted. The times may be of the thread's last switch onto a CPU where the
    /// processor's time stamps don't serve as a clock.
    ///
    /// # Errors
    ///
    /// When it took a system call, and that failed.
    #[inline]
    pub fn read(&self) -> Result<Count, ReadError> {
        match self.page.read() {
            Some(count) => {
                let (value, enabled, running) = (count.value, count.enabled, count.running);
                Ok(member::since(
                    RawCount {
                        value,
                        enabled,
                        running,
                    },
                    &self.baseline,
                ))
            }
            None => Ok(member::since(member::read(self.event)?, &self.baseline)),
        }
    }

    /// Whether the counter can be read without a system call at this moment.
    pub fn is_direct(&self) -> bool {
        self.page.read().is_some()
    }
}
