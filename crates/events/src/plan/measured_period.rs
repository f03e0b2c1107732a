//! The period of a rate, where it is known or measured how many events there are in a second.

use std::ops::RangeInclusive;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use crate::attr::sample_period::{SamplePeriod, is_cycles};
use crate::attr::setup::{Sampling, Setup};
use crate::kernel;
use crate::request::sizes::Sizes;
use crate::system::System;

/// Turns a rate into a period if possible: for a single event whose highest rate is known.
pub(crate) fn with_sample_period(setup: Setup, system: &System, sizes: Sizes) -> Setup {
    // This many samples from the first moments of a thread are not throttled.
    let unthrottled = system.max_rate.saturating_mul(4);
    let highest = unthrottled.min(SamplePeriod::HIGHEST_RATE);
    let highest = match setup.sampling {
        Sampling::Hertz(hertz) => highest.min(SamplePeriod::unlost_rate(sizes, hertz)),
        _ => highest,
    };
    with_period(setup, highest, cycles_per_second)
}

fn with_period(
    setup: Setup,
    highest: u64,
    cycles_per_second: impl FnOnce(&Setup) -> Option<u64>,
) -> Setup {
    let Sampling::Hertz(hertz) = setup.sampling else {
        return setup;
    };
    let events_per_second = match &setup.spec {
        _ if !setup.reports.exit_counts => None,
        spec if spec.is_clock() => Some(1_000_000_000),
        spec if is_cycles(spec) => cycles_per_second(&setup),
        _ => None,
    };
    let sample_period =
        events_per_second.and_then(|number| SamplePeriod::new(number, hertz, highest));
    match sample_period {
        Some(sample_period) => Setup {
            sampling: Sampling::MeasuredPeriod(hertz, sample_period),
            ..setup
        },
        None => setup,
    }
}

/// Measured with our own work, which also wakes up a CPU that is asleep. `None` if the counter is
/// implausible: then the kernel keeps the rate.
fn cycles_per_second(setup: &Setup) -> Option<u64> {
    const TURNS: usize = 12;
    let counter = kernel::open_counter(setup).ok()?;
    let mut readings = Vec::with_capacity(TURNS + 1);
    readings.push(kernel::count_and_time(counter.as_fd())?);
    for _ in 0..TURNS {
        work();
        readings.push(kernel::count_and_time(counter.as_fd())?);
    }
    highest_rate(&readings)
}

const TURN: Duration = Duration::from_micros(250);

fn work() {
    let begin = Instant::now();
    // Real work: virtual machines are left while a program says that it spins.
    let mut work = 1_u64;
    while begin.elapsed() < TURN {
        for _ in 0..1000 {
            work = std::hint::black_box(work.wrapping_mul(3));
        }
    }
}

/// Cycles per second from consecutive readings of the count and of its time in nanoseconds, which
/// is shorter if counters are multiplexed. The highest result is used: in some intervals, we or our
/// virtual machine had to wait.
fn highest_rate(readings: &[(u64, u64)]) -> Option<u64> {
    /// In less time there is nothing to be measured.
    const SHORTEST: u64 = TURN.as_nanos() as u64 / 4;
    /// No CPU runs slower or faster.
    const PLAUSIBLE: RangeInclusive<u64> = 50_000_000..=20_000_000_000;
    let rate = |turn: &[(u64, u64)]| {
        let &[(before, from), (after, until)] = turn else {
            return None;
        };
        let time = until.checked_sub(from).filter(|&time| time >= SHORTEST)?;
        let cycles = u128::from(after.checked_sub(before)?);
        u64::try_from(cycles * 1_000_000_000 / u128::from(time)).ok()
    };
    let rates = readings.windows(2).filter_map(rate);
    rates.filter(|rate| PLAUSIBLE.contains(rate)).max()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::setup::tests::{setup, system};

    const SIZES: Sizes = Sizes {
        ring: 4 << 20,
        dump: Some(65_528),
        wakeup: 1,
    };

    #[test]
    fn rings_hold_the_samples_of_an_absent_reader() {
        let check = |sizes, hertz, shortest| {
            let setup = Setup {
                sampling: Sampling::Hertz(hertz),
                ..setup("cpu-clock")
            };
            let sample_period = with_sample_period(setup, &system(), sizes).sample_period();
            assert_eq!(
                sample_period.map(|sample_period| sample_period.shortest),
                Some(shortest),
                "{sizes:?}"
            );
        };
        // 63 samples in 5 ms.
        check(SIZES, 999, 79_365);
        let small = Sizes {
            ring: 64 << 10,
            dump: Some(8192),
            ..SIZES
        };
        check(small, 999, 125_125);
        check(small, 100, 714_285);
        let no_dump = Sizes {
            dump: None,
            ..SIZES
        };
        check(no_dump, 999, 20_000);
    }

    #[test]
    fn counters_that_talk_nonsense_measure_nothing() {
        let check = |readings: &[(u64, u64)], expected: Option<u64>| {
            assert_eq!(highest_rate(readings), expected, "{readings:?}");
        };
        // 3 GHz, and intervals in which another thread had the CPU.
        check(
            &[
                (0, 0),
                (750_000, 250_000),
                (800_000, 500_000),
                (1_400_000, 700_000),
            ],
            Some(3_000_000_000),
        );
        // Nothing is counted: a virtual machine without counters, or another kind of CPU.
        check(&[(0, 0), (0, 250_000), (0, 500_000)], None);
        check(&[(0, 0), (750_000, 0), (1_500_000, 0)], None);
        // Far too little, too much, or backwards.
        check(&[(0, 0), (100, 250_000)], None);
        check(&[(0, 0), (75_000_000, 250_000)], None);
        check(&[(750_000, 0), (0, 250_000)], None);
        check(&[(0, 250_000), (750_000, 0)], None);
        // A turn that hardly took place says nothing.
        check(&[(0, 0), (30, 10), (500_030, 250_010)], Some(2_000_000_000));
        check(&[(0, 0)], None);
        check(&[], None);
    }

    #[test]
    fn where_cycles_cannot_be_measured_the_kernel_keeps_the_rate() {
        let check = |measured: Option<u64>, expected: Option<u64>| {
            let with_sample_period =
                with_period(setup("cycles"), SamplePeriod::HIGHEST_RATE, |_| measured);
            assert_eq!(
                with_sample_period
                    .sample_period()
                    .map(|sample_period| sample_period.period),
                expected
            );
            if expected.is_none() {
                assert_eq!(with_sample_period.sampling, Sampling::Hertz(999));
            }
        };
        check(Some(2_997_000_000), Some(3_000_000));
        check(None, None);
    }

    #[test]
    fn a_requested_period_is_kept() {
        let check = |sampling, measured_by_us: bool| {
            let setup = Setup {
                sampling,
                ..setup("cpu-clock")
            };
            assert_eq!(
                with_sample_period(setup, &system(), SIZES)
                    .sample_period()
                    .is_some(),
                measured_by_us
            );
        };
        check(Sampling::Period(77), false);
        check(Sampling::Hertz(999), true);
        check(Sampling::Hertz(90_000), false);
    }
}
