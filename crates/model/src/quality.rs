//! How far a recording can be trusted: every loss, by reason.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ambiguous_thread::AmbiguousThread;
use crate::coverage::Coverage;
use crate::fallback::Fallback;
use crate::interpreted::{InterpretedLanguage, InterpretedStacks};
use crate::left_out::LeftOut;
use crate::missing::{MissingCounts, MissingMemory};
use crate::probes::ProbedPrograms;
use crate::settings::RecordingSettings;
use crate::stack::{StackEnd, StackNote};
use crate::stack_weights::StackWeights;
use crate::unseen::UnseenProcesses;
use crate::waits::WaitCoverage;

/// Counts every loss with its reason; travels with the data to every output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Quality {
    /// Samples in the recording.
    pub samples: u64,
    /// What determines how many samples there are.
    #[serde(skip_serializing_if = "SampledBy::is_rate")]
    pub sampled_by: SampledBy,
    /// Each event is a sample, so that even a few samples show all that happened.
    #[serde(skip_serializing_if = "is_false")]
    pub every_event: bool,
    /// How it was recorded; `None` if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub settings: Option<RecordingSettings>,
    /// How the user stacks ended, samples by reason.
    pub stacks: BTreeMap<StackEnd, u64>,
    /// Why memory of the stacks that ended so could not be read, as far as that is known.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub missing: BTreeMap<StackEnd, MissingCounts>,
    /// The weights of the stacks, if they may be very unequal.
    #[serde(skip_serializing_if = "StackWeights::are_none")]
    pub weights: StackWeights,
    /// Stacks with outer frames that were read from the live target after the sample.
    #[serde(alias = "read_back")]
    pub remote_read: u64,
    /// Threads that were found too late to be ambiguous.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ambiguous_threads: Vec<AmbiguousThread>,
    /// Stacks of which frames in the middle were left out, because a sample cannot hold them all.
    #[serde(skip_serializing_if = "is_zero")]
    pub without_middle: u64,
    /// Stacks that evaluate Python code.
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    pub python: InterpretedStacks,
    /// Stacks that evaluate PHP code.
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    pub php: InterpretedStacks,
    /// Stacks that evaluate Ruby code.
    #[serde(skip_serializing_if = "InterpretedStacks::are_none")]
    pub ruby: InterpretedStacks,
    /// Names and files that were left out.
    #[serde(skip_serializing_if = "LeftOut::is_nothing")]
    pub left_out: LeftOut,
    /// Lost samples and stack bytes.
    pub losses: Losses,
    /// Substitutes for what was requested.
    pub fallbacks: Vec<Fallback>,
    /// Whether a Java VM was mapped.
    #[serde(skip_serializing_if = "is_false")]
    pub java: bool,
    /// Where unwinding stopped, most frequent first; a bounded list.
    pub failures: Vec<UnwindFailure>,
    /// How much of threads' work has samples, by their names; those who used most come first. A
    /// bounded list, empty if unknown.
    pub coverage: Vec<Coverage>,
    /// The name of the event that the coverage is of, if there are several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub covered_event: Option<String>,
    /// The code whose time the covered event counts and does not sample.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unsampled: Option<Unsampled>,
    /// How much of the time that threads did not run is there, if it was recorded.
    pub waits: Option<WaitCoverage>,
    /// Processes that could not be sampled.
    #[serde(skip_serializing_if = "UnseenProcesses::are_none")]
    pub unseen: UnseenProcesses,
    /// Which programs the probes reached, if there were probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probes: Option<ProbedPrograms>,
    /// CPUs that went offline or came online: what ran there afterwards was not sampled.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changed_cpus: Vec<u32>,
    /// The size limit in bytes, if the recording ended early because it had reached the limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_limit: Option<u64>,
}

/// Code that the event counts and does not sample.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Unsampled {
    /// The kind of code.
    pub code: UnsampledCode,
    /// The setting that causes it, as the user writes it: `perf_event_paranoid=2`, `-e
    /// cpu-clock:u`.
    pub cause: String,
}

/// The kind of code that is not sampled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnsampledCode {
    /// Kernel code.
    Kernel,
    /// User code.
    User,
}

/// What determines how many samples there are, and which setting changes it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SampledBy {
    /// Samples per second.
    #[default]
    Rate,
    /// A number of events per sample.
    Period,
    /// Allocations: every one, or one per this many bytes.
    Allocations,
}

impl SampledBy {
    /// How to get fewer samples.
    pub(crate) fn fewer(self) -> &'static str {
        match self {
            Self::Rate => "a lower rate (-F)",
            Self::Period => "a larger period (-c)",
            Self::Allocations => "--every N, or a larger N",
        }
    }

    /// How to get more samples.
    pub fn more(self) -> &'static str {
        match self {
            Self::Rate => "a higher rate (-F)",
            Self::Period => "a smaller period (-c)",
            Self::Allocations => "a smaller N (--every)",
        }
    }

    fn is_rate(&self) -> bool {
        *self == Self::Rate
    }
}

