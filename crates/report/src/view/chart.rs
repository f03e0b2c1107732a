//! A flame chart: calls in the order of time, thread by thread.

use std::ops::Range;

use crate::calltree::Split;
use crate::calltree::groups::Groups;
use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Event, Sample, StackId, Unit};
use crate::symbolize::{FunctionId, SymbolizedProfile};

/// Calls in the order of time.
pub struct Chart<'p> {
    symbolized: &'p SymbolizedProfile,
    /// The event whose samples these are.
    pub event: &'p Event,
    /// How many samples.
    pub samples: usize,
    /// How long all of it is, in nanoseconds.
    pub duration: u64,
    /// The threads, in the order of their first samples.
    pub threads: Vec<ThreadChart>,
}

/// A thread's activity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadChart {
    /// Its name (`worker 123/456`).
    pub name: String,
    /// Runs of functions on the stack, in the order of their starts, callers before callees.
    pub runs: Vec<Run>,
}

/// A function that was on the stack in samples without a break.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// How many callers it has in the chart.
    pub depth: usize,
    /// What was called.
    pub call: Call,
    /// When it began, in nanoseconds since the chart did.
    pub start: u64,
    /// When it ended.
    pub end: u64,
}

/// A call, as the chart distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The function.
    pub function: FunctionId,
    /// Whether it was inlined into its caller.
    pub inlined: bool,
}

impl<'p> Chart<'p> {
    /// The chart of the samples that pass `filter`. Runs shorter than `shortest` of the whole (from
    /// 0 to 1) are merged into their callers.
    ///
    /// # Errors
    /// [`Error::NoSamples`], [`Error::NoSuchEvent`]; [`Error::Lacking`] if the profile holds no
    /// times.
    pub fn new(
        symbolized: &'p SymbolizedProfile,
        filter: &Filter,
        split: Split,
        shortest: f64,
    ) -> Result<Self, Error> {
        symbolized
            .profile()
            .missing_data
            .check_times("--flamechart")?;
        let shown = FilteredSamples::new(symbolized, filter)?;
        let lengths = Lengths::new(&shown);
        let begins = |sample: &Sample| sample.time.saturating_sub(lengths.most(sample));
        let start = shown.samples().iter().map(begins).min().unwrap_or(0);
        let end = shown.samples().last().map_or(0, |sample| sample.time);
        let duration = end.saturating_sub(start).max(1);
        let shortest = (duration as f64 * shortest) as u64;
        let mut parts = Groups::new(symbolized.profile(), filter, split);
        let mut threads: Vec<Growing> = Vec::new();
        for sample in shown.samples() {
            let number = parts.number(sample) as usize;
            if number == threads.len() {
                threads.push(Growing::default());
            }
            let thread = &mut threads[number];
            let end = sample.time - start.min(sample.time);
            let most = lengths.most(sample);
            let begin = match end.saturating_sub(most) {
                // The times of samples are not exact to the nanosecond: this is no gap.
                begin if begin < thread.end.saturating_add(most / 2) => thread.end.min(end),
                begin => begin,
            };
            thread.push(&shown, sample.stack, begin..end, shortest);
        }
        let names = parts.into_names();
        let thread = |(name, growing): (String, Growing)| ThreadChart {
            name,
            runs: growing.finish(shortest),
        };
        Ok(Self {
            symbolized,
            event: shown.event(),
            samples: shown.samples().len(),
            duration,
            threads: names.into_iter().zip(threads).map(thread).collect(),
        })
    }

    /// The profile that it is of.
    pub fn symbolized(&self) -> &'p SymbolizedProfile {
        self.symbolized
    }
}

/// The lengths of samples.
struct Lengths {
    /// For events that do not count time: the usual distance of a thread's samples.
    usual: Option<u64>,
}

impl Lengths {
    fn new(shown: &FilteredSamples<'_>) -> Self {
        if shown.event().unit == Unit::Nanoseconds {
            return Self { usual: None };
        }
        let mut last = rustc_hash::FxHashMap::default();
        let mut gaps = Vec::new();
        for sample in shown.samples() {
            if let Some(before) = last.insert((sample.pid, sample.tid), sample.time) {
                gaps.push(sample.time.saturating_sub(before));
            }
        }
        gaps.sort_unstable();
        let middle = gaps.get(gaps.len() / 2).copied().unwrap_or(0);
        Self {
            // Half as much again: distances vary, and gaps between most samples say nothing.
            usual: Some(middle.saturating_mul(3) / 2),
        }
    }

