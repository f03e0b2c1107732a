//! When a recording continues in another file.

use crate::options::When;

/// Decides when to rotate.
#[derive(Debug)]
pub(crate) struct RotationPolicy {
    when: Option<When>,
    /// Another file was requested, for records after that time.
    requested: Option<u64>,
    /// The end of the current file or chunk.
    next: u64,
}

/// What to do before a record is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NextOutput {
    /// Complete the file, and begin the next one.
    File,
    /// Begin another chunk in memory.
    Chunk,
}

impl RotationPolicy {
    /// The number of chunks in memory: the oldest chunk is dropped as a whole.
    pub(crate) const CHUNKS: u64 = 8;

    pub(crate) fn new(when: Option<When>) -> Self {
        Self {
            when,
            requested: None,
            next: u64::MAX,
        }
    }

    /// Another file is requested at that time.
    pub(crate) fn request(&mut self, at: u64) {
        self.requested.get_or_insert(at);
    }

    /// What is due before a record of this time, in nanoseconds, after this many bytes of records.
    pub(crate) fn due(&mut self, time: u64, bytes: u64) -> Option<NextOutput> {
        let when = self.when?;
        if self.requested.is_some_and(|requested| requested < time) {
            self.requested = None;
            self.begin(time);
            return Some(NextOutput::File);
        }
        let (turn, most) = match when {
            When::OnRequest => return None,
            When::Size(most) => (NextOutput::File, most),
            When::Every(_) => (NextOutput::File, u64::MAX),
            When::Snapshot { bytes, .. } => (NextOutput::Chunk, bytes / Self::CHUNKS),
        };
        if time < self.next && bytes < most {
            return None;
        }
        self.begin(time);
        Some(turn)
    }

    /// A file or chunk begins.
    pub(crate) fn begin(&mut self, time: u64) {
        let length = match self.when {
            Some(When::Every(length)) => length,
            Some(When::Snapshot { time, .. }) => time / Self::CHUNKS as u32,
            _ => return,
        };
        let length = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        self.next = time.saturating_add(length);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Passes records as (time, bytes so far); expects what is due before each.
    fn check(when: Option<When>, records: &[(u64, u64)], expected: &[Option<NextOutput>]) {
        let mut rotation = RotationPolicy::new(when);
        rotation.begin(1000);
        let due = records
            .iter()
            .map(|&(time, bytes)| rotation.due(time, bytes));
        assert_eq!(due.collect::<Vec<_>>(), expected, "{when:?}");
    }

    #[test]
    fn files_end_by_time_and_by_size() {
        let file = Some(NextOutput::File);
        let every = When::Every(Duration::from_nanos(100));
        check(None, &[(5000, 1 << 40)], &[None]);
        check(Some(When::OnRequest), &[(5000, 1 << 40)], &[None]);
        check(
            Some(When::Size(50)),
            &[(2000, 49), (2001, 50), (2002, 1)],
            &[None, file, None],
        );
        check(
            Some(every),
            &[(1099, 1 << 40), (1100, 0), (1199, 0), (1900, 0), (1950, 0)],
            &[None, file, None, file, None],
        );
    }

    #[test]
    fn records_in_memory_are_dropped_in_chunks() {
        let chunk = Some(NextOutput::Chunk);
        let when = When::Snapshot {
            time: Duration::from_nanos(800),
            bytes: 80,
        };
        check(
            Some(when),
            &[(1099, 9), (1100, 0), (1101, 10), (1200, 9), (1201, 0)],
            &[None, chunk, chunk, None, chunk],
        );
    }

    #[test]
    fn requested_files_have_the_records_before_the_request() {
        let mut rotation = RotationPolicy::new(Some(When::OnRequest));
        rotation.request(1500);
        rotation.request(1600);
        assert_eq!(rotation.due(1500, 0), None);
        assert_eq!(rotation.due(1501, 0), Some(NextOutput::File));
        assert_eq!(rotation.due(1700, 0), None);
    }
}