/// Samples and stack bytes that did not make it into the recording.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Losses {
    /// Samples that the kernel dropped because a ring buffer was full (PERF_RECORD_LOST,
    /// LOST_SAMPLES).
    pub ring_full: u64,
    /// Samples that the recorder dropped because its own buffer was full.
    #[serde(alias = "backlog")]
    pub queue_full: u64,
    /// Stacks that the recorder shortened because its own buffer was nearly full.
    pub cut_stacks: u64,
    /// How often the kernel throttled the event (PERF_RECORD_THROTTLE).
    pub throttled: u64,
    /// Samples that could not be parsed.
    pub malformed: u64,
    /// How often a ring buffer held garbage, so that its records were lost.
    pub corrupt_rings: u64,
    /// Whether the recording is cut off (a truncated file).
    pub truncated_file: bool,
    /// Whether it was cut off because compressed records hold more than any recording of its size
    /// should.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub too_large_file: bool,
    /// Whether another recording follows it in the same file, and was not read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unread_recording: bool,
}

impl Losses {
    /// Adds the losses of another recording.
    fn add(&mut self, other: &Self) {
        let pairs = [
            (&mut self.ring_full, other.ring_full),
            (&mut self.queue_full, other.queue_full),
            (&mut self.cut_stacks, other.cut_stacks),
            (&mut self.throttled, other.throttled),
            (&mut self.malformed, other.malformed),
            (&mut self.corrupt_rings, other.corrupt_rings),
        ];
        for (count, more) in pairs {
            add(count, more);
        }
        self.truncated_file |= other.truncated_file;
        self.too_large_file |= other.too_large_file;
        self.unread_recording |= other.unread_recording;
    }

    /// Samples that were taken or due, and are missing from the recording.
    pub fn samples(&self) -> u64 {
        let kinds = [self.ring_full, self.queue_full, self.malformed];
        sum(kinds.iter())
    }
}

/// Where unwinding stopped without reaching the root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnwindFailure {
    /// The reason.
    pub end: StackEnd,
    /// Path of the module that holds the last frame, empty if the frame is in none.
    pub module: String,
    /// File offset in that module, or the absolute address if there is no module.
    pub offset: u64,
    /// How many stacks ended like this.
    pub count: u64,
}

impl Quality {
    /// The most failures that are kept.
    pub const MAX_FAILURES: usize = 1000;

    /// The stacks that evaluate code of interpreters.
    pub fn interpreted(&self) -> [(InterpretedLanguage, &InterpretedStacks); 3] {
        [
            (InterpretedLanguage::Python, &self.python),
            (InterpretedLanguage::Php, &self.php),
            (InterpretedLanguage::Ruby, &self.ruby),
        ]
    }

