//! From a rate to a period, which the recorder then varies.
//!
//! With the kernel's own sampling at a rate, a thread gets its first sample when its first period
//! is over, or with the first event: both are the same point of each short thread's life. If prof
//! sets the period, it can give threads random periods.

use std::iter;
use std::sync::LazyLock;

use perf_event_open_sys::bindings as sys;

use crate::parsing::EventSpec;
use crate::request::sizes::Sizes;

/// The periods to sample by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SamplePeriod {
    /// The usual one, for the requested rate.
    pub period: u64,
    /// The shortest one, of some microseconds.
    pub shortest: u64,
}

impl SamplePeriod {
    /// The rate of the shortest periods, which are longer than the shortest that the kernel's
    /// clocks support (10 µs).
    pub(crate) const HIGHEST_RATE: u64 = 50_000;

    /// The rate at which rings of these sizes do not fill while the reader is away.
    pub(crate) fn unlost_rate(sizes: Sizes, hertz: u64) -> u64 {
        /// The reader draws periods each millisecond, and without privileges may have to wait for a
        /// CPU for about 3 ms. Meanwhile all new threads have the same period.
        const READER_AWAY_MS: u64 = 5;
        /// However small the rings, threads of an eighth of a period are sampled.
        const LEAST: u64 = 8;
        match sizes.samples_held() {
            Some(samples) => (samples * 1000 / READER_AWAY_MS).max(hertz.saturating_mul(LEAST)),
            None => u64::MAX,
        }
    }

    /// After this many of the usual periods, a thread's age makes no difference.
    const OLD: u64 = 50;

    /// Samples up to this many of the shortest periods stand for the first of these as well.
    const HEAD: u64 = 10;

    pub(crate) fn new(events_per_second: u64, hertz: u64, highest: u64) -> Option<Self> {
        let sample_period = Self {
            period: events_per_second / hertz.max(1),
            shortest: events_per_second / highest.max(1),
        };
        (sample_period.shortest > 0 && sample_period.shortest < sample_period.period / 2)
            .then_some(sample_period)
    }
}

/// How to sample threads that may be too short for the usual period.
///
/// A new thread is given a period `p` at random, by the density `f(p) = √p / D` between the
/// shortest `s` and the usual `P`, and is sampled when it has counted `p`, `2p`, `3p`, ... Over all
/// threads, samples then come at age `t` with the density `d(t) / p`, where
///
/// ```text
///   d(t) = Σ t/k² f(t/k)   over all k with s <= t/k <= P
///   D    = ⅔ (P√P − s√s)
/// ```
///
/// so that a sample of weight `p / d(t)` represents one event on average, whatever its age. In the
/// long run `d` is 1. Work before `s` is never sampled: samples up to ten times that age represent
/// it, too.
///
/// Why the root: the average rate is at most `3/P`, and a first sample weighs `1/f(p)`. An even
/// density has a much higher rate (`ln(P/s)/P`), and `f` growing as `p` a slightly lower one
/// (`2/P`), but then the few samples of the shortest periods weigh so much that sums over three
/// thousand threads of `P` have a standard deviation of 3 %.
impl SamplePeriod {
    /// The period for a number between 0 and 1 that is drawn at random, evenly.
    pub fn draw(&self, random: f64) -> u64 {
        let (longest, shortest) = (self.period as f64, self.shortest as f64);
        let power = shortest.powf(1.5) + random * (longest.powf(1.5) - shortest.powf(1.5));
        (power.powf(2.0 / 3.0).round() as u64).clamp(self.shortest, self.period)
    }

    /// The weight of a sample of this period that comes when its thread has counted `age`.
    pub fn weight(&self, period: u64, age: u64) -> u64 {
        let (longest, shortest) = (self.period as f64, self.shortest as f64);
        let first = (age as f64 / longest).ceil().max(1.0) as u64;
        if first > Self::OLD {
            return period;
        }
        let last = (age as f64 / shortest).floor().max(1.0) as u64;
        let sum = sum_of_terms(first, last);
        let density = 1.5 * (age as f64).powf(1.5) * sum / (longest.powf(1.5) - shortest.powf(1.5));
        let unseen = match age < self.shortest.saturating_mul(Self::HEAD) {
            true => Self::HEAD as f64 / (Self::HEAD - 1) as f64,
            false => 1.0,
        };
        match density > 0.0 {
            true => (period as f64 / density * unseen).round() as u64,
            false => period,
        }
    }
}

