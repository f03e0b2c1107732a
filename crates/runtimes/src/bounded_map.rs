//! Maps of what was read of a process, charged to its account.

use std::hash::Hash;

use prof_model::{Account, Charge};
use rustc_hash::FxHashMap;

/// A cache by any key. When there is no room for another entry, it starts over.
#[derive(Debug)]
pub(crate) struct BoundedMap<K, V> {
    entries: FxHashMap<K, V>,
    charge: Charge,
}

/// The bytes of an entry in a map, which is never full.
pub(crate) const fn entry<K, V>() -> usize {
    2 * (size_of::<K>() + size_of::<V>())
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    pub(crate) fn new(account: &Account) -> Self {
        Self {
            entries: FxHashMap::default(),
            charge: account.for_cache(),
        }
    }

    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(crate) fn insert(&mut self, key: K, value: V) {
        if let Some(known) = self.entries.get_mut(&key) {
            *known = value;
            return;
        }
        if !self.charge.add(entry::<K, V>()) {
            // An empty map would keep its memory.
            self.entries = FxHashMap::default();
            self.charge.clear();
            if !self.charge.add(entry::<K, V>()) {
                return;
            }
        }
        self.entries.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use prof_model::Budget;

    use super::*;

    #[test]
    fn it_starts_over_when_there_is_no_room() {
        let budget = Budget::new(10 * 5 * entry::<u64, u64>());
        let mut map = BoundedMap::new(&budget.account(1));
        for number in 0..1000_u64 {
            map.insert(number, number + 1);
            map.insert(number, number + 2);
            assert_eq!(map.get(&number), Some(&(number + 2)));
            assert!(map.entries.len() <= 10);
        }
        let mut others = budget.account(2).for_names();
        while others.add(1) {}
        for number in 0..1000_u64 {
            map.insert(number, number);
        }
        assert!(budget.used() <= budget.total());
        drop((map, others));
        assert_eq!(budget.used(), 0);
    }
}
