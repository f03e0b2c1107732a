//! Numbers for distinct things.

use std::hash::{BuildHasher, Hash};

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;

/// Finds the number of a thing among those that are kept in a list, without a copy of any of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Numbers(HashTable<u32>);

impl Numbers {
    /// The number of `key`, of which `key_of` gives those of the numbers so far; if there is none,
    /// the next one, for which a thing must then be added to the list.
    pub(crate) fn intern<K: Hash + Eq>(&mut self, key: &K, key_of: impl Fn(u32) -> K) -> u32 {
        let next = self.0.len() as u32;
        let hash = FxBuildHasher.hash_one(key);
        let same = |&number: &u32| key_of(number) == *key;
        let rehash = |&number: &u32| FxBuildHasher.hash_one(key_of(number));
        *self.0.entry(hash, same, rehash).or_insert(next).get()
    }
}