/// `Σ k^-2.5` over all `k` from `first`, at least 1, to `last`.
fn sum_of_terms(first: u64, last: u64) -> f64 {
    /// Terms fall fast: after this many, the rest is negligible.
    const TERMS: usize = 1000;
    static UP_TO: LazyLock<Vec<f64>> = LazyLock::new(|| {
        let terms = (1..=TERMS).map(|k| (k as f64).powf(-2.5));
        let sums = terms.scan(0.0, |sum, term| {
            *sum += term;
            Some(*sum)
        });
        iter::once(0.0).chain(sums).collect()
    });
    let up_to = |k: u64| UP_TO[usize::try_from(k).map_or(TERMS, |k| k.min(TERMS))];
    up_to(last) - up_to(first - 1)
}

/// Whether the event happens all the time that a thread runs.
pub(crate) fn is_time(spec: &EventSpec) -> bool {
    spec.is_clock() || is_cycles(spec)
}

/// The most of these events that a CPU has in a second; `None` if unknown.
pub(crate) fn per_second_at_most(spec: &EventSpec) -> Option<u64> {
    /// Faster than all CPUs except overclocked ones.
    const CYCLES: u64 = 6_500_000_000;
    match spec {
        spec if spec.is_clock() => Some(1_000_000_000),
        spec if is_cycles(spec) => Some(CYCLES),
        _ => None,
    }
}

pub(crate) fn is_cycles(spec: &EventSpec) -> bool {
    let encoding = &spec.encoding;
    encoding.kind == sys::PERF_TYPE_HARDWARE
        && encoding.config == u64::from(sys::PERF_COUNT_HW_CPU_CYCLES)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_and_frequencies() {
        let check = |hertz, expected: Option<(u64, u64)>| {
            let sample_period = SamplePeriod::new(1_000_000_000, hertz, SamplePeriod::HIGHEST_RATE)
                .map(|sample_period| (sample_period.period, sample_period.shortest));
            assert_eq!(sample_period, expected, "{hertz}");
        };
        check(1000, Some((1_000_000, 20_000)));
        check(99, Some((10_101_010, 20_000)));
        check(20_000, Some((50_000, 20_000)));
        check(50_000, None);
        check(0, Some((1_000_000_000, 20_000)));
    }

    #[test]
    fn terms_are_summed_up() {
        let check = |first, last, expected: f64| {
            let sum = sum_of_terms(first, last);
            assert!((sum - expected).abs() < 1e-12, "{first} to {last}: {sum}");
        };
        check(1, 1, 1.0);
        check(2, 3, 2_f64.powf(-2.5) + 3_f64.powf(-2.5));
        check(2, 1, 0.0);
        check(1001, u64::MAX, 0.0);
    }

    #[test]
    fn weights_make_up_for_chance() {
        let sample_period =
            SamplePeriod::new(1_000_000_000, 1000, SamplePeriod::HIGHEST_RATE).expect("a period");
        // The expected sum of samples of ages up to this.
        let due = |age: u64| {
            let head = age.min(sample_period.shortest * SamplePeriod::HEAD);
            let seen = head.saturating_sub(sample_period.shortest) * SamplePeriod::HEAD
                / (SamplePeriod::HEAD - 1);
            (seen + age - head) as f64
        };
        // Threads of any length, with all periods there are: each tenth of their lives has what it
        // should.
        for life in [250_000_u64, 1_000_000, 5_500_000] {
            let mut tenths = [0_u64; 10];
            const DRAWS: u64 = 100_000;
            for draw in 0..DRAWS {
                let period = sample_period.draw((draw as f64 + 0.5) / DRAWS as f64);
                for age in (1..).map(|k| k * period).take_while(|&age| age < life) {
                    tenths[(age * 10 / life) as usize] += sample_period.weight(period, age);
                }
            }
            for (&sampled, tenth) in tenths.iter().zip(0_u64..) {
                let expected = due(life * (tenth + 1) / 10) - due(life * tenth / 10);
                let error = sampled as f64 / DRAWS as f64 / expected - 1.0;
                assert!(error.abs() < 0.01, "{life} {tenth}: {error}");
            }
            let all = tenths.iter().sum::<u64>() as f64 / DRAWS as f64 / life as f64;
            assert!((0.99..1.01).contains(&all), "{life}: {all}");
        }
    }

    #[test]
    fn the_usual_period_is_drawn_last() {
        let sample_period =
            SamplePeriod::new(1_000_000_000, 1000, SamplePeriod::HIGHEST_RATE).expect("a period");
        assert_eq!(
            (sample_period.draw(0.0), sample_period.draw(1.0)),
            (20_000, 1_000_000)
        );
        // For old threads, each sample weighs its period.
        assert_eq!(sample_period.weight(300_000, 900 * 300_000), 300_000);
        let old = sample_period.weight(300_000, 150 * 300_000);
        assert!(old.abs_diff(300_000) < 10_000, "{old}");
    }
}
