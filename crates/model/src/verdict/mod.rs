//! The verdict on a recording: is it good, what is wrong with it, and what to do.

mod coverage;
mod grade;
mod interpreted;
mod left_out;
mod losses;
mod percent;
mod probes;
mod remedy;
mod room;
mod stacks;
mod unseen;
mod waits;
mod weights;

use std::fmt;
use std::iter::once;

use self::unseen::{left_running, older_children};
use crate::quality::Quality;
use crate::settings::{CallGraphSettings, RecordingSettings};
use crate::text::{byte_size, counted};
use coverage::{coverage, misleads, misses_most, unseen};
pub use grade::Grade;
use losses::{has_loss_of_unknown_size, losses};
use percent::{lost_shown, percent, whole_shown};
use remedy::Cause;
use stacks::{partial_stacks, without_middle};
use waits::{hide_most, hides_much, waits, whole_time};
use weights::{partial_weight, whole_weight};

/// The verdict on [`Quality`]'s counts. Its [`Display`](fmt::Display) is a summary line, then one
/// line for each problem with its remedy.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The grade.
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
                problems: without_samples(quality),
            };
        }
        let stacks = quality.user_stacks();
        let whole = share(quality.whole_stacks(), stacks).unwrap_or(1.0);
        let lost = quality.losses.samples();
        let lost_share = quality.lost_share();
        // Those of other tools are unwound when they are loaded.
        let copied = |known: &RecordingSettings| {
            let is_dump = matches!(known.call_graph, CallGraphSettings::Dump(_));
            is_dump && !known.unwound && !known.by_other_tool
        };
        let mut summary = match stacks {
            0 if quality.settings.as_ref().is_some_and(copied) => {
                "user stacks are not unwound yet (`prof report` does it)".to_owned()
            }
            0 => "no user stacks".to_owned(),
            _ => format!(
                "{} of {} whole",
                percent(whole_shown(whole)),
                counted(stacks, "user stack")
            ),
        };
        summary += &match lost {
            // How many are missing is unknown.
            0 if quality.losses.truncated_file => String::new(),
            0 => ", no sample lost".to_owned(),
            _ => format!(
                ", {} ({}) lost",
                counted(lost, "sample"),
                percent(lost_shown(lost_share))
            ),
        };
        if quality.remote_read > 0 {
            let share = share(quality.remote_read, stacks).unwrap_or(0.0);
            summary += &format!(", {} with a tail read from the target", percent(share));
        }
        summary += &interpreted::shown(quality);
        let problems = partial_stacks(quality, stacks)
            .chain(partial_weight(quality, whole))
            .chain(without_middle(quality, stacks))
            .chain(few_samples(quality))
            .chain(losses(quality))
            .chain(coverage(quality))
            .chain(unseen(quality))
            .chain(quality.waits.iter().flat_map(waits))
            .chain(interpreted::missing(quality))
            .chain(left_out::left_out(quality))
            .chain(probes::unreached(quality))
            .chain(quality.privileged_programs())
            .chain(left_running(&quality.unseen))
            .chain(older_children(&quality.unseen).filter(|_| has_few_samples(quality)))
            .chain(quality.size_limit.map(size_limit))
            .chain(changed_cpus(&quality.changed_cpus))
            .collect();
        let grade = grade(quality, whole);
        Self {
            grade,
            summary,
            problems,
        }
    }

    /// With the share of the samples that were taken in functions with names, if that is low:
    /// `unnamed` of `samples` were not.
    #[must_use]
    pub fn with_names(mut self, unnamed: u64, samples: u64) -> Self {
        /// In percent.
        const FEW: u64 = 80;
        let named = samples.saturating_sub(unnamed);
        if named.saturating_mul(100) < samples.saturating_mul(FEW) {
            let named = share(named, samples).unwrap_or(0.0);
            self.summary += &format!(", {} in functions with names", percent(named));
        }
        self
    }

    /// The one-line summary.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// One line for each problem, with its remedy.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verdict: {}: {}", self.grade, self.summary)?;
        self.problems
            .iter()
            .try_for_each(|problem| write!(f, "\n  - {problem}"))
    }
}

