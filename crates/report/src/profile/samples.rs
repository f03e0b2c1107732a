//! Samples as columns.

use std::ops::AddAssign;

use prof_model::{Pid, StackEnd, Tid};

use super::stacks::StackId;
use super::thread_names::ThreadNameId;

/// One sample, put together from the columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Nanoseconds on the recording's clock.
    pub time: u64,
    /// Process.
    pub pid: Pid,
    /// Thread.
    pub tid: Tid,
    /// CPU, if recorded.
    pub cpu: Option<u32>,
    /// Index of the event in [`Profile::events`](super::Profile::events).
    pub event: u16,
    /// The weight of the sample: its period.
    pub period: u64,
    /// How many samples it is: 1, but in formats that add up those of one stack.
    pub count: u64,
    /// The thread's name at the sample.
    pub name: ThreadNameId,
    /// Its stack.
    pub stack: StackId,
    /// How the user part of the stack ended.
    pub end: StackEnd,
    /// How many of the outermost frames come from a live read after the sample.
    pub remote_read: u16,
}

impl Sample {
    /// The squares of the weights of the samples that it is, added up. Samples that come as one
    /// count as equal.
    pub(crate) fn squares(&self) -> f64 {
        (self.period as f64).powi(2) / self.count.max(1) as f64
    }
}

/// The samples of a profile, column by column.
#[derive(Clone, Debug, Default)]
pub struct Samples {
    times: Vec<u64>,
    threads: Vec<(Pid, Tid)>,
    cpus: Vec<Option<u32>>,
    events: Vec<u16>,
    periods: Vec<u64>,
    counts: Vec<u64>,
    names: Vec<ThreadNameId>,
    stacks: Vec<StackId>,
    ends: Vec<(StackEnd, u16)>,
    /// The sum of their weights.
    total: Weight,
}

impl Samples {
    /// The most that all samples together weigh, so that sums fit into 64 bits: as nanoseconds, 146
    /// years.
    const MOST: u64 = 1 << 62;

    /// Appends a sample. A weight beyond the limit is cut.
    pub fn push(&mut self, mut sample: Sample) {
        sample.period = sample.period.min(Self::MOST - self.total.value);
        sample.count = sample.count.min(Self::MOST - self.total.samples);
        self.total += Weight::of(&sample);
        self.times.push(sample.time);
        self.threads.push((sample.pid, sample.tid));
        self.cpus.push(sample.cpu);
        self.events.push(sample.event);
        self.periods.push(sample.period);
        self.counts.push(sample.count);
        self.names.push(sample.name);
        self.stacks.push(sample.stack);
        self.ends.push((sample.end, sample.remote_read));
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Puts samples in time order, those of one time in the order they were added.
    pub(super) fn sort_by_time(&mut self) {
        if self.times.is_sorted() {
            return;
        }
        let mut samples: Vec<Sample> = self.iter().collect();
        samples.sort_by_key(|sample| sample.time);
        *self = Self::default();
        samples.into_iter().for_each(|sample| self.push(sample));
    }

    /// The times of the first and the last sample, if they are in time order.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        Some((*self.times.first()?, *self.times.last()?))
    }

    /// Moves all times back, in nanoseconds.
    pub(super) fn move_back(&mut self, by: u64) {
        for time in &mut self.times {
            *time = time.saturating_sub(by);
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Marks stacks as whole that ended like `end` and are whole by `is_whole`. Returns how many
    /// samples have them.
    pub(crate) fn mark_whole(&mut self, end: StackEnd, is_whole: impl Fn(StackId) -> bool) -> u64 {
        let mut marked = 0;
        for ((own, _), &stack) in self.ends.iter_mut().zip(&self.stacks) {
            if *own == end && is_whole(stack) {
                *own = StackEnd::Root;
                marked += 1;
            }
        }
        marked
    }

    /// All samples in the order they were added: time order, in a loaded profile.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Sample> {
        (0..self.len()).map(|index| self.at(index))
    }

    /// The sample at this position.
    pub(crate) fn at(&self, index: usize) -> Sample {
        let (pid, tid) = self.threads[index];
        let (end, remote_read) = self.ends[index];
        Sample {
            time: self.times[index],
            pid,
            tid,
            cpu: self.cpus[index],
            event: self.events[index],
            period: self.periods[index],
            count: self.counts[index],
            name: self.names[index],
            stack: self.stacks[index],
            end,
            remote_read,
        }
    }
}

/// The sum of samples: how much of the event, and from how many samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Weight {
    /// Sum of the periods, in the event's unit.
    pub value: u64,
    /// How many samples.
    pub samples: u64,
}

impl Weight {
    /// The weight of one sample.
    pub fn of(sample: &Sample) -> Self {
        Self {
            value: sample.period,
            samples: sample.count,
        }
    }

    /// The share of `whole`, from 0 to 1; 0 of nothing.
    pub(crate) fn share_of(self, whole: Self) -> f64 {
        if whole.value == 0 {
            return 0.0;
        }
        self.value as f64 / whole.value as f64
    }
}

impl AddAssign for Weight {
    fn add_assign(&mut self, other: Self) {
        self.value = self.value.saturating_add(other.value);
        self.samples = self.samples.saturating_add(other.samples);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestProfile;

    #[test]
    fn all_samples_together_fit_into_64_bits() {
        let mut test = TestProfile::new();
        // Milliseconds.
        test.line("t main;a 4000000000000");
        test.line("t main;b 4000000000000");
        let samples = test.profile.samples.iter();
        let periods: Vec<u64> = samples.map(|sample| sample.period).collect();
        let first = 4_000_000_000_000_000_000;
        assert_eq!(periods, [first, Samples::MOST - first]);
    }
}
