//! CPUs that go offline or come online while we record.
//!
//! ```text
//!   sampled are      a CPU goes offline, and comes back     a CPU comes that was not there
//!   CPUs             its events are gone for good           it has no events
//!   threads          they move, their events go on          it has no events
//! ```

use prof_events::{HotplugEvents, system};

use crate::options::{CpuTarget, Target};

/// Detects such CPUs.
#[derive(Debug)]
pub(crate) struct Hotplug {
    /// The CPUs that have events; empty if that does not matter.
    opened: Vec<u32>,
    /// Whether events end with their CPU.
    goes: bool,
    /// Whether other CPUs matter.
    comes: bool,
    changed: Vec<u32>,
    /// Reports CPUs, too, that go and come back between two checks.
    events: Option<HotplugEvents>,
}

impl Hotplug {
    pub(crate) fn new(opened: &[u32], target: &Target) -> Self {
        let goes = matches!(target, Target::Cpus(_));
        Self {
            opened: opened.to_vec(),
            goes,
            comes: !matches!(target, Target::Cpus(CpuTarget { cpus: Some(_), .. })),
            changed: Vec::new(),
            events: HotplugEvents::listen().ok().filter(|_| goes),
        }
    }

    /// Checks which CPUs are online, and reads which have changed.
    pub(crate) fn poll(&mut self) {
        while let Some(cpu) = self.events.as_ref().and_then(HotplugEvents::next) {
            self.note(cpu);
        }
        if !self.opened.is_empty()
            && let Ok(online) = system::online_cpus()
        {
            self.compare(&online);
        }
    }

    fn compare(&mut self, online: &[u32]) {
        let gone = self.opened.iter().filter(|cpu| !online.contains(cpu));
        let new = online.iter().filter(|cpu| !self.opened.contains(cpu));
        let changed: Vec<u32> = gone.chain(new).copied().collect();
        changed.into_iter().for_each(|cpu| self.note(cpu));
    }

    /// A CPU went offline or came online.
    fn note(&mut self, cpu: u32) {
        let matters = match self.opened.contains(&cpu) {
            true => self.goes,
            false => self.comes,
        };
        if matters && let Err(place) = self.changed.binary_search(&cpu) {
            self.changed.insert(place, cpu);
        }
    }

    /// The changed CPUs so far, in ascending order.
    pub(crate) fn changed(&self) -> &[u32] {
        &self.changed
    }
}

#[cfg(test)]
mod tests {
    use prof_events::Program;

    use super::*;

    /// Expects these changed CPUs when CPUs 0 to 2 have events and others are online later on.
    fn check(target: &Target, online: &[&[u32]], expected: &[u32]) {
        let mut hotplug = Hotplug::new(&[0, 1, 2], target);
        online.iter().for_each(|online| hotplug.compare(online));
        assert_eq!(hotplug.changed(), expected, "{target:?}, {online:?}");
    }

    #[test]
    fn the_relevant_cpus_depend_on_the_target() {
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
        // As the kernel reports it, without whether it is online now.
        let noted = |target: &Target, expected: &[u32]| {
            let mut hotplug = Hotplug::new(&[0, 1, 2], target);
            [1, 1, 5, 0].into_iter().for_each(|cpu| hotplug.note(cpu));
            assert_eq!(hotplug.changed(), expected, "{target:?}");
        };
        noted(&threads, &[5]);
        noted(&cpus(None), &[0, 1, 5]);
        noted(&cpus(Some(&[0, 1, 2])), &[0, 1]);
    }
}
