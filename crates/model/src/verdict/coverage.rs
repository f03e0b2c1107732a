//! How much of threads' work has samples, in words.

use super::percent::percent;
use super::remedy::{self, Cause};
use super::{Grade, samples_in, share};
use crate::coverage::Coverage;
use crate::quality::{Quality, SampledBy, Unsampled, UnsampledCode};
use crate::text::counted;

/// A line for each name whose samples stand for too little or too much work, if it did much work.
pub(super) fn coverage(quality: &Quality) -> impl Iterator<Item = String> {
    const MOST: usize = 3;
    let total = Coverage::total(&quality.coverage);
    let line = |one: &Coverage| {
        let (what, remedy) = problem_and_remedy(one, "its", quality, &total);
        let corrected = match one.correction() {
            Some(_) => "; weights are corrected",
            None => "",
        };
        format!("{}: {what}{corrected}{remedy}", names(one, &total))
    };
    let wrong = wrong(quality, total.clone()).take(MOST);
    let mut lines: Vec<String> = wrong.map(line).collect();
    // What can be chance in the samples of each thread cannot be in those of all.
    if lines.is_empty() && all_mislead(quality, &total) {
        let (what, remedy) = problem_and_remedy(&total, "their", quality, &total);
        let threads = counted(total.threads, "thread");
        lines.push(format!("all {threads} together: {what}{remedy}"));
    }
    lines.into_iter()
}

/// Whether the report misleads, because the samples of some threads stand for much less, or more,
/// than their work.
pub(super) fn misleads(quality: &Quality) -> bool {
    let total = Coverage::total(&quality.coverage);
    all_mislead(quality, &total) || wrong(quality, total).any(Coverage::misleads)
}

fn all_mislead(quality: &Quality, total: &Coverage) -> bool {
    total.misleads() && total.is_wrong(total) && is_much(total.used, quality, total)
}

/// Whether most of the work has no samples: the profile is of the smaller part, and shows nothing
/// of what the rest was.
pub(super) fn misses_most(quality: &Quality) -> bool {
    const MOST: f64 = 0.5;
    let total = Coverage::total(&quality.coverage);
    total.is_wrong(&total)
        && is_much(total.used, quality, &total)
        && total.share().is_some_and(|share| share < MOST)
}

/// The threads that used much, and whose samples stand for something else.
fn wrong(quality: &Quality, total: Coverage) -> impl Iterator<Item = &Coverage> {
    let used = quality.coverage.iter();
    used.filter(move |one| one.is_wrong(&total) && is_much(one.used, quality, &total))
}

/// Whether this work is much of what the recording shows. Beside waits, which are its subject, work
/// of a few sampling periods is not.
fn is_much(used: u64, quality: &Quality, total: &Coverage) -> bool {
    const MUCH: f64 = 0.01;
    let is_a_trifle = quality.waits.is_some_and(|waits| waits.waits > 0)
        && samples_in(used, quality) < Grade::ENOUGH_SAMPLES;
    share(used, total.used).unwrap_or(0.0) >= MUCH && !is_a_trifle
}

/// What is wrong with the samples of these threads, and what helps.
fn problem_and_remedy(
    one: &Coverage,
    its: &str,
    quality: &Quality,
    total: &Coverage,
) -> (String, String) {
    /// Threads with this many samples live long enough to be sampled.
    const MANY: u64 = 20;
    const COUNT: &str = "; -c N (a sample per N events) counts exactly";
    let covered = one.share().unwrap_or(0.0);
    let event =
        (quality.covered_event.as_ref()).map_or_else(String::new, |name| format!("{name} "));
    if covered > 1.0 {
        let reported = format!(
            "{its} {event}samples stand for {} of {its} work",
            percent(covered)
        );
        let settings = quality.settings.as_ref();
        let guesses = settings.is_some_and(|known| !known.by_clock && known.rate.is_some());
        let remedy = match guesses {
            true => COUNT,
            false => "",
        };
        return (reported, remedy.to_owned());
    }
    let missing = match one.samples {
        0 => format!("no {event}sample"),
        _ => format!(
            "no {event}samples of {} of {its} work",
            percent(1.0 - covered)
        ),
    };
    let is_long = one.samples / one.threads.max(1) >= MANY;
    if was_lost(quality, total) {
        (format!("{missing} (samples were lost)"), String::new())
    } else if quality.losses.throttled > 0 {
        let or = if is_long { "busy machine" } else { "too short" };
        (format!("{missing} (throttled, or {or})"), String::new())
    } else if has_kernels_periods(quality) {
        let why = "the kernel chose periods that are too long";
        (format!("{missing} ({why})"), COUNT.to_owned())
    } else if is_long {
        let missing = percent(1.0 - covered);
        let reported =
            format!("{missing} of {its} {event}samples came late or not at all (busy machine)");
        (reported, String::new())
    } else {
        let why = match one.threads {
            1 => "too short",
            _ => "its threads are too short",
        };
        let or = match &quality.unsampled {
            Some(Unsampled { code, .. }) => format!(", or in {}", place_of(*code)),
            None => String::new(),
        };
        let remedy = remedy::ending(Cause::FewSamples, quality);
        (format!("{missing} ({why}{or})"), remedy)
    }
}