/// The grade, given the share of whole stacks.
fn grade(quality: &Quality, whole_stacks: f64) -> Grade {
    let whole = whole_stacks
        .min(whole_weight(quality))
        .min(quality.waits.map_or(1.0, whole_time));
    match Grade::of(whole, quality.lost_share()) {
        _ if misses_most(quality) || quality.waits.is_some_and(hide_most) => Grade::Bad,
        Grade::Good | Grade::Fair if has_few_samples(quality) => Grade::TooFewSamples,
        Grade::Good if has_loss_of_unknown_size(&quality.losses) => Grade::Fair,
        Grade::Good if !quality.changed_cpus.is_empty() => Grade::Fair,
        Grade::Good if misleads(quality) => Grade::Fair,
        Grade::Good if probes::misses_much(quality) => Grade::Fair,
        Grade::Good if quality.privileged_programs().next().is_some() => Grade::Fair,
        Grade::Good if quality.waits.is_some_and(hides_much) => Grade::Fair,
        Grade::Good if interpreted::hides_much(quality) => Grade::Fair,
        grade => grade,
    }
}

/// The problems of a recording without samples.
fn without_samples(quality: &Quality) -> Vec<String> {
    once(format!("nothing was sampled: {}", quality.why_no_samples()))
        .chain(losses(quality))
        .chain(quality.waits.iter().flat_map(waits))
        .chain(quality.unprivileged_program())
        .collect()
}

/// Whether there are so few samples that chance decides what they show.
fn has_few_samples(quality: &Quality) -> bool {
    // Each wait has its length: they show as much as samples of all their time.
    let waits = quality.waits.map_or(0, |waits| waits.known_time());
    let is_few = |samples| samples < Grade::ENOUGH_SAMPLES;
    is_few(quality.samples) && is_few(samples_in(waits, quality)) && !quality.every_event
}

/// How many samples a thread has that runs for so many nanoseconds; 0 without a rate.
fn samples_in(time: u64, quality: &Quality) -> u64 {
    let rate = quality.settings.as_ref().and_then(|known| known.rate);
    let samples = u128::from(time) * u128::from(rate.unwrap_or(0)) / 1_000_000_000;
    u64::try_from(samples).unwrap_or(u64::MAX)
}

fn few_samples(quality: &Quality) -> Option<String> {
    let are = match quality.samples {
        1 => "1 sample is".to_owned(),
        samples => format!("{samples} samples are"),
    };
    // What else ran has a line of its own, with a remedy.
    let unseen = &quality.unseen;
    let remedy = match unseen.left_running.max(unseen.older_children) {
        0 => format!("; {}", more_samples(quality)),
        _ => String::new(),
    };
    has_few_samples(quality).then(|| {
        format!(
            "{are} too few to show where the time goes: at least {} are needed{remedy}",
            Grade::ENOUGH_SAMPLES,
        )
    })
}

/// How to get more samples.
fn more_samples(quality: &Quality) -> String {
    let remedy = remedy::remedy(Cause::FewSamples, quality);
    let more = remedy.map_or_else(String::new, |remedy| format!(", or {remedy}"));
    format!("record for longer{more}")
}

fn size_limit(bytes: u64) -> String {
    format!(
        "the recording reached its size limit (--max-size) of {}: it ends there, and later samples \
         are missing",
        byte_size(bytes)
    )
}

