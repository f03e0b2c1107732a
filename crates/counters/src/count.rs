//! The count of one event.

/// The count of one event, and its times.
///
/// Over several places (the threads of a process, the CPUs of a machine) all three are sums.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Count {
    /// The count, in 64 bits whatever the hardware's width; nanoseconds for the clocks.
    pub value: u64,
    /// Nanoseconds that the event was enabled while its target was on a CPU.
    pub enabled: u64,
    /// Nanoseconds for which it really counted: less than `enabled` if events are multiplexed on
    /// the hardware.
    pub running: u64,
}

impl Count {
    /// The estimated count for all of the time that the event was enabled; `None` if it never
    /// counted though it was enabled.
    ///
    /// ```
    /// use prof_counters::Count;
    ///
    /// let half = Count { value: 100, enabled: 1000, running: 500 };
    /// assert_eq!(half.scaled(), Some(200));
    /// let never = Count { value: 0, enabled: 1000, running: 0 };
    /// assert_eq!(never.scaled(), None);
    /// ```
    pub fn scaled(&self) -> Option<u64> {
        match (self.enabled, self.running) {
            (enabled, running) if running >= enabled => Some(self.value),
            (_, 0) => None,
            (enabled, running) => {
                let scaled = u128::from(self.value) * u128::from(enabled) / u128::from(running);
                Some(u64::try_from(scaled).unwrap_or(u64::MAX))
            }
        }
    }

    /// Whether it counted for only a part of the time, so that [`scaled`](Self::scaled) is an
    /// estimate.
    pub fn is_partial(&self) -> bool {
        self.running < self.enabled
    }

    /// The share of the time that it counted, from 0 to 1; `None` if it was never enabled, or its
    /// target never ran.
    pub fn share(&self) -> Option<f64> {
        (self.enabled > 0).then(|| (self.running as f64 / self.enabled as f64).min(1.0))
    }

    /// The sum of both. Counts wrap at 64 bits, as in hardware, so that differences are right
    /// wherever they start.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            value: self.value.wrapping_add(other.value),
            enabled: self.enabled.wrapping_add(other.enabled),
            running: self.running.wrapping_add(other.running),
        }
    }

    /// The difference to an earlier read of the same counter.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            value: self.value.wrapping_sub(earlier.value),
            enabled: self.enabled.wrapping_sub(earlier.enabled),
            running: self.running.wrapping_sub(earlier.running),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scaling() {
        let check = |value, enabled, running, expected| {
            assert_eq!(
                Count {
                    value,
                    enabled,
                    running
                }
                .scaled(),
                expected
            );
        };
        check(0, 0, 0, Some(0));
        check(7, 10, 10, Some(7));
        check(7, 30, 10, Some(21));
        check(0, 10, 0, None);
        check(0, 10, 5, Some(0));
        check(u64::MAX, 3, 1, Some(u64::MAX));
        check(u64::MAX / 2, u64::MAX, u64::MAX / 2, Some(u64::MAX));
        // A target that ran longer than it was enabled is a rounding error, not scaling.
        check(7, 9, 10, Some(7));
    }
}
