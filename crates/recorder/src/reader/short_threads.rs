//! Short threads: detected as they end, and sampled at random points from then on.
//!
//! Threads shorter than a sampling period would never be sampled, or all at the same point of their
//! lives. As each thread ends, the kernel reports its event's count (a READ record), and from which
//! of our events it had inherited its own. While many short ones end, these events get a new period
//! again and again, for the threads that inherit it next ([`SamplePeriod`]).
//!
//! A period that was inherited cannot be changed. So if a thread with a short period lives on, no
//! more of its samples are kept than it would have with the usual one.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

use prof_events::SamplePeriod;
use prof_model::Tid;
use prof_perfdata::{Read, Record, Sample};

use crate::reader::context_pin::ContextPins;

/// Detects short threads, and changes periods.
#[derive(Debug)]
pub(crate) struct PeriodRandomizer {
    sample_period: SamplePeriod,
    /// The events that threads inherit from, by their ids.
    inherited: HashMap<u64, InheritedEvent>,
    /// Short threads that have ended lately: the counters are halved from time to time.
    recent: u32,
    /// Their work, and the sampled work of all threads meanwhile.
    short_time: u64,
    sampled_time: u64,
    since: Instant,
    /// When periods were drawn last.
    drawn: Instant,
    /// Threads with short periods, by the event that they were sampled by.
    short_period: BTreeMap<(Tid, u64), ShortPeriodThread>,
    /// The shortest of their periods, or the usual one.
    fastest: u64,
    context_pins: ContextPins,
    /// Threads that have ended lately. A sample in the ring of another CPU may come after that.
    ended: VecDeque<Tid>,
    random: fastrand::Rng,
}

/// An event that threads inherit from.
#[derive(Debug)]
struct InheritedEvent {
    /// When a short thread with this event ended last.
    last: Instant,
    /// Whether its period is not the usual one.
    varied: bool,
    draws: StratifiedDraws,
}

/// Random numbers between 0 and 1: of each 64, one from each 64th, in no order.
///
/// Sums over threads then vary by a quarter of what they would with independent numbers; and
/// without an order nothing falls into step with programs whose threads live about as long as the
/// time between two draws.
#[derive(Debug, Default)]
struct StratifiedDraws {
    left: Vec<u8>,
}

impl StratifiedDraws {
    const PARTS: u8 = 64;

    fn next(&mut self, random: &mut fastrand::Rng) -> f64 {
        if self.left.is_empty() {
            self.left.extend(0..Self::PARTS);
            random.shuffle(&mut self.left);
        }
        let part = self.left.pop().unwrap_or(0);
        (f64::from(part) + random.f64()) / f64::from(Self::PARTS)
    }
}

/// A thread that is sampled more often than usual.
#[derive(Clone, Copy, Debug, Default)]
struct ShortPeriodThread {
    period: u64,
    /// The event's count at its last sample.
    age: u64,
    /// The weight of dropped samples that no kept sample represents yet.
    skipped_time: u64,
}

impl PeriodRandomizer {
    /// A thread older than this many periods has been sampled evenly, whatever its own period.
    const OLD: u64 = 10;
    /// The most threads to remember; then it starts over.
    const REMEMBERED: usize = 4096;
    /// The most threads that end between two passes over the rings.
    const ENDED: usize = 256;
    /// A thread with fewer periods is short: of the last period, half is missing on average.
    const SHORT: u64 = 20;
    /// The number of threads that are judged together.
    const MANY: u32 = 8;
    /// A smaller part of all time is ignored.
    const LITTLE: u64 = 100;
    /// For so long after short threads have ended, more are expected.
    const MEMORY: Duration = Duration::from_secs(1);
    /// The time between draws of periods: each should be for few threads.
    const SOON: Duration = Duration::from_millis(1);
    /// In this time, a ring fills little at the usual period.
    const LOOK: Duration = Duration::from_millis(5);

    pub(crate) fn new(sample_period: SamplePeriod) -> Self {
        let now = Instant::now();
        Self {
            sample_period,
            inherited: HashMap::new(),
            recent: 0,
            short_time: 0,
            sampled_time: 0,
            since: now,
            drawn: now,
            short_period: BTreeMap::new(),
            fastest: sample_period.period,
            context_pins: ContextPins::default(),
            ended: VecDeque::with_capacity(Self::ENDED),
            random: fastrand::Rng::new(),
        }
    }