fn changed_cpus(cpus: &[u32]) -> Option<String> {
    let (last, others) = cpus.split_last()?;
    let mut named = String::from(if others.is_empty() { "CPU " } else { "CPUs " });
    others.iter().for_each(|cpu| named += &format!("{cpu}, "));
    Some(format!(
        "{named}{last} went offline or came online: what ran there after that is missing; record \
         again"
    ))
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::{SampledBy, UnwindFailure};
    use crate::stack::StackEnd;

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
    fn few_names_are_said_and_change_no_grade() {
        let check = |unnamed, expected: &str| {
            let quality = quality(&[(StackEnd::Root, 100)], 0);
            let verdict = Verdict::new(&quality).with_names(unnamed, 100);
            assert_eq!(verdict.grade, Grade::Good);
            let summary = format!("100 % of 100 user stacks whole, no sample lost{expected}");
            assert_eq!(verdict.summary(), summary);
        };
        check(20, "");
        check(21, ", 79 % in functions with names");
        check(95, ", 5 % in functions with names");
    }

    #[test]
    fn garbage_in_a_ring_is_never_good() {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.losses.corrupt_rings = 1;
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, Grade::Fair);
        assert!(verdict.problems()[0].starts_with("a ring buffer held garbage once"));
    }

    #[test]
    fn a_recording_that_was_cut_off_is_never_good() {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.losses.truncated_file = true;
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, Grade::Fair);
        assert_eq!(verdict.summary(), "100 % of 100 user stacks whole");
    }

    #[test]
    fn a_recording_that_hides_another_one_is_never_good() {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.losses.unread_recording = true;
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, Grade::Fair);
        assert!(verdict.problems()[0].starts_with("another recording follows"));
    }

    #[test]
    fn shares_that_miss_a_limit_do_not_show_it() {
        use StackEnd::{NoUnwindInfo, Root};
        let whole = "99.4 % of 195 user stacks whole, no sample lost";
        check(&[(Root, 194), (NoUnwindInfo, 1)], 0, Grade::Fair, whole);
        let lost = "100 % of 1994 user stacks whole, 2 samples (0.2 %) lost";
        check(&[(Root, 1994)], 2, Grade::Fair, lost);
        let just = "99.5 % of 200 user stacks whole, no sample lost";
        check(&[(Root, 199), (NoUnwindInfo, 1)], 0, Grade::Good, just);
        let few = "100 % of 999 user stacks whole, 1 sample (0.1 %) lost";
        check(&[(Root, 999)], 1, Grade::Good, few);
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
    fn stacks_of_other_tools_do_not_wait_for_the_report() {
        let mut quality = quality(&[(StackEnd::NoUserState, 95)], 0);
        let mut summary = |by_other_tool| {
            quality.settings = Some(RecordingSettings {
                call_graph: CallGraphSettings::Dump(8192),
                by_other_tool,
                ..RecordingSettings::default()
            });
            Verdict::new(&quality).summary().to_owned()
        };
        assert!(summary(false).contains("not unwound yet"));
        assert_eq!(summary(true), "no user stacks, no sample lost");
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
        let reported = verdict.to_string();
        assert!(
            reported.starts_with("verdict: too few samples: 100 %"),
            "{reported}"
        );
        assert!(
            reported.contains("29 samples are too few to show"),
            "{reported}"
        );
        assert!(reported.contains("a smaller period (-c)"), "{reported}");
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
    fn overload_has_a_remedy() {
        let check = |sampled_by, remedy: &str| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 1);
            quality.sampled_by = sampled_by;
            quality.losses.queue_full = 1;
            quality.losses.cut_stacks = 1;
            quality.losses.throttled = 1;
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.problems().len(), 4);
            for reported in verdict.problems() {
                assert!(reported.ends_with(remedy), "{reported}");
                assert_eq!(
                    reported.contains("-F"),
                    sampled_by == SampledBy::Rate,
                    "{reported}"
                );
            }
        };
        check(SampledBy::Rate, "a lower rate (-F)");
        check(SampledBy::Period, "a larger period (-c)");
        check(SampledBy::Allocations, "use --every N, or a larger N");
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
                "10 stacks (10 %): the code has no unwind information (most in /lib/x.so+0x10)"
            ),
            "{text}"
        );
        assert!(text.contains("-fasynchronous-unwind-tables"), "{text}");
        quality
            .failures
            .iter_mut()
            .for_each(|place| place.module = "//anon".into());
        let text = Verdict::new(&quality).to_string();
        assert!(!text.contains("-fasynchronous"), "{text}");
    }
}
