//! Rules by module and address.

use std::collections::HashMap;

use prof_model::ModuleId;

use crate::rule::Rule;

/// A two-way set-associative cache from (module, address in the module) to a rule.
///
/// Programs have few distinct rules, so entries hold the index of a rule in a table. The key does
/// not contain a mapping's address: processes share entries, and nothing becomes wrong when
/// libraries come and go.
pub(crate) struct RuleCache {
    entries: Vec<Entry>,
    rules: Vec<CachedRule>,
    numbers: HashMap<CachedRule, u32>,
}

/// A rule, with other facts about the code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CachedRule {
    pub(crate) rule: Rule,
    /// The code returns from a signal handler.
    pub(crate) signal_frame: bool,
    /// The address looked up was before a function that was not called: the frame is at the return
    /// address itself.
    pub(crate) starts_function: bool,
}

/// 16 bytes.
#[derive(Clone, Copy)]
struct Entry {
    module: u32,
    /// The rule's index.
    rule: u32,
    address: u64,
}

impl Entry {
    #[inline]
    fn is(&self, module: ModuleId, address: u64) -> bool {
        self.address == address && self.module == module.index() as u32
    }
}

const FREE: Entry = Entry {
    module: u32::MAX,
    rule: u32::MAX,
    address: 0,
};

/// 512 KiB of entries. docs/design/unwinding.md compares its speed with that of a small cache.
const ENTRIES: usize = 1 << 15;
const WAYS: usize = 2;
/// Limits the rules that damaged CFI can produce.
const RULES: usize = 1 << 16;

impl RuleCache {
    pub(crate) fn new() -> Self {
        Self {
            entries: vec![FREE; ENTRIES],
            rules: Vec::new(),
            numbers: HashMap::new(),
        }
    }

    #[inline]
    pub(crate) fn get(&self, module: ModuleId, address: u64) -> Option<&CachedRule> {
        let entry = self.entry(module, address)?;
        self.rules.get(entry.rule as usize)
    }

    #[inline]
    fn entry(&self, module: ModuleId, address: u64) -> Option<&Entry> {
        let set = set(module, address);
        let ways = self.entries.get(set..set + WAYS)?;
        ways.iter().find(|entry| entry.is(module, address))
    }

    pub(crate) fn insert(&mut self, module: ModuleId, address: u64, rule: CachedRule) {
        let rule = self.number(rule);
        let set = set(module, address);
        let Some(ways) = self.entries.get_mut(set..set + WAYS) else {
            return;
        };
        // The newest comes first; the oldest drops out.
        ways.rotate_right(1);
        ways[0] = Entry {
            module: module.index() as u32,
            rule,
            address,
        };
    }

    fn number(&mut self, rule: CachedRule) -> u32 {
        if let Some(&number) = self.numbers.get(&rule) {
            return number;
        }
        if self.rules.len() >= RULES {
            self.entries.fill(FREE);
            self.rules.clear();
            self.numbers.clear();
        }
        let number = self.rules.len() as u32;
        self.rules.push(rule);
        self.numbers.insert(rule, number);
        number
    }
}

#[inline]
fn set(module: ModuleId, address: u64) -> usize {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let key = address ^ (module.index() as u64) << 40;
    ((key.wrapping_mul(MIX) >> 32) as usize % ENTRIES) & !(WAYS - 1)
}
