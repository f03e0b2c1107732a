//! Samples of the time before threads executed other programs, by the names that they had.

use prof_model::Coverage;

use super::samples::Samples;
use super::thread_name::ThreadName;

/// The names of threads before, each once.
#[derive(Debug, Default)]
pub(super) struct EarlierNames(Vec<(ThreadName, Earlier)>);

/// What threads did under an earlier name.
#[derive(Debug, Default)]
struct Earlier {
    threads: u64,
    samples: Samples,
}

impl EarlierNames {
    /// The most names; further ones share one.
    const MOST: usize = 100;

    /// The thread, of this name and with these samples, executes another program.
    pub(super) fn add(&mut self, name: ThreadName, samples: Samples) {
        let earlier = self.get(name);
        earlier.threads = 1;
        earlier.samples.append(samples);
    }

    /// Adds those of a thread that has `name` now.
    pub(super) fn append(&mut self, thread: Self, name: &ThreadName) {
        for (earlier_name, more) in thread.0 {
            if earlier_name != *name {
                let earlier = self.get(earlier_name);
                earlier.threads += more.threads;
                earlier.samples.append(more.samples);
            }
        }
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<&ThreadName> {
        self.0.last().map(|(name, _)| name)
    }

    /// The samples under all names.
    pub(super) fn samples(&self) -> Samples {
        let mut all = Samples::default();
        (self.0.iter()).for_each(|(_, earlier)| all.append(earlier.samples));
        all
    }

    fn get(&mut self, name: ThreadName) -> &mut Earlier {
        let is_new = |name| self.0.iter().all(|(known, _)| known != name);
        let name = match self.0.len() >= Self::MOST && is_new(&name) {
            true => ThreadName::others(),
            false => name,
        };
        let known = self.0.iter().position(|(known, _)| *known == name);
        let index = known.unwrap_or_else(|| {
            self.0.push((name, Earlier::default()));
            self.0.len() - 1
        });
        &mut self.0[index].1
    }

    /// Takes the parts of these names from the coverage of threads. The kernel counts the work of
    /// each thread as a whole: a name has the share of it that it has of the samples.
    pub(super) fn take_from(self, coverage: &mut Coverage) -> Vec<(ThreadName, Coverage)> {
        let sampled = |(_, earlier): &(ThreadName, Earlier)| earlier.samples.number > 0;
        let named = self.0.into_iter().filter(sampled);
        let parts = named.map(|(name, Earlier { threads, samples })| {
            let part = samples.take_from(coverage);
            let coverage = Coverage {
                threads,
                executed: threads,
                ..part
            };
            (name, coverage)
        });
        parts.collect()
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Processes;

    use super::*;

    fn name(text: &str) -> ThreadName {
        let mut processes = Processes::default();
        processes.rename(1, 1, text);
        ThreadName::of(1, 1, &processes)
    }

    fn samples(count: u64) -> Samples {
        let mut samples = Samples::default();
        (0..count).for_each(|_| samples.add(10, 20));
        samples
    }

    #[test]
    fn work_is_divided_as_the_samples_are() {
        let mut all = EarlierNames::default();
        for _ in 0..2 {
            let mut thread = EarlierNames::default();
            thread.add(name("shell"), samples(1));
            thread.add(name("shell"), samples(2));
            thread.add(name("unsampled"), samples(0));
            thread.add(name("now"), samples(1));
            assert_eq!(thread.samples().number, 4);
            assert_eq!(thread.last(), Some(&name("now")));
            all.append(thread, &name("now"));
        }
        let mut coverage = Coverage {
            threads: 2,
            used: 400,
            unseen: 40,
            sampled: 160,
            periods: 80,
            samples: 8,
            ..Coverage::default()
        };
        let parts = all.take_from(&mut coverage);
        let expected = |executed, used, unseen, sampled, periods, samples| Coverage {
            threads: 2,
            executed,
            used,
            unseen,
            sampled,
            periods,
            samples,
            ..Coverage::default()
        };
        assert_eq!(parts, [(name("shell"), expected(2, 300, 30, 120, 60, 6))]);
        assert_eq!(coverage, expected(0, 100, 10, 40, 20, 2));
    }

    #[test]
    fn names_are_bounded() {
        let mut all = EarlierNames::default();
        for number in 0..1000 {
            let mut thread = EarlierNames::default();
            thread.add(name(&number.to_string()), samples(1));
            all.append(thread, &name("now"));
        }
        assert_eq!(all.0.len(), EarlierNames::MOST + 1);
        assert_eq!(all.last(), Some(&ThreadName::others()));
        assert_eq!(
            (all.0[EarlierNames::MOST].1.threads, all.samples().number),
            (900, 1000)
        );
    }
}
