//! The verdict on a recording: is it good, what is wrong with it, and what to do.

mod coverage;

use std::borrow::Cow;
use std::fmt;

use serde::Serialize;

use crate::quality::Quality;
use crate::stack::StackEnd;
use crate::waits::SeenWaits;
use coverage::{coverage, misleads, unseen};

/// How far a profile can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Grade {
    /// At least 99.5 % of the stacks are whole and at most 0.1 % of the samples are lost.
    Good,
    /// Between good and bad: read it with what is missing in mind.
    Fair,
    /// Neither good nor fair can be told from so few samples. `--strict` refuses these, too.
    TooFewSamples,
    /// Under 95 % whole, over 1 % lost, or nothing sampled. `--strict` refuses these.
    Bad,
}

impl Grade {
    const GOOD_WHOLE: f64 = 0.995;
    const FAIR_WHOLE: f64 = 0.95;
    const GOOD_LOST: f64 = 0.001;
    const FAIR_LOST: f64 = 0.01;

    /// With as many, one recording in 24 shows nothing of a function that takes 10 % of the time.
    const ENOUGH_SAMPLES: u64 = 30;

    /// Whether such a profile is to be trusted, which is what `--strict` asks.
    pub fn is_trusted(self) -> bool {
        matches!(self, Self::Good | Self::Fair)
    }

    fn of(whole: f64, lost: f64) -> Self {
        if whole >= Self::GOOD_WHOLE && lost <= Self::GOOD_LOST {
            Self::Good
        } else if whole >= Self::FAIR_WHOLE && lost <= Self::FAIR_LOST {
            Self::Fair
        } else {
            Self::Bad
        }
    }
}

/// What [`Quality`]'s counts amount to. Its [`Display`](fmt::Display) is one line that sums up,
/// then one line for each problem with its remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The whole in a word.
    pub grade: Grade,
    summary: String,
    problems: Vec<String>,
}

impl Verdict {
    /// The verdict on these counts.
    pub fn new(quality: &Quality) -> Self {
        if quality.samples == 0 {
            return Self {
                grade: Grade::Bad,
                summary: "no samples".into(),
                problems: vec![format!("nothing was sampled: {}", quality.why_no_samples())],
            };
        }
        let stacks = quality.user_stacks();
        let whole = share(quality.whole_stacks(), stacks).unwrap_or(1.0);
        let lost = quality.losses.samples();
        let lost_share = quality.lost_share();
        let mut summary = match stacks {
            0 => "no user stacks".to_owned(),
            1 => format!("{} of 1 user stack whole", percent(whole)),
            _ => format!("{} of {stacks} user stacks whole", percent(whole)),
        };
        summary += &match lost {
            0 => ", no sample lost".to_owned(),
            _ => format!(", {lost} samples ({}) lost", percent(lost_share)),
        };
        if quality.read_back > 0 {
            let share = share(quality.read_back, stacks).unwrap_or(0.0);
            summary += &format!(", {} completed from live memory", percent(share));
        }
        let problems = partial_stacks(quality, stacks)
            .chain(few_samples(quality))
            .chain(losses(quality))
            .chain(coverage(quality))
            .chain(unseen(quality))
            .chain(quality.waits.as_ref().map(waits))
            .chain(quality.unseen.protected())
            .chain(quality.size_limit.map(size_limit))
            .chain(changed_cpus(&quality.changed_cpus))
            .collect();
        let grade = match Grade::of(whole, lost_share) {
            Grade::Good | Grade::Fair if has_few_samples(quality) => Grade::TooFewSamples,
            // Nobody can tell how much that was.
            Grade::Good if quality.losses.corrupt_rings > 0 => Grade::Fair,
            Grade::Good if !quality.changed_cpus.is_empty() => Grade::Fair,
            Grade::Good if misleads(quality) => Grade::Fair,
            Grade::Good if quality.unseen.protected.is_some() => Grade::Fair,
            Grade::Good if quality.waits.is_some_and(hides_much) => Grade::Fair,
            grade => grade,
        };
        Self {
            grade,
            summary,
            problems,
        }
    }

    /// The one-line summary.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// One line for each thing that is wrong, with its remedy.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let grade = match self.grade {
            Grade::Good => "good",
            Grade::Fair => "fair",
            Grade::TooFewSamples => "too few samples",
            Grade::Bad => "BAD",
        };
        write!(f, "verdict: {grade}: {}", self.summary)?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