    /// The weight of a sample, together with that of the dropped samples before it; `None` if it is
    /// dropped.
    pub(crate) fn thinned_weight(&mut self, sample: &Sample<'_>) -> Option<u64> {
        let period = sample.period;
        self.sampled_time = self.sampled_time.saturating_add(period);
        if period >= self.sample_period.period {
            return Some(period);
        }
        let key = (sample.tid, sample.id?);
        if !self.short_period.contains_key(&key) {
            if self.ended.contains(&key.0) {
                return Some(period);
            }
            if self.short_period.len() >= Self::REMEMBERED {
                self.short_period.clear();
                self.fastest = self.sample_period.period;
            }
        }
        let thread = self.short_period.entry(key).or_default();
        if thread.age == 0 {
            thread.period = period;
            self.fastest = self.fastest.min(period);
        }
        thread.age = thread.age.saturating_add(period);
        if thread.age < self.sample_period.period.saturating_mul(Self::OLD) {
            return Some(period);
        }
        thread.skipped_time = thread.skipped_time.saturating_add(period);
        let due = thread.skipped_time.checked_sub(self.sample_period.period)?;
        thread.skipped_time = due;
        Some(self.sample_period.period)
    }

    /// Handles a record that is no sample: it may report a thread's start or end.
    pub(crate) fn notice(&mut self, record: &Record<'_>) {
        self.context_pins.notice(record);
        match record {
            Record::Exit(task) => self.forget(task.tid),
            Record::Read(read) => self.ended(read),
            _ => {}
        }
    }

    /// A thread has ended with this count.
    fn ended(&mut self, read: &Read<'_>) {
        let value = read.values.iter().next();
        let Some((count, id)) = value.and_then(|it| Some((it.value, it.id?))) else {
            return;
        };
        if count == 0 || count >= self.sample_period.period.saturating_mul(Self::SHORT) {
            return;
        }
        let now = Instant::now();
        self.recent = self.recent.saturating_add(1);
        self.short_time = self.short_time.saturating_add(count);
        let event = self.inherited.entry(id).or_insert(InheritedEvent {
            last: now,
            varied: false,
            draws: StratifiedDraws::default(),
        });
        event.last = now;
    }

    fn forget(&mut self, tid: Tid) {
        if self.ended.len() >= Self::ENDED {
            self.ended.pop_front();
        }
        self.ended.push_back(tid);
        while let Some((&key, _)) = self.short_period.range((tid, 0)..=(tid, u64::MAX)).next() {
            let removed = self.short_period.remove(&key);
            if removed.is_some_and(|thread| thread.period == self.fastest) {
                let periods = self.short_period.values().map(|thread| thread.period);
                self.fastest = periods.min().unwrap_or(self.sample_period.period);
            }
        }
    }

    /// Gives the events whose threads are short a new period, and the others their usual one.
    pub(crate) fn vary(&mut self, mut set_period: impl FnMut(u64, u64)) {
        let now = Instant::now();
        if now.duration_since(self.since) > Self::MEMORY {
            self.since = now;
            self.recent /= 2;
            self.short_time /= 2;
            self.sampled_time /= 2;
        }
        if self.inherited.is_empty() {
            return;
        }
        let (sample_period, many) = (self.sample_period, self.matter());
        // Not triggered by samples: short periods bring more of these, and would be replaced sooner
        // than long ones.
        let due = now.duration_since(self.drawn) >= Self::SOON;
        if due {
            self.drawn = now;
        }
        let random = &mut self.random;
        self.inherited.retain(|&id, event| {
            let recent = now.duration_since(event.last) < Self::MEMORY;
            if recent && many && due {
                event.varied = true;
                set_period(id, sample_period.draw(event.draws.next(random)));
            } else if event.varied && !(recent && many) {
                event.varied = false;
                set_period(id, sample_period.period);
            }
            recent
        });
    }

    /// Whether enough short threads have ended lately to matter.
    fn matter(&self) -> bool {
        let all = self.short_time.max(self.sampled_time);
        self.recent >= Self::MANY && self.short_time >= all / Self::LITTLE
    }

    /// The time until the next pass; `None` if it is not urgent.
    pub(crate) fn timeout(&self) -> Option<Duration> {
        let varied = self.inherited.values().any(|event| event.varied);
        let draw = varied.then(|| Self::SOON.saturating_sub(self.drawn.elapsed()));
        // A thread that lives on with a short period fills the ring accordingly.
        let often = self.fastest as f64 / self.sample_period.period as f64;
        let look = (often < 1.0).then(|| Self::LOOK.mul_f64(often));
        draw.into_iter().chain(look).min()
    }
}

#[cfg(test)]
mod tests {
    use prof_perfdata::{
        Attr, EventDescription, ReadFormat, RecordFormat, SampleType, Stamp, Task, encode,
    };

    use super::*;

    const PERIOD: SamplePeriod = SamplePeriod {
        period: 1000,
        shortest: 20,
    };

    /// A record, which tests need parsed.
    struct Bytes(Vec<u8>);

    impl Bytes {
        fn see<T>(&self, see: impl FnOnce(&Record<'_>) -> T) -> T {
            let event = EventDescription {
                attr: attr(),
                name: "cpu-clock".into(),
                ids: vec![7, 8],
            };
            let format = RecordFormat::new(&[event]).expect("a format");
            see(&format.parse(&self.0).expect("a record"))
        }
    }

    fn attr() -> Attr {
        Attr {
            sample_type: SampleType::IDENTIFIER | SampleType::TID | SampleType::PERIOD,
            read_format: ReadFormat::ID,
            ..Attr::default()
        }
    }

