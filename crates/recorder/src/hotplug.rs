//! CPUs that go offline or come online while we record.
//!
//! ```text
//!   sampled are      a CPU goes offline, and comes back     a CPU comes that was not there
//!   CPUs             its events are gone for good           it has no events
//!   threads          they move, their events go on          it has no events
//! ```

use prof_events::system;

use crate::options::{CpuTarget, Target};

/// Notices such CPUs. One that goes and comes back between two looks is not noticed.
#[derive(Debug)]
pub(crate) struct Hotplug {
    /// The CPUs that have events; none if that does not matter.
    opened: Vec<u32>,
    /// Whether events end with their CPU.
    goes: bool,
    /// Whether other CPUs matter.
    comes: bool,
    changed: Vec<u32>,
}

impl Hotplug {
    pub(crate) fn new(opened: &[u32], target: &Target) -> Self {
        Self {
            opened: opened.to_vec(),
            goes: matches!(target, Target::Cpus(_)),
            comes: !matches!(target, Target::Cpus(CpuTarget { cpus: Some(_), .. })),
            changed: Vec::new(),
        }
    }

    /// Looks which CPUs there are.
    pub(crate) fn look(&mut self) {
        if !self.opened.is_empty()
            && let Ok(online) = system::online_cpus()
        {
            self.compare(&online);
        }
    }

    fn compare(&mut self, online: &[u32]) {
        let gone = self
            .opened
            .iter()
            .filter(|cpu| self.goes && !online.contains(cpu));
        let new = online
            .iter()
            .filter(|cpu| self.comes && !self.opened.contains(cpu));
        self.changed.extend(gone.chain(new));
        self.changed.sort_unstable();
        self.changed.dedup();
    }

    /// Those that were noticed so far, in ascending order.
    pub(crate) fn changed(&self) -> &[u32] {
        &self.changed
    }
}

#[cfg(test)]
mod tests {
    use prof_events::Program;

    use super::*;

    /// Expects what is noticed when CPUs 0 to 2 have events and others are online later on.
    fn check(target: &Target, online: &[&[u32]], expected: &[u32]) {
        let mut hotplug = Hotplug::new(&[0, 1, 2], target);
        online.iter().for_each(|online| hotplug.compare(online));
        assert_eq!(hotplug.changed(), expected, "{target:?}, {online:?}");
    }

    #[test]
    fn what_matters_depends_on_what_is_sampled() {
        let cpus = |cpus: Option<&[u32]>| {
            Target::Cpus(CpuTarget {
                cpus: cpus.map(<[u32]>::to_vec),
                ..CpuTarget::default()
            })
        };
        let threads = Target::Command(Program::new(["true"]));
        check(&threads, &[&[0, 1, 2]], &[]);
        check(&threads, &[&[0], &[0, 1, 2]], &[]);
        check(&threads, &[&[0, 1, 2, 3]], &[3]);
        check(&cpus(None), &[&[0, 2], &[0, 1, 2]], &[1]);
        check(&cpus(None), &[&[0, 1], &[0, 1, 2, 4]], &[2, 4]);
        check(&cpus(Some(&[0, 1, 2])), &[&[0, 2, 3]], &[1]);
    }
}
