//! Weights that make up for what was not sampled.

use std::collections::HashMap;

use prof_model::{Coverage, Pid, Process, Quality, Tid};

/// What to multiply the weights of samples by, by the names of their process and thread, where
/// the recorder knows that too little or too much was sampled ([`Coverage::correction`]).
#[derive(Clone, Debug, Default)]
pub(super) struct Corrections {
    factors: HashMap<String, HashMap<String, f64>>,
}

impl Corrections {
    pub(super) fn new(quality: Option<&Quality>) -> Self {
        let mut factors: HashMap<String, HashMap<String, f64>> = HashMap::new();
        for one in quality.map_or(&[][..], |quality| &quality.coverage) {
            if let Some(factor) = Coverage::correction(one) {
                let process = factors.entry(one.process.clone()).or_default();
                process.insert(one.thread.clone(), factor);
            }
        }
        Self { factors }
    }

    /// The weight of a sample of this thread.
    pub(super) fn apply(&self, process: Option<&Process>, pid: Pid, tid: Tid, weight: u64) -> u64 {
        if self.factors.is_empty() {
            return weight;
        }
        match self.factor(process, pid, tid) {
            Some(factor) => ((weight as f64 * factor).round() as u64).max(1),
            None => weight,
        }
    }

    fn factor(&self, process: Option<&Process>, pid: Pid, tid: Tid) -> Option<f64> {
        let process = process?;
        let thread = process.name(pid, tid)?;
        let threads = self
            .factors
            .get(&**process.name(pid, pid).unwrap_or(thread))?;
        threads.get(&**thread).copied()
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Processes;

    use super::*;

    #[test]
    fn what_is_missing_is_made_up_for_by_name() {
        let quality = Quality {
            coverage: vec![Coverage {
                process: "server".into(),
                thread: "worker".into(),
                threads: 10,
                used: 4000,
                sampled: 1000,
                samples: 1000,
            }],
            ..Quality::default()
        };
        let corrections = Corrections::new(Some(&quality));
        let mut processes = Processes::default();
        processes.rename(1, 1, "server");
        processes.rename(1, 2, "worker");
        let server = processes.get(1);
        assert_eq!(corrections.apply(server, 1, 2, 10), 40);
        assert_eq!(corrections.apply(server, 1, 1, 10), 10);
        assert_eq!(corrections.apply(None, 1, 2, 10), 10);
    }
}