/// Whether the covered event is one of the kernel's own at a rate, such as a tracepoint: the kernel
/// then guesses how many of them come in the next period.
fn has_kernels_periods(quality: &Quality) -> bool {
    let are_unequal = quality.sampled_by == SampledBy::Rate && quality.weights.all > 0;
    are_unequal && quality.covered_event.is_none()
}

/// Whether most of the missing samples were lost: losses are everywhere and have their own line.
fn was_lost(quality: &Quality, total: &Coverage) -> bool {
    let lost = u128::from(total.sampled) * u128::from(quality.losses.samples())
        / u128::from(total.samples.max(1));
    let known = total.unseen.saturating_add(total.sampled);
    2 * lost > u128::from(total.used.saturating_sub(known))
}

/// A line for the time that the event counts and does not sample.
pub(super) fn unseen(quality: &Quality) -> Option<String> {
    const MUCH: f64 = 0.05;
    let total = Coverage::total(&quality.coverage);
    let unseen = share(total.unseen, total.used).filter(|&unseen| unseen >= MUCH)?;
    let place = match &quality.unsampled {
        Some(Unsampled { code, cause }) => {
            format!("{} and is not shown ({cause})", place_of(*code))
        }
        None => "code that the event does not sample".to_owned(),
    };
    // Where threads are too short, their work without samples may be of either kind.
    let known = total.unseen.saturating_add(total.sampled);
    let unknown = share(total.used.saturating_sub(known), total.used);
    let at_least = match unknown {
        Some(unknown) if unknown >= MUCH => "at least ",
        _ => "",
    };
    Some(format!(
        "{at_least}{:.0} % of the CPU time was in {place}",
        (unseen * 100.0).clamp(0.0, 100.0)
    ))
}

fn place_of(code: UnsampledCode) -> &'static str {
    match code {
        UnsampledCode::Kernel => "the kernel",
        UnsampledCode::User => "user code",
    }
}