    fn sample(tid: i32, id: u64, period: u64) -> Bytes {
        let sample = encode::NewSample {
            tid,
            id,
            period,
            ..encode::NewSample::default()
        };
        let mut bytes = Vec::new();
        encode::sample(&mut bytes, &attr(), &sample).expect("a small sample");
        Bytes(bytes)
    }

    fn thinned_weight(period_randomizer: &mut PeriodRandomizer, sample: &Bytes) -> Option<u64> {
        sample.see(|record| match record {
            Record::Sample(sample) => period_randomizer.thinned_weight(sample),
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn old_threads_with_short_periods_are_sampled_as_usual() {
        let mut period_randomizer = PeriodRandomizer::new(PERIOD);
        let short_period = sample(1, 7, 100);
        let kept = |period_randomizer: &mut PeriodRandomizer, record: &Bytes, count| -> Vec<u64> {
            (0..count)
                .filter_map(|_| thinned_weight(period_randomizer, record))
                .collect()
        };
        // The first ten periods of 1000 are all kept; of the rest each tenth, for all ten.
        assert_eq!(kept(&mut period_randomizer, &short_period, 99), [100; 99]);
        assert_eq!(kept(&mut period_randomizer, &short_period, 100), [1000; 10]);
        // A remainder is carried on.
        assert_eq!(
            kept(&mut period_randomizer, &sample(1, 7, 600), 10),
            [1000; 6]
        );
        // Other threads are unaffected.
        assert_eq!(
            kept(&mut period_randomizer, &sample(2, 7, 100), 20),
            [100; 20]
        );
        assert_eq!(
            kept(&mut period_randomizer, &sample(1, 8, 100), 20),
            [100; 20]
        );
        assert_eq!(
            kept(&mut period_randomizer, &sample(1, 7, 1000), 20),
            [1000; 20]
        );
        // While a thread lives that is sampled ten times as often, passes must be as frequent.
        let often = Some(PeriodRandomizer::LOOK / 10);
        assert_eq!(period_randomizer.timeout(), often);
        let exit = |tid| {
            Record::Exit(Task {
                stamp: Stamp::default(),
                pid: tid,
                tid,
                parent_pid: 1,
                parent_tid: 1,
                time: 0,
                existed: false,
            })
        };
        for tid in [1, 2] {
            assert_eq!(period_randomizer.timeout(), often);
            period_randomizer.notice(&exit(tid));
        }
        assert_eq!(period_randomizer.timeout(), None);
        // A late sample does not show that the thread lives.
        assert_eq!(
            thinned_weight(&mut period_randomizer, &short_period),
            Some(100)
        );
        assert_eq!(period_randomizer.timeout(), None);
        // A thread with the id of one that ended long ago is young.
        (0..PeriodRandomizer::ENDED).for_each(|_| period_randomizer.notice(&exit(3)));
        assert_eq!(kept(&mut period_randomizer, &short_period, 99), [100; 99]);
        assert_eq!(period_randomizer.timeout(), often);
    }

    #[test]
    fn short_threads_count_once_they_matter() {
        let check = |ends: u32, count: u64, sampled: u64, expected: bool| {
            let mut period_randomizer = PeriodRandomizer::new(PERIOD);
            for _ in 0..sampled {
                thinned_weight(&mut period_randomizer, &sample(1, 7, PERIOD.period));
            }
            for _ in 0..ends {
                end(count, 7).see(|record| period_randomizer.notice(record));
            }
            period_randomizer.drawn -= PeriodRandomizer::SOON;
            let mut periods = Vec::new();
            period_randomizer.vary(|_, period| periods.push(period));
            assert_eq!(!periods.is_empty(), expected, "{ends} {count} {sampled}");
        };
        check(7, 1000, 0, false);
        check(8, 1000, 0, true);
        check(8, 1000, 800, true);
        check(8, 1000, 900, false);
        check(8, 19_999, 0, true);
        check(8, 20_000, 0, false);
    }

    #[test]
    fn draws_are_spread_evenly_in_no_order() {
        let mut random = fastrand::Rng::with_seed(7);
        let mut draws = StratifiedDraws::default();
        let mut orders = Vec::new();
        for _ in 0..3 {
            let mut parts: Vec<u8> = (0..StratifiedDraws::PARTS)
                .map(|_| (draws.next(&mut random) * f64::from(StratifiedDraws::PARTS)) as u8)
                .collect();
            orders.push(parts.clone());
            parts.sort_unstable();
            assert!(parts.into_iter().eq(0..StratifiedDraws::PARTS));
        }
        assert!(orders[0] != orders[1] && orders[1] != orders[2]);
    }

    fn end(count: u64, id: u64) -> Bytes {
        let stamp = Stamp {
            id: Some(id),
            ..Stamp::default()
        };
        let mut bytes = Vec::new();
        encode::read(&mut bytes, &attr(), &stamp, count);
        Bytes(bytes)
    }
}
