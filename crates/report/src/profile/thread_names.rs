//! Thread names, each once.

use std::sync::Arc;

use prof_model::{Tid, printable};
use rustc_hash::FxHashMap;

/// A name's number in [`ThreadNames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ThreadNameId(u32);

impl ThreadNameId {
    /// The position in the table, from zero without gaps.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// Each distinct name once.
#[derive(Clone, Debug, Default)]
pub struct ThreadNames {
    names: Vec<Arc<str>>,
    ids: FxHashMap<Arc<str>, ThreadNameId>,
}

impl ThreadNames {
    /// The id of `name`, which is added if it is new, and will be seen as [`printable`] has it.
    pub fn intern(&mut self, name: &str) -> ThreadNameId {
        if let Some(&id) = self.ids.get(name) {
            return id;
        }
        let id = ThreadNameId(self.names.len() as u32);
        self.names.push(Arc::from(&*printable(name)));
        self.ids.insert(Arc::from(name), id);
        id
    }

    /// All names with their ids, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (ThreadNameId, &str)> {
        let numbers = 0_u32..;
        numbers
            .map(ThreadNameId)
            .zip(self.names.iter().map(|name| &**name))
    }
}

/// The substitute for the name of a thread that no record names.
pub(crate) fn unnamed(tid: Tid) -> String {
    format!(":{tid}")
}

/// Whether the name of a thread is that substitute.
pub(crate) fn is_unnamed(name: &str, tid: Tid) -> bool {
    let number = name.strip_prefix(':');
    number.is_some_and(|number| number.parse() == Ok(tid))
}

impl std::ops::Index<ThreadNameId> for ThreadNames {
    type Output = str;

    fn index(&self, id: ThreadNameId) -> &str {
        &self.names[id.index()]
    }
}