/// `server "worker" (12 threads, 30 % of all)`
fn names(one: &Coverage, total: &Coverage) -> String {
    let name = match one.thread == one.process {
        true => one.process.clone(),
        false => format!("{} \"{}\"", one.process, one.thread),
    };
    let threads = (one.threads > 1).then(|| format!("{} threads", one.threads));
    let part = share(one.used, total.used).filter(|part| *part < 0.995);
    let part = part.map(|part| format!("{} of all work", percent(part)));
    let more: Vec<String> = threads.into_iter().chain(part).collect();
    match more.is_empty() {
        true => name,
        false => format!("{name} ({})", more.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::StackWeights;
    use crate::stack::StackEnd;
    use crate::verdict::tests::quality;
    use crate::verdict::{Grade, Verdict};
    use crate::waits::WaitCoverage;

    #[test]
    fn what_is_chance_in_each_thread_and_not_in_all_is_reported() {
        let mut quality = quality(&[(StackEnd::Root, 60)], 0);
        let child = |number: u64| Coverage {
            process: format!("child-{number}"),
            thread: format!("child-{number}"),
            threads: 1,
            used: 10_000,
            sampled: 35_000,
            samples: 15,
            ..Coverage::default()
        };
        quality.coverage = (0..4).map(child).collect();
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, Grade::Fair);
        let expected = "all 4 threads together: their samples stand for 350 % of their work";
        assert_eq!(verdict.problems(), [expected]);
    }

    /// A program calls `getppid` 300,000 times, and the kernel has guessed a long period early.
    #[test]
    fn periods_that_the_kernel_guesses_are_no_fault_of_the_program() {
        let mut quality = quality(&[(StackEnd::Root, 40)], 0);
        quality.weights = StackWeights {
            all: 2000,
            partial: 0,
        };
        quality.coverage = vec![Coverage {
            process: "pids".into(),
            thread: "pids".into(),
            threads: 1,
            used: 300_000,
            sampled: 2000,
            samples: 6,
            ..Coverage::default()
        }];
        let verdict = Verdict::new(&quality);
        let expected = "pids: no samples of 99.3 % of its work (the kernel chose periods \
            that are too long); weights are corrected; -c N (a sample per N events) counts exactly";
        assert_eq!(verdict.problems(), [expected]);
        quality.covered_event = Some("cpu-clock".into());
        let verdict = Verdict::new(&quality);
        assert!(verdict.problems()[0].contains("(too short)"), "{verdict}");
    }

    #[test]
    fn the_little_work_of_a_program_that_waits_does_not_matter() {
        let check = |time, used, expected: Grade, problems: usize| {
            let mut quality = quality(&[(StackEnd::Root, 1)], 0);
            quality.settings.get_or_insert_default().rate = Some(999);
            quality.waits = Some(WaitCoverage {
                waits: 1,
                seen: 1,
                time,
                seen_time: time,
                ..WaitCoverage::default()
            });
            quality.coverage = vec![Coverage {
                threads: 1,
                used,
                ..Coverage::default()
            }];
            let verdict = Verdict::new(&quality);
            let found = (verdict.grade, verdict.problems().len());
            assert_eq!(found, (expected, problems), "{verdict}");
        };
        check(1_000_000_000, 3_000_000, Grade::Good, 0);
        check(20_000_000, 3_000_000, Grade::TooFewSamples, 1);
        check(1_000_000_000, 50_000_000, Grade::Bad, 1);
    }

    #[test]
    fn threads_that_were_hardly_sampled_are_named() {
        let mut quality = quality(&[(StackEnd::Root, 1000)], 0);
        let coverage = |thread: &str, used, sampled, samples| Coverage {
            process: "server".into(),
            thread: thread.into(),
            threads: 500,
            used,
            sampled,
            samples,
            ..Coverage::default()
        };
        quality.coverage = vec![
            coverage("server", 900_000, 890_000, 890),
            coverage("worker", 100_000, 50_000, 110),
            coverage("tick", 20_000, 0, 0),
            coverage("trifle", 100, 0, 0),
        ];
        let verdict = Verdict::new(&quality);
        let [worker, tick] = verdict.problems() else {
            panic!("{verdict}");
        };
        assert!(
            worker.starts_with(
                "server \"worker\" (500 threads, 9.8 % of all work): no samples of 50 % of its work"
            ) && worker.contains("corrected"),
            "{worker}"
        );
        assert!(
            tick.contains("of all work): no sample (its threads") && !tick.contains("corrected"),
            "{tick}"
        );
        assert!(tick.contains("too short") && tick.contains("-F"), "{tick}");
        let mut redis = quality.clone();
        redis.coverage = vec![coverage("server", 1_000_000, 940_000, 940)];
        redis.coverage[0].threads = 1;
        let verdict = Verdict::new(&redis).to_string();
        let line = "- server: 6 % of its samples came late or not at all (busy machine); weights are corrected";
        assert!(verdict.contains(line), "{verdict}");
        assert!(
            !verdict.contains("short") && !verdict.contains("-F"),
            "{verdict}"
        );
        quality.covered_event = Some("cpu-clock".into());
        let verdict = Verdict::new(&quality);
        let [worker, tick] = verdict.problems() else {
            panic!("{verdict}");
        };
        assert!(
            worker.contains(": no cpu-clock samples of 50 %"),
            "{worker}"
        );
        assert!(tick.contains(": no cpu-clock sample (its"), "{tick}");
        quality.losses.ring_full = 100;
        let verdict = Verdict::new(&quality);
        let lost = verdict.problems().iter().find(|one| one.contains("tick"));
        assert!(
            lost.is_some_and(|one| one.contains("samples were lost")),
            "{verdict}"
        );
        quality.losses.ring_full = 0;
        quality.sampled_by = SampledBy::Period;
        let reported = |quality: &Quality| Verdict::new(quality).to_string();
        assert!(
            reported(&quality).contains("(-c)"),
            "{}",
            reported(&quality)
        );
        assert!(!reported(&quality).contains("-F"), "{}", reported(&quality));
        quality.losses.throttled = 1;
        assert!(reported(&quality).contains("(throttled, or too short)"));
        assert!(!reported(&quality).contains("smaller period"));
    }

    #[test]
    fn unsampled_time_in_the_kernel_is_reported() {
        let check = |unseen, unsampled: Option<UnsampledCode>, expected: Option<&str>| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 0);
            quality.unsampled = unsampled.map(|code| Unsampled {
                code,
                cause: "-e cpu-clock:u".into(),
            });
            quality.coverage = vec![Coverage {
                used: 1000,
                unseen,
                sampled: 1000 - unseen,
                samples: 1000,
                ..Coverage::default()
            }];
            let verdict = Verdict::new(&quality);
            let reported = verdict.problems().first().map(String::as_str);
            assert_eq!((verdict.grade, reported), (Grade::Good, expected));
        };
        let (kernel, user) = (Some(UnsampledCode::Kernel), Some(UnsampledCode::User));
        let line = "64 % of the CPU time was in the kernel and is not shown (-e cpu-clock:u)";
        check(640, kernel, Some(line));
        let line = "64 % of the CPU time was in user code and is not shown (-e cpu-clock:u)";
        check(640, user, Some(line));
        let line = "5 % of the CPU time was in code that the event does not sample";
        check(50, None, Some(line));
        check(49, kernel, None);
    }

    #[test]
    fn short_threads_may_have_been_in_the_kernel() {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.unsampled = Some(Unsampled {
            code: UnsampledCode::Kernel,
            cause: "perf_event_paranoid=2".into(),
        });
        quality.coverage = vec![Coverage {
            process: "echo".into(),
            thread: "echo".into(),
            threads: 100,
            used: 1000,
            unseen: 120,
            sampled: 100,
            samples: 100,
            ..Coverage::default()
        }];
        let reported = Verdict::new(&quality).to_string();
        let reasons = [
            "(its threads are too short, or in the kernel)",
            "at least 12 % of the CPU time was in the kernel and is not shown",
        ];
        for reason in reasons {
            assert!(reported.contains(reason), "{reported}");
        }
    }

    #[test]
    fn low_coverage_is_not_good() {
        let check = |sampled, grade, reported: Option<&str>| {
            let mut quality = quality(&[(StackEnd::Root, 1000)], 0);
            quality.coverage = vec![Coverage {
                process: "cc1".into(),
                thread: "cc1".into(),
                threads: 1,
                used: 1000,
                sampled,
                samples: sampled,
                ..Coverage::default()
            }];
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.grade, grade, "{verdict}");
            assert_eq!(verdict.problems().first().map(String::as_str), reported);
        };
        check(1000, Grade::Good, None);
        check(1040, Grade::Good, None);
        let line = "cc1: its samples stand for 109 % of its work";
        check(1090, Grade::Good, Some(line));
        let line = "cc1: its samples stand for 150 % of its work";
        check(1500, Grade::Fair, Some(line));
        let line = "cc1: 11 % of its samples came late or not at all (busy machine); weights are \
                    corrected";
        check(890, Grade::Fair, Some(line));
        let line = "cc1: 49 % of its samples came late or not at all (busy machine); weights are \
                    corrected";
        check(510, Grade::Fair, Some(line));
        let line = "cc1: 51 % of its samples came late or not at all (busy machine); weights are \
                    corrected";
        check(490, Grade::Bad, Some(line));
    }

    /// Samples of other events, as waits, show nothing of it.
    #[test]
    fn work_that_is_mostly_without_samples_is_bad_however_many_other_samples_there_are() {
        let mut quality = quality(&[(StackEnd::Root, 900)], 0);
        quality.coverage = vec![Coverage {
            process: "vforks".into(),
            thread: "vforks".into(),
            threads: 600,
            used: 400_000_000,
            sampled: 2_000_000,
            samples: 2,
            ..Coverage::default()
        }];
        assert_eq!(Verdict::new(&quality).grade, Grade::Bad);
    }
}
