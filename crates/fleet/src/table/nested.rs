//! Columns as vectors.

/// A column that is optional or repeated: its values, and for each place where one could be
/// whether there is one (definition) and whether it goes on in the same row (repetition).
#[derive(Clone, Debug)]
pub(super) struct Nested<T> {
    pub(super) values: Vec<T>,
    pub(super) definition: Vec<i16>,
    pub(super) repetition: Vec<i16>,
}

impl<T> Default for Nested<T> {
    fn default() -> Self {
        Self {
            values: Vec::new(),
            definition: Vec::new(),
            repetition: Vec::new(),
        }
    }
}

impl<T> Nested<T> {
    /// An empty column with room for so many values.
    pub(super) fn with_capacity(places: usize) -> Self {
        Self {
            values: Vec::with_capacity(places),
            definition: Vec::with_capacity(places),
            repetition: Vec::with_capacity(places),
        }
    }

    /// Adds the list of one row. Elements are `None` only in columns that are optional in a list.
    pub(super) fn push_list(&mut self, list: impl Iterator<Item = Option<T>>, deepest: i16) {
        let start = self.definition.len();
        for value in list {
            let depth = deepest - i16::from(value.is_none());
            self.repetition.push((self.definition.len() > start).into());
            self.definition.push(depth);
            self.values.extend(value);
        }
        if self.definition.len() == start {
            self.repetition.push(0);
            self.definition.push(0);
        }
    }

    /// The lists of all rows; `deepest` is the level of values that are there.
    pub(super) fn into_lists(self, deepest: i16) -> Vec<Vec<Option<T>>> {
        let mut lists: Vec<Vec<Option<T>>> = Vec::new();
        let mut values = self.values.into_iter();
        for (repetition, definition) in self.repetition.into_iter().zip(self.definition) {
            if repetition == 0 {
                lists.push(Vec::new());
            }
            if definition == 0 {
                continue;
            }
            let value = (definition == deepest).then(|| values.next()).flatten();
            if let Some(list) = lists.last_mut() {
                list.push(value);
            }
        }
        lists
    }
}