    /// How long before its time a sample may begin to count; it is never longer than since the
    /// thread's sample before it.
    fn most(&self, sample: &Sample) -> u64 {
        self.usual.unwrap_or(sample.period)
    }
}

/// A thread's runs as they grow.
#[derive(Default)]
struct Growing {
    runs: Vec<Run>,
    /// The positions of the open runs, outermost first.
    open: Vec<usize>,
    /// When the last sample ended, and its stack.
    end: u64,
    stack: Option<StackId>,
    /// The calls of a stack; kept to save allocations.
    calls: Vec<Call>,
}

impl Growing {
    fn push(
        &mut self,
        shown: &FilteredSamples<'_>,
        stack: StackId,
        time: Range<u64>,
        shortest: u64,
    ) {
        let goes_on = time.start == self.end;
        if !(goes_on && self.stack == Some(stack)) {
            self.calls.clear();
            for frame in shown.frames(stack) {
                let calls = shown.locations(frame).iter().map(|location| Call {
                    function: location.function,
                    inlined: location.inlined,
                });
                self.calls.extend(calls);
            }
            self.calls.reverse();
            let open = self.open.iter().zip(&self.calls);
            let same = open.take_while(|(run, call)| self.runs[**run].call == **call);
            let kept = if goes_on { same.count() } else { 0 };
            self.close(kept, shortest);
            for depth in kept..self.calls.len() {
                self.open.push(self.runs.len());
                self.runs.push(Run {
                    depth,
                    call: self.calls[depth],
                    start: time.start,
                    end: time.start,
                });
            }
        }
        self.end = time.end;
        self.stack = Some(stack);
    }

    /// Ends all runs but the outermost `kept`, and forgets those that were too short.
    fn close(&mut self, kept: usize, shortest: u64) {
        while self.open.len() > kept {
            let Some(index) = self.open.pop() else { break };
            let run = &mut self.runs[index];
            run.end = self.end;
            // Its callees were shorter still, and are already removed.
            if run.end - run.start < shortest {
                self.runs.truncate(index);
            }
        }
    }

    fn finish(mut self, shortest: u64) -> Vec<Run> {
        self.close(0, shortest);
        self.runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{TestProfile, everything};

    /// Samples of [`TestProfile`] are a millisecond apart, the first at zero, when its clock began.
    fn check(lines: &[&str], shortest: f64, expected: &[&str]) {
        let symbolized = TestProfile::of(lines);
        let chart = Chart::new(&symbolized, &everything(), Split::Name, shortest).unwrap();
        let mut runs = Vec::new();
        for thread in &chart.threads {
            for run in &thread.runs {
                let name = &symbolized[run.call.function].name;
                let [start, end] = [run.start, run.end].map(|time| time / 1_000_000);
                runs.push(format!(
                    "{} {}{name} {start}-{end}",
                    thread.name,
                    " ".repeat(run.depth)
                ));
            }
        }
        assert_eq!(runs, expected);
    }

    #[test]
    fn calls_in_the_order_of_time() {
        let expected = ["t m 0-3", "t  a 0-0", "t  b 0-1", "t  a 1-3", "t   c 1-2"];
        check(
            &["t m;a 1", "t m;b 1", "t m;a;c 1", "t m;a 1"],
            0.0,
            &expected,
        );
    }

    #[test]
    fn a_thread_that_sleeps_runs_nothing() {
        check(
            &["t m;a 1", "u n 1", "u n 1", "t m;a 1"],
            0.0,
            &["t m 0-0", "t  a 0-0", "t m 2-3", "t  a 2-3", "u n 0-2"],
        );
    }

    #[test]
    fn short_functions_are_left_to_their_callers() {
        check(
            &["t m;a 1", "t m;b;c 1", "t m;a 1", "t m;a 1"],
            0.5,
            &["t m 0-3", "t  a 1-3"],
        );
    }
}
