//! How much of the time that threads did not run is known, in words.

use super::percent::{percent, whole_shown};
use super::{Grade, share};
use crate::waits::WaitCoverage;

/// Whether much of the waiting time has no stack.
pub(super) fn hides_much(waits: WaitCoverage) -> bool {
    const MUCH: f64 = 0.05;
    share(waits.unseen_time(), waits.time).is_some_and(|unseen| unseen > MUCH)
}

/// Whether so little of the waiting time has a stack that the recording shows nothing of the rest.
pub(super) fn hide_most(waits: WaitCoverage) -> bool {
    const MOST: f64 = 0.5;
    share(waits.unseen_time(), waits.time).is_some_and(|unseen| unseen > MOST)
}

/// The share of the waiting time with a stack whose stack is whole: a single wait may last longer
/// than all others.
pub(super) fn whole_time(waits: WaitCoverage) -> f64 {
    let whole = waits.known_time().saturating_sub(waits.partial_time);
    share(whole, waits.known_time()).unwrap_or(1.0)
}

/// How much of the time that threads did not run is there.
pub(super) fn waits(waits: &WaitCoverage) -> impl Iterator<Item = String> {
    let seen = (waits.seen < waits.waits).then(|| seen_waits(waits));
    let ready = waits.has_much_ready_time().then(|| {
        format!(
            "threads were ready to run for {}, but had no CPU (a busy machine, a CPU limit, or \
             more threads than CPUs): this is neither running nor waiting, and not shown",
            duration(waits.ready_time)
        )
    });
    let whole = whole_time(*waits);
    let partial = (whole < Grade::GOOD_WHOLE).then(|| {
        format!(
            "{} of the waiting time has a whole stack",
            percent(whole_shown(whole))
        )
    });
    seen.into_iter().chain(partial).chain(ready)
}

/// Seconds, or milliseconds if they are few.
fn duration(nanoseconds: u64) -> String {
    match nanoseconds as f64 {
        few if few < 1e8 => format!("{:.1} ms", few / 1e6),
        many => format!("{:.1} s", many / 1e9),
    }
}

/// How much of the waiting time has a stack.
fn seen_waits(waits: &WaitCoverage) -> String {
    let of_time = |part| percent(share(part, waits.time).unwrap_or(0.0));
    let mut reported = format!(
        "{} of the waiting time has a stack ({} of {} waits)",
        of_time(waits.seen_time),
        waits.seen,
        waits.waits,
    );
    if waits.placed_time > 0 {
        reported += &format!(
            "; {} were waits too short to be seen: they count like other waits of the same thread \
             and length",
            of_time(waits.placed_time)
        );
    }
    if waits.unseen_time() > 0 {
        reported += &format!(
            "; where the other {} was spent is unknown",
            of_time(waits.unseen_time())
        );
    }
    reported
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::Quality;
    use crate::stack::StackEnd;
    use crate::verdict::tests::quality;
    use crate::verdict::{Grade, Verdict};

    /// Of a program that never waits, in a cgroup that limits its CPU time.
    #[test]
    fn time_without_a_cpu_is_reported_without_any_wait() {
        let quality = Quality {
            every_event: true,
            waits: Some(WaitCoverage {
                ready_time: 2_100_000_000,
                ..WaitCoverage::default()
            }),
            ..Quality::default()
        };
        let verdict = Verdict::new(&quality);
        let [why, ready] = verdict.problems() else {
            panic!("{verdict}");
        };
        assert_eq!(
            why,
            "nothing was sampled: no thread waited; leave out --off-cpu to see what runs"
        );
        assert!(ready.contains("ready to run for 2.1 s"), "{ready}");
    }

    #[test]
    fn unseen_waits_are_reported() {
        let check = |seen_time, placed_time, grade, expected: &str| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 0);
            quality.waits = Some(WaitCoverage {
                waits: 50,
                seen: 10,
                time: 1000,
                seen_time,
                placed_time,
                ..WaitCoverage::default()
            });
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.grade, grade);
            let [reported] = verdict.problems() else {
                panic!("{verdict}");
            };
            assert!(reported.contains(expected), "{reported}");
        };
        check(900, 90, Grade::Good, "90 % of the waiting time has a stack");
        check(
            900,
            90,
            Grade::Good,
            "where the other 1 % was spent is unknown",
        );
        check(500, 400, Grade::Fair, "(10 of 50 waits)");
        check(500, 0, Grade::Fair, "where the other 50 % was spent");
        check(499, 0, Grade::Bad, "where the other 50.1 % was spent");
    }

    #[test]
    fn waits_are_graded_by_their_time_too() {
        let check = |partial_time, grade, expected: Option<&str>| {
            let ends = [(StackEnd::Root, 999), (StackEnd::NoUnwindInfo, 1)];
            let mut quality = quality(&ends, 0);
            quality.waits = Some(WaitCoverage {
                waits: 1000,
                seen: 1000,
                time: 6000,
                seen_time: 6000,
                partial_time,
                ..WaitCoverage::default()
            });
            let verdict = Verdict::new(&quality);
            let reported = verdict.problems().get(1).map(String::as_str);
            assert_eq!((verdict.grade, reported), (grade, expected));
        };
        check(30, Grade::Good, None);
        let line = "99.4 % of the waiting time has a whole stack";
        check(36, Grade::Fair, Some(line));
        let line = "16.7 % of the waiting time has a whole stack";
        check(5000, Grade::Bad, Some(line));
    }

    #[test]
    fn time_without_a_cpu_is_reported() {
        let reported = |time, ready_time| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 0);
            quality.waits = Some(WaitCoverage {
                waits: 50,
                seen: 50,
                time,
                seen_time: time,
                ready_time,
                ..WaitCoverage::default()
            });
            Verdict::new(&quality).problems().first().cloned()
        };
        assert_eq!(reported(10_000_000_000, 400_000_000), None);
        let check = |time, ready_time, expected: &str| {
            let much = reported(time, ready_time).expect("a problem");
            let expected = format!("threads were ready to run for {expected},");
            assert!(much.starts_with(&expected), "{much}");
        };
        check(10_000_000_000, 1_600_000_000, "1.6 s");
        check(5_000_000, 1_640_000, "1.6 ms");
    }
}
