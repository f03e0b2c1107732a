//! Counts as values.

use std::ops::Index;
use std::sync::Arc;

use prof_events::system::monotonic_now;

use crate::count::Count;
use crate::counter::Counter;
use crate::error::{DifferentSets, NotInSet, ReadError};
use crate::member::CounterId;

/// The counts of a set of counters at one moment; a value that can be copied, subtracted and added.
///
/// Snapshots of different sets don't mix: arithmetic on them is an error. A group's set changes
/// when a counter comes or goes.
///
/// ```
/// use prof_counters::{Group, Target, event};
///
/// let mut group = Group::new(Target::ThisThread)?;
/// let clock = group.add(&event("task-clock:u")?)?;
/// group.enable()?;
/// let first = group.read()?;
/// let second = group.read()?;
///
/// let mut sum = second.since(&first)?;
/// assert!(sum.elapsed() > 0);
/// sum.add(&first)?;
/// assert_eq!(sum[&clock], second[&clock]);
/// sum.zero();
/// assert_eq!(sum[&clock].value, 0);
///
/// let other = Group::new(Target::ThisThread)?.read()?;
/// assert!(second.since(&other).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot {
    set: Arc<[CounterId]>,
    counts: Vec<Count>,
    at: u64,
    elapsed: u64,
}

impl Snapshot {
    pub(crate) fn new(set: Arc<[CounterId]>, counts: Vec<Count>, at: u64, elapsed: u64) -> Self {
        debug_assert_eq!(set.len(), counts.len());
        Self {
            set,
            counts,
            at,
            elapsed,
        }
    }

    /// Makes it a snapshot of this set, with zeros, and returns the counts to fill.
    pub(crate) fn refill(&mut self, set: &Arc<[CounterId]>) -> &mut [Count] {
        if !Arc::ptr_eq(&self.set, set) {
            self.set = set.clone();
        }
        self.counts.clear();
        self.counts.resize(set.len(), Count::default());
        &mut self.counts
    }

    /// Sets its time stamp, and the time that it covers.
    pub(crate) fn stamp(&mut self, at: u64, elapsed: u64) {
        (self.at, self.elapsed) = (at, elapsed);
    }

    /// When it was taken: nanoseconds of CLOCK_MONOTONIC. For the result of arithmetic, the later
    /// of both.
    pub fn timestamp(&self) -> u64 {
        self.at
    }

    /// The nanoseconds of real time that the counts cover: since the group was opened or reset; for
    /// a difference, between the two snapshots.
    pub fn elapsed(&self) -> u64 {
        self.elapsed
    }

    /// The count of the counter; `None` if it is not in this set.
    pub fn get(&self, counter: &Counter) -> Option<Count> {
        self.by_id(counter.id())
    }

    /// Like [`get`](Self::get), for a counter that may be dropped already.
    pub fn by_id(&self, id: CounterId) -> Option<Count> {
        let index = self.set.iter().position(|&known| known == id)?;
        self.counts.get(index).copied()
    }

    /// Replaces the count of the counter.
    ///
    /// # Errors
    ///
    /// It is not in this set.
    pub fn set(&mut self, counter: &Counter, count: Count) -> Result<(), NotInSet> {
        let index = self
            .set
            .iter()
            .position(|&known| known == counter.id())
            .ok_or(NotInSet)?;
        *self.counts.get_mut(index).ok_or(NotInSet)? = count;
        Ok(())
    }

    /// All counters of the set with their counts, in the order in which they were added.
    pub fn iter(&self) -> impl Iterator<Item = (CounterId, Count)> + '_ {
        self.set.iter().copied().zip(self.counts.iter().copied())
    }

    /// Sets all counts, and the time that they cover, to zero.
    pub fn zero(&mut self) {
        self.counts.fill(Count::default());
        self.elapsed = 0;
    }

    /// Adds the other one's counts.
    ///
    /// # Errors
    ///
    /// It is of another set; nothing is then changed.
    pub fn add(&mut self, other: &Self) -> Result<(), DifferentSets> {
        self.combine(other, Count::plus, u64::wrapping_add)
    }

    /// Subtracts the other one's counts.
    ///
    /// # Errors
    ///
    /// It is of another set; nothing is then changed.
    pub fn subtract(&mut self, other: &Self) -> Result<(), DifferentSets> {
        self.combine(other, Count::since, u64::wrapping_sub)
    }

    /// The counts since an earlier snapshot.
    ///
    /// # Errors
    ///
    /// That is of another set.
    pub fn since(&self, earlier: &Self) -> Result<Self, DifferentSets> {
        let mut difference = self.clone();
        difference.subtract(earlier)?;
        Ok(difference)
    }

    fn combine(
        &mut self,
        other: &Self,
        counts: impl Fn(Count, Count) -> Count,
        times: impl Fn(u64, u64) -> u64,
    ) -> Result<(), DifferentSets> {
        if !Arc::ptr_eq(&self.set, &other.set) && self.set != other.set {
            return Err(DifferentSets {
                left: self.set.len(),
                right: other.set.len(),
            });
        }
        for (count, other) in self.counts.iter_mut().zip(&other.counts) {
            *count = counts(*count, *other);
        }
        self.elapsed = times(self.elapsed, other.elapsed);
        self.at = self.at.max(other.at);
        Ok(())
    }
}

impl Counter {
    /// As [`read`](Self::read), as a snapshot of a set of one.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read).
    pub fn snapshot(&self) -> Result<Snapshot, ReadError> {
        let count = self.read()?;
        Ok(Snapshot::new(
            [self.id()].into(),
            vec![count],
            monotonic_now(),
            0,
        ))
    }
}

impl Index<&Counter> for Snapshot {
    type Output = Count;

    /// The count of the counter.
    ///
    /// # Panics
    ///
    /// If it is not of this set; [`get`](Self::get) does not panic.
    fn index(&self, counter: &Counter) -> &Count {
        let index = self.set.iter().position(|&known| known == counter.id());
        match index.and_then(|index| self.counts.get(index)) {
            Some(count) => count,
            None => panic!("{NotInSet}"),
        }
    }
}