    /// Adds the counts of another recording.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.samples, other.samples);
        for (&end, &count) in &other.stacks {
            add(self.stacks.entry(end).or_default(), count);
        }
        for (&end, more) in &other.missing {
            self.missing.entry(end).or_default().add(more);
        }
        add(&mut self.weights.all, other.weights.all);
        add(&mut self.weights.partial, other.weights.partial);
        add(&mut self.remote_read, other.remote_read);
        add(&mut self.without_middle, other.without_middle);
        self.python.add(&other.python);
        self.php.add(&other.php);
        self.ruby.add(&other.ruby);
        self.left_out.add(&other.left_out);
        self.losses.add(&other.losses);
        self.java |= other.java;
        if let Some(waits) = &other.waits {
            self.waits.get_or_insert_default().add(waits);
        }
        self.unseen.add(&other.unseen);
        match (&mut self.probes, &other.probes) {
            (Some(probes), Some(more)) => probes.add(more),
            (probes, more) => *probes = probes.take().or_else(|| more.clone()),
        }
        self.size_limit = self.size_limit.or(other.size_limit);
        self.changed_cpus.extend(&other.changed_cpus);
        self.changed_cpus.sort_unstable();
        self.changed_cpus.dedup();
        for fallback in &other.fallbacks {
            if !self.fallbacks.contains(fallback) {
                self.fallbacks.push(fallback.clone());
            }
        }
        for failure in &other.failures {
            let is_same = |known: &&mut UnwindFailure| {
                (known.end, known.offset) == (failure.end, failure.offset)
                    && known.module == failure.module
            };
            match self.failures.iter_mut().find(is_same) {
                Some(known) => add(&mut known.count, failure.count),
                None => self.failures.push(failure.clone()),
            }
        }
        self.failures
            .sort_by_key(|failure| std::cmp::Reverse(failure.count));
        self.failures.truncate(Self::MAX_FAILURES);
    }

    /// Copies what is known before the first sample: how this was recorded.
    pub fn set_settings(&mut self, other: &Self) {
        self.sampled_by = other.sampled_by;
        self.every_event = other.every_event;
        self.settings.clone_from(&other.settings);
        self.fallbacks.clone_from(&other.fallbacks);
    }

    /// Counts one more sample whose user stack ended like this.
    pub fn count_stack(&mut self, end: StackEnd) {
        *self.stacks.entry(end).or_default() += 1;
    }

    /// Counts why memory of one more stack is missing, if its walk ended because of that.
    pub fn count_missing(&mut self, note: StackNote) {
        use StackEnd::{OtherStack, Stale, TruncatedDump, UnreadableMemory};
        let missing = note.missing;
        let is_cause = matches!(
            note.end,
            TruncatedDump | UnreadableMemory | Stale | OtherStack
        );
        if is_cause && missing != MissingMemory::NONE {
            self.missing.entry(note.end).or_default().count(missing);
        }
    }

    /// Whether most of the stacks that ended so lack memory for this reason.
    pub(crate) fn is_mostly(&self, end: StackEnd, reason: fn(&MissingCounts) -> u64) -> bool {
        let stacks = self.stacks.get(&end).copied().unwrap_or(0);
        let counts = self.missing.get(&end).map_or(0, reason);
        counts > stacks / 2
    }

    /// Takes over how many stacks lack the caller of their innermost function. Only the report
    /// finds that: the recorder counted them with the other chains of frame pointers.
    pub fn take_skipped_callers(&mut self, found: &Self) {
        let skipped = found.stacks.get(&StackEnd::SkippedCaller);
        let open = self.stacks.get_mut(&StackEnd::FramePointersEnded);
        if let (Some(&skipped), Some(open)) = (skipped, open) {
            let skipped = skipped.min(*open);
            *open -= skipped;
            self.stacks.insert(StackEnd::SkippedCaller, skipped);
            let failures = found.failures.iter();
            let failures = failures.filter(|failure| failure.end == StackEnd::SkippedCaller);
            self.failures.extend(failures.cloned());
        }
    }

    /// The share of the samples taken or due that are missing from the recording.
    pub fn lost_share(&self) -> f64 {
        let lost = self.losses.samples();
        lost as f64 / lost.saturating_add(self.samples).max(1) as f64
    }

    /// Samples that have a user stack to walk, whole or not.
    pub fn user_stacks(&self) -> u64 {
        let stacks = self.stacks.iter().filter(|(end, _)| end.counts());
        sum(stacks.map(|(_, count)| count))
    }

    /// Samples whose user stack reaches its root.
    pub fn whole_stacks(&self) -> u64 {
        let stacks = self.stacks.iter().filter(|(end, _)| end.is_whole());
        sum(stacks.map(|(_, count)| count))
    }

    /// The partial stacks by reason, most frequent first.
    pub fn partial_stacks(&self) -> Vec<(StackEnd, u64)> {
        let mut partial: Vec<_> = self
            .stacks
            .iter()
            .filter(|(end, count)| end.counts() && !end.is_whole() && **count > 0)
            .map(|(&end, &count)| (end, count))
            .collect();
        partial.sort_by_key(|&(end, count)| (std::cmp::Reverse(count), end));
        partial
    }
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

/// Counts also come from files, which may claim anything.
fn add(count: &mut u64, more: u64) {
    *count = count.saturating_add(more);
}

fn sum<'c>(counts: impl Iterator<Item = &'c u64>) -> u64 {
    counts.fold(0, |sum, &count| sum.saturating_add(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn absurd_counts_of_damaged_files_saturate() {
        let claim = Quality {
            samples: u64::MAX,
            stacks: [(StackEnd::Root, u64::MAX), (StackEnd::Loop, u64::MAX)].into(),
            remote_read: u64::MAX,
            without_middle: u64::MAX,
            losses: Losses {
                ring_full: u64::MAX,
                queue_full: u64::MAX,
                cut_stacks: u64::MAX,
                throttled: u64::MAX,
                malformed: u64::MAX,
                corrupt_rings: u64::MAX,
                truncated_file: false,
                too_large_file: false,
                unread_recording: false,
            },
            failures: vec![UnwindFailure {
                end: StackEnd::Loop,
                module: String::new(),
                offset: 0,
                count: u64::MAX,
            }],
            ..Quality::default()
        };
        let mut sum = claim.clone();
        sum.add(&claim);
        assert_eq!(sum, claim);
        assert_eq!(sum.losses.samples(), u64::MAX);
        assert_eq!(
            (sum.user_stacks(), sum.whole_stacks()),
            (u64::MAX, u64::MAX)
        );
    }
}