fn partial_stacks(quality: &Quality, stacks: u64) -> impl Iterator<Item = String> {
    quality
        .partial_stacks()
        .into_iter()
        .map(move |(end, count)| {
            let share = percent(share(count, stacks).unwrap_or(0.0));
            let stacks = if count == 1 { "stack" } else { "stacks" };
            let place = match quality.failures.iter().find(|failure| failure.end == end) {
                Some(failure) if !failure.module.is_empty() => {
                    format!(" (most in {}+{:#x})", failure.module, failure.offset)
                }
                _ => String::new(),
            };
            format!(
                "{count} {stacks} ({share}): {}{place}{}",
                end.describe(),
                remedy(end, quality)
            )
        })
}

/// Whether chance decides what the samples show.
fn has_few_samples(quality: &Quality) -> bool {
    quality.samples < Grade::ENOUGH_SAMPLES && !quality.every_event
}

fn few_samples(quality: &Quality) -> Option<String> {
    let counted = match quality.samples {
        1 => "1 sample is".to_owned(),
        samples => format!("{samples} samples are"),
    };
    has_few_samples(quality).then(|| {
        format!(
            "{counted} too few to show where the time goes: at least {} are needed; record for \
             longer, or use {}",
            Grade::ENOUGH_SAMPLES,
            quality.sampled_by.more()
        )
    })
}

fn remedy(end: StackEnd, quality: &Quality) -> Cow<'static, str> {
    let remedy = match end {
        StackEnd::TruncatedDump => {
            "; copy more with --call-graph dwarf,65528 and larger rings (-m 32M)"
        }
        StackEnd::NoUnwindInfo | StackEnd::FramePointersEnded
            if is_made_at_run_time(end, quality) =>
        {
            "; have its run-time compiler keep frame pointers (java -XX:+PreserveFramePointer)"
        }
        StackEnd::NoUnwindInfo => {
            "; build that code with -fasynchronous-unwind-tables or -fno-omit-frame-pointer"
        }
        StackEnd::FramePointersEnded => "; use --call-graph dwarf",
        StackEnd::StaleRegisters => "; -e cpu-clock samples time without such stacks",
        StackEnd::Stale => {
            let fewer = quality.sampled_by.fewer();
            let told = format!("; use {fewer}, or copy more with --call-graph dwarf,65528");
            return told.into();
        }
        StackEnd::NotCode | StackEnd::UnreadableMemory | StackEnd::Loop => {
            "; to reproduce and report it, record with --no-unwind"
        }
        _ => "",
    };
    remedy.into()
}

/// Whether most stacks with this end stop in code that is in no file.
fn is_made_at_run_time(end: StackEnd, quality: &Quality) -> bool {
    let place = quality.failures.iter().find(|failure| failure.end == end);
    place.is_some_and(|place| place.module.starts_with("//anon"))
}

fn losses(quality: &Quality) -> impl Iterator<Item = String> {
    let losses = quality.losses;
    let fewer = quality.sampled_by.fewer();
    let counted = |count: u64, text: &str| (count > 0).then(|| format!("{count} {text}"));
    [
        counted(
            losses.ring_full,
            &format!("samples lost in full ring buffers; use larger ones (-m 32M) or {fewer}"),
        ),
        counted(
            losses.backlog,
            &format!("samples dropped because unwinding could not keep up; use {fewer}"),
        ),
        counted(
            losses.cut_stacks,
            &format!("stacks cut short because unwinding could not keep up; use {fewer}"),
        ),
        counted(
            losses.throttled,
            &format!(
                "times the kernel throttled sampling; raise kernel.perf_event_max_sample_rate, or use \
                 {fewer}"
            ),
        ),
        counted(
            losses.malformed,
            "samples could not be read: the recording is damaged",
        ),
        counted(
            losses.corrupt_rings,
            "times a ring buffer held garbage, and all that was in it is lost; record again, and \
             report it if it comes back",
        ),
        losses.truncated_file.then(|| {
            "the recording ends early: it was cut off while it was written or copied".to_owned()
        }),
    ]
    .into_iter()
    .flatten()
}

fn size_limit(bytes: u64) -> String {
    format!(
        "the recording ended when it had {bytes} bytes, as large as it may be: what came later is \
         not in it (--max-size)"
    )
}

