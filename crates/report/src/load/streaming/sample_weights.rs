//! What was sampled lately, and since the start: each distinct sample once, with its weights.

use std::cmp::Reverse;
use std::time::Duration;

use prof_model::{Pid, StackEnd, Tid};
use rustc_hash::FxHashMap;

use crate::profile::{Sample, Samples, StackId, ThreadNameId, Weight};

/// Which samples to look at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Span {
    /// The recent samples: weights halve every five seconds.
    #[default]
    Recent,
    /// All since the start.
    All,
}

/// The weights of distinct samples.
#[derive(Debug, Default)]
pub(super) struct SampleWeights {
    held: FxHashMap<Key, Held>,
    left_out: Weight,
}

/// All that distinguishes samples, except their time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Key {
    pid: Pid,
    tid: Tid,
    event: u16,
    name: ThreadNameId,
    stack: StackId,
    end: StackEnd,
    remote_read: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Held {
    /// Its present rest, and that of its number.
    recent: f64,
    recent_samples: f64,
    all: Weight,
}

impl Held {
    /// Less than this of a sample is nothing.
    const LEAST: f64 = 0.1;

    fn weight(&self, span: Span) -> Option<Weight> {
        match span {
            Span::All => Some(self.all),
            Span::Recent if self.recent_samples < Self::LEAST => None,
            Span::Recent => Some(Weight {
                value: self.recent.round() as u64,
                samples: (self.recent_samples.round() as u64).max(1),
            }),
        }
    }
}

impl SampleWeights {
    /// Nanoseconds in which what was sampled lately comes to weigh half as much.
    const HALF_LIFE: Duration = Duration::from_secs(5);
    /// So many distinct samples are held, with their stacks some 30 MB.
    const MOST: usize = 40_000;

    pub(super) fn add(&mut self, sample: &Sample) {
        let held = self.held.entry(Key {
            pid: sample.pid,
            tid: sample.tid,
            event: sample.event,
            name: sample.name,
            stack: sample.stack,
            end: sample.end,
            remote_read: sample.remote_read,
        });
        let held = held.or_default();
        held.recent += sample.period as f64;
        held.recent_samples += sample.count as f64;
        held.all += Weight::of(sample);
    }

    /// So much time has passed.
    pub(super) fn decay(&mut self, time: Duration) {
        let halves = time.as_secs_f64() / Self::HALF_LIFE.as_secs_f64();
        let factor = 0.5_f64.powf(halves);
        for held in self.held.values_mut() {
            held.recent *= factor;
            held.recent_samples *= factor;
        }
    }

    /// Has room for more: if there are too many, the lighter half goes.
    pub(super) fn drop_lightest(&mut self) {
        if self.held.len() <= Self::MOST {
            return;
        }
        let mut values: Vec<u64> = self.held.values().map(|held| held.all.value).collect();
        let middle = values.len() / 2;
        let (_, &mut most, _) = values.select_nth_unstable(middle);
        let left_out = &mut self.left_out;
        // Of many that weigh the same, those of the youngest stacks stay.
        let mut equal: Vec<Key> = Vec::new();
        self.held.retain(|key, held| {
            let lighter = held.all.value < most;
            if lighter {
                *left_out += held.all;
            } else if held.all.value == most {
                equal.push(*key);
            }
            !lighter
        });
        equal.sort_unstable_by_key(|key| Reverse(key.stack));
        while self.held.len() > middle
            && let Some(key) = equal.pop()
        {
            if let Some(held) = self.held.remove(&key) {
                self.left_out += held.all;
            }
        }
    }

    pub(super) fn left_out(&self) -> Weight {
        self.left_out
    }

    /// The samples of a span, all at once.
    pub(super) fn samples(&self, span: Span) -> Samples {
        let mut samples = Samples::default();
        for (key, held) in &self.held {
            let Some(weight) = held.weight(span) else {
                continue;
            };
            samples.push(Sample {
                time: 0,
                pid: key.pid,
                tid: key.tid,
                cpu: None,
                event: key.event,
                period: weight.value,
                count: weight.samples,
                name: key.name,
                stack: key.stack,
                end: key.end,
                remote_read: key.remote_read,
            });
        }
        samples
    }

    /// The stacks of all samples.
    pub(super) fn stacks(&self) -> impl Iterator<Item = StackId> {
        self.held.keys().map(|key| key.stack)
    }

    /// The threads of all samples.
    pub(super) fn threads(&self) -> impl Iterator<Item = (Pid, Tid)> {
        self.held.keys().map(|key| (key.pid, key.tid))
    }

    /// Stacks and names have other numbers from now on.
    pub(super) fn rename(
        &mut self,
        mut number: impl FnMut(StackId, ThreadNameId) -> (StackId, ThreadNameId),
    ) {
        let held = std::mem::take(&mut self.held);
        let renamed = held.into_iter().map(|(key, held)| {
            let (stack, name) = number(key.stack, key.name);
            (Key { stack, name, ..key }, held)
        });
        self.held = renamed.collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::{Frame, Frames, Stacks, ThreadNames};

    /// Distinct stacks of one frame each.
    fn stacks(count: usize) -> Vec<StackId> {
        let (mut frames, mut stacks) = (Frames::default(), Stacks::default());
        (0..count)
            .map(|address| stacks.intern(None, frames.intern(Frame::Kernel(address as u64))))
            .collect()
    }

    fn sample(stack: StackId, period: u64) -> Sample {
        Sample {
            time: 1,
            pid: 1,
            tid: 1,
            cpu: None,
            event: 0,
            period,
            count: 1,
            name: ThreadNames::default().intern("t"),
            stack,
            end: StackEnd::Root,
            remote_read: 0,
        }
    }

    fn weights(held: &SampleWeights, span: Span) -> Vec<(u64, u64)> {
        let samples = held.samples(span);
        let mut found: Vec<_> = samples.iter().map(|it| (it.period, it.count)).collect();
        found.sort_unstable();
        found
    }

    #[test]
    fn what_was_sampled_lately_decays_and_the_rest_stays() {
        let stacks = stacks(2);
        let mut held = SampleWeights::default();
        held.add(&sample(stacks[0], 1000));
        held.add(&sample(stacks[0], 1000));
        held.decay(Duration::from_secs(5));
        held.add(&sample(stacks[1], 50));
        assert_eq!(weights(&held, Span::Recent), [(50, 1), (1000, 1)]);
        assert_eq!(weights(&held, Span::All), [(50, 1), (2000, 2)]);
        held.decay(Duration::from_secs(60));
        assert_eq!(weights(&held, Span::Recent), []);
        assert_eq!(weights(&held, Span::All), [(50, 1), (2000, 2)]);
    }

    #[test]
    fn of_too_many_the_lighter_half_goes_and_is_counted() {
        let stacks = stacks(SampleWeights::MOST + 1);
        let mut held = SampleWeights::default();
        for (position, &stack) in stacks.iter().enumerate() {
            held.add(&sample(stack, 5 + u64::from(position % 10 == 0)));
            held.drop_lightest();
        }
        let left = held.samples(Span::All);
        assert_eq!(left.len(), SampleWeights::MOST / 2);
        let heavy = left.iter().filter(|sample| sample.period == 6).count();
        assert_eq!(heavy, SampleWeights::MOST / 10 + 1);
        let all = 5 * stacks.len() as u64 + heavy as u64;
        let value: u64 = left.iter().map(|sample| sample.period).sum();
        assert_eq!(held.left_out().value + value, all);
    }
}
