//! A table of strings, as several formats have one: each string once, referred to by its index.

use rustc_hash::FxHashMap;

/// Distinct strings in the order of first use.
#[derive(Clone, Debug, Default)]
pub(in crate::format) struct StringTable {
    strings: Vec<String>,
    indices: FxHashMap<String, usize>,
}

impl StringTable {
    /// The index of `text`, which is added if it is new.
    pub(in crate::format) fn index(&mut self, text: &str) -> usize {
        if let Some(&index) = self.indices.get(text) {
            return index;
        }
        let index = self.strings.len();
        self.strings.push(text.to_owned());
        self.indices.insert(text.to_owned(), index);
        index
    }

    /// All strings by index.
    pub(in crate::format) fn into_strings(self) -> Vec<String> {
        self.strings
    }
}
