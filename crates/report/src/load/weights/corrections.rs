//! Weights that make up for what was not sampled.

use std::collections::HashMap;

use prof_model::{Coverage, Quality, Tid};
use prof_perfdata::EventDescription;

use crate::load::stacks::intern::Owner;

/// The factors of samples' weights, by the names of their process and thread, where
/// the recorder knows that too little or too much was sampled ([`Coverage::correction`]).
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct Corrections {
    factors: HashMap<String, HashMap<String, Correction>>,
    /// The name of the event whose samples are meant, if not all are; and its number.
    covered: Option<String>,
    number: Option<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Correction {
    factor: f64,
    /// The rest still to be added to weights, because these are whole numbers: small ones would
    /// never change otherwise.
    due: f64,
}

impl Correction {
    fn apply(&mut self, weight: u64) -> u64 {
        let exact = weight as f64 * self.factor + self.due;
        let whole = exact.floor().max(1.0);
        self.due = exact - whole;
        whole as u64
    }
}

impl Corrections {
    pub(in crate::load) fn new(quality: Option<&Quality>) -> Self {
        let mut factors: HashMap<String, HashMap<String, Correction>> = HashMap::new();
        for one in quality.map_or(&[][..], |quality| &quality.coverage) {
            if let Some(factor) = Coverage::correction(one) {
                let process = factors.entry(one.process.clone()).or_default();
                process.insert(one.thread.clone(), Correction { factor, due: 0.0 });
            }
        }
        Self {
            factors,
            covered: quality.and_then(|quality| quality.covered_event.clone()),
            number: None,
        }
    }

    /// Learns which events there are.
    pub(in crate::load) fn update(&mut self, events: &[EventDescription]) {
        let is_covered = |event: &EventDescription| Some(&event.name) == self.covered.as_ref();
        self.number = events.iter().position(is_covered);
    }

    /// The weight of a sample of this event and thread.
    pub(in crate::load) fn apply(
        &mut self,
        event: usize,
        owner: Owner<'_>,
        tid: Tid,
        weight: u64,
    ) -> u64 {
        let covered = self.covered.is_none() || self.number == Some(event);
        if self.factors.is_empty() || !covered {
            return weight;
        }
        match self.correction(owner, tid) {
            Some(correction) => correction.apply(weight),
            None => weight,
        }
    }

    fn correction(&mut self, owner: Owner<'_>, tid: Tid) -> Option<&mut Correction> {
        let Owner { pid, process } = owner;
        let process = process?;
        let thread = process.name(pid, tid)?;
        let threads = self
            .factors
            .get_mut(&**process.name(pid, pid).unwrap_or(thread))?;
        threads.get_mut(&**thread)
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Processes;

    use super::*;

    fn corrections(used: u64) -> Corrections {
        let quality = Quality {
            coverage: vec![Coverage {
                process: "server".into(),
                thread: "worker".into(),
                threads: 10,
                used,
                sampled: 1000,
                periods: 300,
                samples: 1000,
                ..Coverage::default()
            }],
            ..Quality::default()
        };
        Corrections::new(Some(&quality))
    }

    fn owner(processes: &Processes) -> Owner<'_> {
        Owner {
            pid: 1,
            process: processes.get(1),
        }
    }

    #[test]
    fn weights_of_one_add_up_as_well() {
        let mut processes = Processes::default();
        processes.rename(1, 1, "server");
        processes.rename(1, 2, "worker");
        for used in [1250, 400] {
            let mut corrections = corrections(used);
            let server = owner(&processes);
            let weights: Vec<u64> = (0..1000)
                .map(|_| corrections.apply(0, server, 2, 10))
                .collect();
            let sum: u64 = weights.iter().sum();
            assert!(sum.abs_diff(used * 10) <= 1, "{sum}");
            assert!(weights.iter().max() <= Some(&13), "{weights:?}");
        }
        let mut corrections = corrections(1250);
        let ones = (0..1000).map(|_| corrections.apply(0, owner(&processes), 2, 1));
        assert_eq!(ones.sum::<u64>(), 1250);
    }

    #[test]
    fn what_is_missing_is_made_up_for_by_name() {
        let mut corrections = corrections(4000);
        let mut processes = Processes::default();
        processes.rename(1, 1, "server");
        processes.rename(1, 2, "worker");
        let server = owner(&processes);
        let unknown = Owner {
            process: None,
            ..server
        };
        assert_eq!(corrections.apply(0, server, 2, 10), 40);
        assert_eq!(corrections.apply(0, server, 1, 10), 10);
        assert_eq!(corrections.apply(0, unknown, 2, 10), 10);
        corrections.covered = Some("cpu-clock".into());
        assert_eq!(corrections.apply(1, server, 2, 10), 10);
        corrections.number = Some(1);
        assert_eq!(corrections.apply(1, server, 2, 10), 40);
    }
}
