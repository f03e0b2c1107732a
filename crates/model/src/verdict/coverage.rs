//! How much of what threads did was sampled, in words.

use super::{percent, share};
use crate::coverage::Coverage;
use crate::quality::Quality;

/// The threads that were hardly sampled, if they did anything that counts.
pub(super) fn coverage(quality: &Quality) -> impl Iterator<Item = String> {
    const MOST: usize = 3;
    const MATTERS: f64 = 0.01;
    const MANY: u64 = 20;
    let total = Coverage::total(&quality.coverage);
    let matters = move |one: &&Coverage| {
        one.is_short() && share(one.used, total.used).unwrap_or(0.0) >= MATTERS
    };
    // What was lost of samples is missing everywhere: it has its own line.
    let lost = u128::from(total.sampled) * u128::from(quality.losses.samples())
        / u128::from(total.samples.max(1));
    let missing = total
        .used
        .saturating_sub(total.unseen.saturating_add(total.sampled));
    let was_lost = 2 * lost > u128::from(missing);
    quality.coverage.iter().filter(matters).take(MOST).map(move |one| {
        let sampled = match one.share() {
            Some(share) if one.samples > 0 => percent(share),
            _ => "nothing".to_owned(),
        };
        let corrected = match one.correction() {
            Some(_) => "; their weights are corrected by what the kernel counted",
            None => "",
        };
        // Who has many samples lives long enough for them.
        let is_long = one.samples / one.threads.max(1) >= MANY;
        let cause = match one.threads {
            _ if is_long => "the kernel's clock was late, on a busy host, say",
            1 => "it is too short",
            _ => "they are too short",
        };
        let (why, remedy) = if was_lost {
            ("samples were lost".to_owned(), String::new())
        } else if quality.losses.throttled > 0 {
            (format!("sampling was throttled, or {cause}"), String::new())
        } else if is_long {
            (cause.to_owned(), String::new())
        } else {
            (cause.to_owned(), format!("; use {}", quality.sampled_by.more()))
        };
        format!(
            "{sampled} was sampled of what {} did ({} of all), mostly because {why}{corrected}{remedy}",
            names(one),
            percent(share(one.used, total.used).unwrap_or(0.0)),
        )
    })
}

/// What the event does not sample, though it counts it.
pub(super) fn unseen(coverage: &[Coverage]) -> Option<String> {
    const MUCH: f64 = 0.05;
    let total = Coverage::total(coverage);
    let unseen = share(total.unseen, total.used).filter(|&unseen| unseen >= MUCH)?;
    Some(format!(
        "about {} of the CPU time is not in the profile: the event samples user code only, or kernel \
         code only, and that much was in the other",
        percent(unseen)
    ))
}

/// `12 threads "worker" of server`
fn names(one: &Coverage) -> String {
    let threads = match one.threads {
        1 => "1 thread".to_owned(),
        more => format!("{more} threads"),
    };
    match one.thread == one.process {
        true => format!("{threads} of {}", one.process),
        false => format!("{threads} \"{}\" of {}", one.thread, one.process),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::SampledBy;
    use crate::stack::StackEnd;
    use crate::verdict::tests::quality;
    use crate::verdict::{Grade, Verdict};

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
                "50 % was sampled of what 500 threads \"worker\" of server did (9.8 %"
            ) && worker.contains("corrected"),
            "{worker}"
        );
        assert!(
            tick.starts_with("nothing was sampled") && !tick.contains("corrected"),
            "{tick}"
        );
        assert!(tick.contains("too short") && tick.contains("-F"), "{tick}");
        let mut redis = quality.clone();
        redis.coverage = vec![coverage("server", 1_000_000, 940_000, 940)];
        redis.coverage[0].threads = 1;
        let verdict = Verdict::new(&redis).to_string();
        assert!(verdict.contains("clock was late"), "{verdict}");
        assert!(
            !verdict.contains("short") && !verdict.contains("-F"),
            "{verdict}"
        );
        quality.losses.ring_full = 100;
        let verdict = Verdict::new(&quality);
        let lost = verdict.problems().iter().find(|one| one.contains("tick"));
        assert!(
            lost.is_some_and(|one| one.contains("samples were lost")),
            "{verdict}"
        );
        quality.losses.ring_full = 0;
        quality.sampled_by = SampledBy::Period;
        let told = |quality: &Quality| Verdict::new(quality).to_string();
        assert!(told(&quality).contains("(-c)"), "{}", told(&quality));
        assert!(!told(&quality).contains("-F"), "{}", told(&quality));
        quality.losses.throttled = 1;
        assert!(told(&quality).contains("throttled, or they are too short"));
        assert!(!told(&quality).contains("smaller period"));
    }

    #[test]
    fn time_in_the_kernel_that_is_not_sampled_is_told() {
        let check = |unseen, expected: Option<&str>| {
            let mut quality = quality(&[(StackEnd::Root, 100)], 0);
            quality.coverage = vec![Coverage {
                used: 1000,
                unseen,
                sampled: 1000 - unseen,
                samples: 1000,
                ..Coverage::default()
            }];
            let verdict = Verdict::new(&quality);
            let told = verdict.problems().first().map(|told| &told[..14]);
            assert_eq!((verdict.grade, told), (Grade::Good, expected));
        };
        check(640, Some("about 64 % of "));
        check(50, Some("about 5 % of t"));
        check(49, None);
    }
}
