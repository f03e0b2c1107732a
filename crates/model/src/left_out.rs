//! What was left out because a process had more of it than its share.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

/// What was left out because a process had more of it than its share.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LeftOut {
    /// Processes with functions that have no names, by the names of their threads; a bounded list.
    pub names: BTreeSet<String>,
    /// Files of processes that were not read; a bounded list.
    pub files: BTreeSet<String>,
}

impl LeftOut {
    /// The most entries of a list.
    pub const MOST: usize = 16;

    /// Whether nothing was left out.
    pub(crate) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }

    /// A process lacks names of functions.
    pub fn add_names_of(&mut self, process: &str) {
        insert(&mut self.names, process);
    }

    /// A file was not read.
    pub fn add_file(&mut self, path: &str) {
        insert(&mut self.files, path);
    }

    /// Adds what another recording lacks.
    pub(crate) fn add(&mut self, other: &Self) {
        other.names.iter().for_each(|name| self.add_names_of(name));
        other.files.iter().for_each(|path| self.add_file(path));
    }
}

fn insert(list: &mut BTreeSet<String>, entry: &str) {
    if list.len() < LeftOut::MOST {
        list.insert(entry.to_owned());
    }
}
