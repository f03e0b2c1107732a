//! Bounds the names in files: memory is given back when processes end, what is written is not.

/// How many bytes of names may still be written.
#[derive(Debug)]
pub(super) struct WrittenNames {
    most: usize,
    left: usize,
    /// When some were added last, in nanoseconds.
    added_at: u64,
}

impl WrittenNames {
    /// In so many seconds, as much as at the start is added: builds start many interpreters.
    const SECONDS: u64 = 256;

    pub(super) fn new(most: usize) -> Self {
        Self {
            most,
            left: most,
            added_at: 0,
        }
    }

    /// Counts so many bytes more of a process that has written some, if there is room for them:
    /// each process leaves as much to others as it has itself. Returns whether there is.
    pub(super) fn add(&mut self, written: usize, bytes: usize, now: u64) -> bool {
        let interval = Self::SECONDS * 1_000_000_000 / (self.most as u64).max(1);
        let passed = now.saturating_sub(self.added_at);
        let more = passed.checked_div(interval).unwrap_or(u64::MAX);
        if more > 0 {
            let more = usize::try_from(more).unwrap_or(usize::MAX);
            self.left = self.left.saturating_add(more).min(self.most);
            self.added_at = now;
        }
        let has_room = written.saturating_add(bytes) <= self.left.saturating_sub(bytes);
        if has_room {
            self.left -= bytes;
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_comes_back_with_time() {
        const SECOND: u64 = 1_000_000_000;
        let mut names = WrittenNames::new(256_000);
        let mut written = 0;
        let mut write = |written: &mut usize, now| {
            let before = *written;
            while names.add(*written, 100, now) {
                *written += 100;
            }
            *written - before
        };
        assert_eq!(write(&mut written, SECOND), 128_000);
        assert_eq!(write(&mut written, SECOND), 0);
        let mut other = 0;
        assert_eq!(write(&mut other, SECOND), 64_000);
        // A thousand bytes each second, which go to those who have written less.
        assert_eq!(write(&mut written, 11 * SECOND), 0);
        assert_eq!(write(&mut other, 11 * SECOND), 5_000);
        assert_eq!(write(&mut 0, 11 * SECOND), 34_500);
    }
}
