//! Facts about the code around an address that has no CFI: found once for each address, because
//! that takes a thousand times as long as a step.

use std::collections::{HashMap, HashSet};

use prof_model::Process;

use crate::module::code_mapping::CodeAddress;
use crate::rule::CompactRule;

/// Candidate rules by the code before an address, the likeliest first.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Candidates {
    rules: [CompactRule; Self::MOST],
    count: usize,
}

impl Candidates {
    const MOST: usize = 4;

    /// Adds a rule if it is new; returns whether the list is full.
    pub(crate) fn add(&mut self, rule: CompactRule) -> bool {
        if !self.rules().contains(&rule)
            && let Some(next) = self.rules.get_mut(self.count)
        {
            *next = rule;
            self.count += 1;
        }
        self.count == Self::MOST
    }

    pub(crate) fn rules(&self) -> &[CompactRule] {
        &self.rules[..self.count]
    }
}

/// Facts by address.
#[derive(Debug)]
pub(crate) struct CodeFacts<T>(HashMap<CodeAddress, T>);

impl<T> Default for CodeFacts<T> {
    fn default() -> Self {
        Self(HashMap::new())
    }
}

impl<T: Copy> CodeFacts<T> {
    /// The most addresses to remember; then it starts over. Candidates take half a megabyte.
    const PLACES: usize = 4096;

    pub(crate) fn get(&self, place: CodeAddress) -> Option<T> {
        self.0.get(&place).copied()
    }

    pub(crate) fn insert(&mut self, place: CodeAddress, found: T) {
        if self.0.len() >= Self::PLACES {
            self.0.clear();
        }
        self.0.insert(place, found);
    }
}

/// Addresses of run-time code that have a property, as long as their process maps nothing new.
#[derive(Debug, Default)]
pub(crate) struct RunTimeFacts(HashSet<(u64, u64)>);

impl RunTimeFacts {
    /// The most addresses to remember; then it starts over.
    const PLACES: usize = 1 << 16;

    pub(crate) fn holds(&self, process: &Process, address: u64) -> bool {
        self.0.contains(&(process.version(), address))
    }

    pub(crate) fn insert(&mut self, process: &Process, address: u64) {
        if self.0.len() >= Self::PLACES {
            self.0.clear();
        }
        self.0.insert((process.version(), address));
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{AbsoluteAddress, FileOffset, Mapping, Module, Modules, Processes};

    use super::*;

    #[test]
    fn candidates_differ() {
        let rule = |cfa_offset| CompactRule {
            cfa_offset,
            ..CompactRule::default()
        };
        let mut candidates = Candidates::default();
        let added = [1, 2, 2, 1, 3, 4, 5].map(|offset| candidates.add(rule(offset)));
        assert_eq!(added, [false, false, false, false, false, true, true]);
        assert_eq!(candidates.rules(), [1, 2, 3, 4].map(rule));
    }

    #[test]
    fn so_many_places_are_known() {
        let mut modules = Modules::default();
        let [here, there] =
            ["/bin/a", "/bin/b"].map(|path| modules.intern(Module::from_path(path)));
        let at = |module, address| CodeAddress { module, address };
        let mut known = CodeFacts::default();
        let last = CodeFacts::<u64>::PLACES as u64 - 1;
        (0..=last).for_each(|address| known.insert(at(here, address), address));
        assert_eq!(known.get(at(here, 0)), Some(0));
        assert_eq!(known.get(at(here, last)), Some(last));
        assert_eq!(known.get(at(there, 0)), None);
        known.insert(at(there, 0), 7);
        assert_eq!(known.get(at(here, 0)), None);
        assert_eq!(known.get(at(there, 0)), Some(7));
    }

    #[test]
    fn facts_of_run_time_code_hold_until_more_is_mapped() {
        let mut modules = Modules::default();
        let mapping = Mapping {
            start: AbsoluteAddress(0x1000),
            end: AbsoluteAddress(0x2000),
            file_offset: FileOffset(0),
            module: modules.intern(Module::from_path("//anon")),
            executable: true,
        };
        let mut processes = Processes::default();
        let mut facts = RunTimeFacts::default();
        for pid in [1, 2] {
            processes.map(pid, mapping);
        }
        facts.insert(processes.get(1).expect("mapped"), 0x1800);
        let holds = |processes: &Processes| {
            [1, 2].map(|pid| facts.holds(processes.get(pid).expect("mapped"), 0x1800))
        };
        assert_eq!(holds(&processes), [true, false]);
        processes.map(1, mapping);
        assert_eq!(holds(&processes), [false, false]);
    }
}
