//! The cost of a sample to the program, and the rate that takes a quarter of a CPU.
//!
//! The kernel bounds the interrupts of hardware counters (`kernel.perf_cpu_time_max_percent`), but
//! not those of its clocks. A clock that is due again before its last sample is taken leaves no
//! time for anything else. So the cost is measured beforehand, on a thread of our own.

use std::hint::black_box;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use prof_model::Fallback;

use crate::attr::setup::{Reports, Sampling, Scope, Setup, Tracking};
use crate::kernel;
use crate::kernel::ring::Ring;
use crate::request::target_threads::MonitoredThreads;

/// Lower rates are not measured.
const MODEST_HERTZ: u64 = 9_999;
/// The assumed cost of a sample, if it cannot be measured.
const ASSUMED: Duration = Duration::from_micros(10);

/// The setup with a rate at which samples take at most a quarter of a CPU, and the fallback if that
/// is not the requested rate.
pub(crate) fn limited(setup: Setup, asked: Sampling) -> (Setup, Option<Fallback>) {
    limited_by(setup, asked, |setup| measure(setup).unwrap_or(ASSUMED))
}

fn limited_by(
    setup: Setup,
    asked: Sampling,
    cost: impl FnOnce(&Setup) -> Duration,
) -> (Setup, Option<Fallback>) {
    let hertz = |sampling| {
        Setup {
            sampling,
            ..setup.clone()
        }
        .highest_rate()
    };
    let (Some(rate), Some(asked)) = (hertz(setup.sampling), hertz(asked)) else {
        return (setup, None);
    };
    if !setup.spec.is_clock() || rate <= MODEST_HERTZ {
        return (setup, None);
    }
    let cost = (cost(&setup).as_nanos() as u64).max(1);
    let used = (SECOND / 4 / cost).max(1);
    if used >= rate {
        return (setup, None);
    }
    let sampling = match setup.sampling {
        Sampling::Period(_) => Sampling::Period(SECOND / used),
        _ => Sampling::Hertz(used),
    };
    let said = Fallback::SampleCost { asked, used, cost };
    (Setup { sampling, ..setup }, Some(said))
}

const SECOND: u64 = 1_000_000_000;

/// How long a sample of this kind stops a thread: the median of some.
fn measure(setup: &Setup) -> Option<Duration> {
    // Another thread, so that its stack is as deep as we like.
    let measured = std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(DEPTH * 4);
        let measuring = thread.spawn_scoped(scope, || measure_below::<DEPTH>(setup));
        measuring.ok()?.join().ok()
    });
    measured.flatten()
}

/// Bytes of stack: as much as is copied of deep ones.
const DEPTH: usize = 64 << 10;

fn measure_below<const DEPTH: usize>(setup: &Setup) -> Option<Duration> {
    let stack = black_box([0_u8; DEPTH]);
    let gaps = gaps(setup);
    black_box(&stack);
    middle(gaps?)
}

/// The times for which this thread is stopped by samples.
fn gaps(setup: &Setup) -> Option<Vec<Duration>> {
    const SAMPLES: usize = 40;
    const PERIOD_NS: u64 = 100_000;
    const RING: u64 = 1 << 20;
    /// Reading the time takes less.
    const SHORTEST: Duration = Duration::from_nanos(1500);
    const LONGEST: Duration = Duration::from_millis(20);
    let own = Setup {
        sampling: Sampling::Period(PERIOD_NS),
        scope: Scope::Thread,
        reports: Reports {
            tracking: Tracking::Elsewhere,
            exit_counts: false,
            ..setup.reports
        },
        enable_on_exec: false,
        ..setup.clone()
    };
    let event = kernel::open(&mut own.attr(), MonitoredThreads::CALLER, None, None).ok()?;
    let mut ring = Ring::map(event.as_fd(), RING).ok()?;
    kernel::enable(event.as_fd()).ok()?;
    let mut gaps = Vec::with_capacity(SAMPLES);
    let begin = Instant::now();
    let mut last = begin;
    while gaps.len() < SAMPLES && last.duration_since(begin) < LONGEST {
        let mut now = Instant::now();
        let gap = now.duration_since(last);
        if gap >= SHORTEST {
            gaps.push(gap);
            // A full ring takes no samples.
            ring.drain(|_| {});
            now = Instant::now();
        }
        last = now;
    }
    Some(gaps)
}

/// The median: in some, another thread had the CPU, and some are other interrupts.
fn middle(mut gaps: Vec<Duration>) -> Option<Duration> {
    const FEWEST: usize = 8;
    gaps.sort_unstable();
    gaps.get(gaps.len() / 2)
        .copied()
        .filter(|_| gaps.len() >= FEWEST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::setup::tests::setup;

    #[test]
    fn samples_take_a_quarter_of_a_cpu_at_most() {
        let check = |event: &str, asked, cost_us, expected| {
            let opened = match asked {
                // The kernel's maximum.
                Sampling::Hertz(hertz) => Sampling::Hertz(hertz.min(100_000)),
                other => other,
            };
            let setup = Setup {
                sampling: opened,
                ..setup(event)
            };
            let cost = Duration::from_micros(cost_us);
            let (limited, said) = limited_by(setup, asked, |_| cost);
            assert_eq!(limited.sampling, expected, "{event} {asked:?} {cost_us}");
            let reported = said.map(|said| said.to_string()).unwrap_or_default();
            assert_eq!(!reported.is_empty(), expected != opened, "{reported}");
            if let (Sampling::Hertz(asked), false) = (asked, reported.is_empty()) {
                assert!(reported.contains(&asked.to_string()), "{reported}");
            }
        };
        let hertz = Sampling::Hertz;
        check("cpu-clock", hertz(99_999_999_999), 10, hertz(25_000));
        check("task-clock", hertz(100_000), 50, hertz(5_000));
        check("cpu-clock", hertz(100_000), 2, hertz(100_000));
        check("cpu-clock", hertz(20_000), 10, hertz(20_000));
        check("cpu-clock", hertz(9_999), 1_000, hertz(9_999));
        check("cpu-clock", hertz(100_000), 10_000_000, hertz(1));
        let period = Sampling::Period;
        check("cpu-clock", period(1), 10, period(40_000));
        check("cpu-clock", period(1_000_000), 10, period(1_000_000));
        // The kernel looks after the interrupts of counters itself.
        check("cycles", hertz(100_000), 50, hertz(100_000));
        check("page-faults", period(1), 50, period(1));
    }

    #[test]
    fn other_interruptions_do_not_count() {
        let check = |gaps: &[u64], expected: Option<u64>| {
            let gaps = gaps.iter().copied().map(Duration::from_micros).collect();
            assert_eq!(middle(gaps), expected.map(Duration::from_micros));
        };
        check(&[9, 10, 11, 10, 4000, 10, 2, 12, 11], Some(10));
        check(&[10; 7], None);
        check(&[], None);
    }

    #[test]
    fn a_sample_of_our_own_takes_some_time() {
        let cost = measure(&setup("cpu-clock:u"));
        // Without, no event may be opened here.
        assert!(cost.is_none_or(|cost| cost > Duration::ZERO));
    }
}