fn changed_cpus(cpus: &[u32]) -> Option<String> {
    let (last, others) = cpus.split_last()?;
    let mut named = String::from(if others.is_empty() { "CPU " } else { "CPUs " });
    others.iter().for_each(|cpu| named += &format!("{cpu}, "));
    Some(format!(
        "{named}{last} went offline or came online: what ran there then, and later, is not in the \
         recording; record again"
    ))
}

/// Whether it is not known where much of the waiting was.
fn hides_much(waits: SeenWaits) -> bool {
    const MUCH: f64 = 0.05;
    share(waits.unseen_time(), waits.time).is_some_and(|unseen| unseen > MUCH)
}

/// How much of the waiting was seen.
fn waits(waits: &SeenWaits) -> String {
    let of_time = |part| percent(share(part, waits.time).unwrap_or(0.0));
    let mut told = format!(
        "{} of the waiting time was seen with its stack ({} of {} waits)",
        of_time(waits.seen_time),
        waits.seen,
        waits.waits,
    );
    if waits.placed_time > 0 {
        told += &format!(
            "; {} were waits too short to be looked at, counted with seen ones of their thread and \
             length",
            of_time(waits.placed_time)
        );
    }
    if waits.unseen_time() > 0 {
        told += &format!(
            "; where the other {} was is not known",
            of_time(waits.unseen_time())
        );
    }
    told
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// A share as a percentage that never rounds up to 100 or down to 0.
fn percent(share: f64) -> String {
    let rounded = (share * 1000.0).round() / 10.0;
    let honest = if share < 1.0 && rounded >= 100.0 {
        99.9
    } else if share > 0.0 && rounded <= 0.0 {
        return "under 0.1 %".into();
    } else {
        rounded
    };
    if honest.fract() == 0.0 {
        format!("{honest:.0} %")
    } else {
        format!("{honest:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{SampledBy, UnwindFailure};

    pub(super) fn quality(ends: &[(StackEnd, u64)], lost: u64) -> Quality {
        let mut quality = Quality {
            stacks: ends.iter().copied().collect(),
            ..Quality::default()
        };
        quality.samples = ends.iter().map(|(_, count)| count).sum();
        quality.losses.ring_full = lost;
        quality
    }

    fn check(ends: &[(StackEnd, u64)], lost: u64, grade: Grade, summary: &str) {
        let verdict = Verdict::new(&quality(ends, lost));
        assert_eq!((verdict.grade, verdict.summary()), (grade, summary));
    }

    #[test]
    fn garbage_in_a_ring_is_never_good() {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.losses.corrupt_rings = 1;
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, Grade::Fair);
        assert!(verdict.problems()[0].starts_with("1 times a ring buffer held garbage"));
    }

    #[test]
    fn grades_and_summaries() {
        use StackEnd::{NoUnwindInfo, NoUserState, Root};
        check(&[], 0, Grade::Bad, "no samples");
        check(
            &[(Root, 30)],
            0,
            Grade::Good,
            "100 % of 30 user stacks whole, no sample lost",
        );
        check(
            &[(Root, 999), (NoUnwindInfo, 1)],
            0,
            Grade::Good,
            "99.9 % of 1000 user stacks whole, no sample lost",
        );
        check(
            &[(Root, 97), (NoUnwindInfo, 3)],
            0,
            Grade::Fair,
            "97 % of 100 user stacks whole, no sample lost",
        );
        check(
            &[(Root, 1), (NoUnwindInfo, 1)],
            0,
            Grade::Bad,
            "50 % of 2 user stacks whole, no sample lost",
        );
        check(
            &[(Root, 98)],
            2,
            Grade::Bad,
            "100 % of 98 user stacks whole, 2 samples (2 %) lost",
        );
        check(
            &[(Root, 5), (NoUserState, 95)],
            0,
            Grade::Good,
            "100 % of 5 user stacks whole, no sample lost",
        );
        check(
            &[(NoUserState, 95)],
            0,
            Grade::Good,
            "no user stacks, no sample lost",
        );
    }

    #[test]
    fn few_samples_are_neither_good_nor_fair() {
        use StackEnd::{NoUnwindInfo, Root};
        let one = "100 % of 1 user stack whole, no sample lost";
        check(&[(Root, 1)], 0, Grade::TooFewSamples, one);
        let few = "96.6 % of 29 user stacks whole, no sample lost";
        let ends = [(Root, 28), (NoUnwindInfo, 1)];
        check(&ends, 0, Grade::TooFewSamples, few);
        let mut quality = quality(&[(Root, 29)], 0);
        quality.sampled_by = SampledBy::Period;
        let verdict = Verdict::new(&quality);
        assert!(!verdict.grade.is_trusted());
        let told = verdict.to_string();
        assert!(
            told.starts_with("verdict: too few samples: 100 %"),
            "{told}"
        );
        assert!(told.contains("29 samples are too few to show"), "{told}");
        assert!(told.contains("a smaller period (-c)"), "{told}");
        quality.every_event = true;
        let all = Verdict::new(&quality);
        assert_eq!((all.grade, all.problems().len()), (Grade::Good, 0));
    }

    #[test]
    fn a_share_just_under_all_is_never_called_all() {
        check(
            &[(StackEnd::Root, 99_999), (StackEnd::Loop, 1)],
            0,
            Grade::Good,
            "99.9 % of 100000 user stacks whole, no sample lost",
        );
    }

    #[test]
    fn what_is_too_much_can_be_had_less() {
        let check = |sampled_by, remedy: &str| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 1);
            quality.sampled_by = sampled_by;
            quality.losses.backlog = 1;
            quality.losses.cut_stacks = 1;
            quality.losses.throttled = 1;
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.problems().len(), 4);
            for told in verdict.problems() {
                assert!(told.ends_with(remedy), "{told}");
                let can_be_allowed = told.contains("kernel.perf_event_max_sample_rate");
                assert_eq!(can_be_allowed, told.contains("throttled"), "{told}");
                assert_eq!(told.contains("-F"), sampled_by == SampledBy::Rate, "{told}");
            }
        };
        check(SampledBy::Rate, "a lower rate (-F)");
        check(SampledBy::Period, "a larger period (-c)");
        check(SampledBy::Allocations, "(--every N, or a larger N)");
        let mut quality = quality(&[(StackEnd::Root, 97), (StackEnd::Stale, 3)], 0);
        quality.sampled_by = SampledBy::Period;
        let verdict = Verdict::new(&quality);
        assert!(verdict.problems()[0].contains("use a larger period (-c), or copy more"));
    }

    #[test]
    fn waits_that_nobody_saw_are_told() {
        let check = |seen_time, placed_time, grade, expected: &str| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 0);
            quality.waits = Some(SeenWaits {
                waits: 50,
                seen: 10,
                time: 1000,
                seen_time,
                placed_time,
            });
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.grade, grade);
            let [told] = verdict.problems() else {
                panic!("{verdict}");
            };
            assert!(told.contains(expected), "{told}");
        };
        check(900, 90, Grade::Good, "90 % of the waiting time was seen");
        check(900, 90, Grade::Good, "where the other 1 % was is not known");
        check(500, 400, Grade::Fair, "(10 of 50 waits)");
    }

    #[test]
    fn registers_of_an_earlier_moment_are_not_the_clocks() {
        let verdict = Verdict::new(&quality(
            &[(StackEnd::Root, 97), (StackEnd::StaleRegisters, 3)],
            0,
        ));
        let [told] = verdict.problems() else {
            panic!("{verdict}");
        };
        assert!(told.starts_with("3 stacks (3 %)"), "{told}");
        assert!(told.contains("-e cpu-clock"), "{told}");
    }

    #[test]
    fn each_problem_names_place_and_remedy() {
        let mut quality = quality(&[(StackEnd::Root, 90), (StackEnd::NoUnwindInfo, 10)], 0);
        quality.failures.push(UnwindFailure {
            end: StackEnd::NoUnwindInfo,
            module: "/lib/x.so".into(),
            offset: 0x10,
            count: 1,
        });
        let text = Verdict::new(&quality).to_string();
        assert!(
            text.contains(
                "10 stacks (10 %): no unwind information for the code (most in /lib/x.so+0x10)"
            ),
            "{text}"
        );
        assert!(text.contains("-fasynchronous-unwind-tables"), "{text}");
        quality
            .failures
            .iter_mut()
            .for_each(|place| place.module = "//anon".into());
        let text = Verdict::new(&quality).to_string();
        assert!(text.contains("-XX:+PreserveFramePointer"), "{text}");
        assert!(!text.contains("-fasynchronous"), "{text}");
    }
}
