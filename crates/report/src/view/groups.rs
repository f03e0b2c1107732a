//! Weights by where and by what code ran: modules, threads, processes, CPUs.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::calltree::{CallTree, NodeId};
use crate::profile::Weight;

use super::flat::{Weights, weigh};

/// Parts of a profile by weight, the heaviest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// What it sums up: the tree's root, or one part of its split.
    pub of: NodeId,
    /// The weight of all of that.
    pub total: Weight,
    /// One row for each group.
    pub rows: Vec<Group>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Of the module, thread, process or CPU.
    pub name: String,
    /// Samples taken in it.
    pub own: Weight,
    /// Samples with it anywhere on their stacks.
    pub total: Weight,
}

impl Groups {
    /// Sums up the parts of a tree's split.
    pub fn parts(tree: &CallTree<'_>) -> Self {
        let parts = tree.children(NodeId::ROOT).iter();
        let rows = parts.map(|&part| Group {
            name: tree.name(part).to_owned(),
            own: tree[part].total,
            total: tree[part].total,
        });
        Self::new(tree, NodeId::ROOT, rows.collect())
    }

    /// Sums up the modules of a whole tree.
    pub fn modules(tree: &CallTree<'_>) -> Self {
        Self::modules_below(tree, NodeId::ROOT)
    }

    /// Sums up the modules of each part of a tree's split, the heaviest part first.
    pub fn modules_by_part(tree: &CallTree<'_>) -> impl Iterator<Item = Self> {
        let parts = tree.children(NodeId::ROOT).iter();
        parts.map(|&part| Self::modules_below(tree, part))
    }

    fn modules_below(tree: &CallTree<'_>, of: NodeId) -> Self {
        let mut names = Vec::new();
        let mut numbers = HashMap::new();
        let module_of: Vec<usize> = tree
            .symbolized()
            .functions()
            .iter()
            .map(|function| {
                *numbers.entry(&*function.module).or_insert_with(|| {
                    names.push(&*function.module);
                    names.len() - 1
                })
            })
            .collect();
        let weights = weigh(tree, of, names.len(), |function| {
            module_of[function.index()]
        });
        let rows = names
            .into_iter()
            .zip(weights)
            .map(|(name, Weights { own, total })| Group {
                name: match name {
                    "" => "[unknown]".to_owned(),
                    name => name.to_owned(),
                },
                own,
                total,
            });
        let rows = rows.filter(|row| row.total.samples > 0);
        Self::new(tree, of, rows.collect())
    }

    fn new(tree: &CallTree<'_>, of: NodeId, mut rows: Vec<Group>) -> Self {
        rows.sort_by(|a, b| {
            let key = |row: &Group| (Reverse(row.own), Reverse(row.total));
            key(a).cmp(&key(b)).then_with(|| a.name.cmp(&b.name))
        });
        Self {
            of,
            total: tree[of].total,
            rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, everything};

    const STACKS: [&str; 4] = [
        "web main;libc!qsort;order;libc!memcpy 3",
        "web main;libc!qsort 3",
        "db main;order 4",
        "db cut 1",
    ];

    fn check(
        split: Split,
        groups: impl Fn(&CallTree<'_>) -> Groups,
        expected: &[(&str, u64, u64)],
    ) {
        let symbolized = TestProfile::of(&STACKS);
        let tree = CallTree::new(&symbolized, &everything(), split).unwrap();
        let groups = groups(&tree);
        let milliseconds = |weight: Weight| weight.value / 1_000_000;
        let rows: Vec<_> = (groups.rows.iter())
            .map(|row| (&*row.name, milliseconds(row.own), milliseconds(row.total)))
            .collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn modules_that_call_each_other_count_once() {
        let expected = [("libc", 6, 6), ("demo", 4, 10), ("[unknown]", 1, 1)];
        check(Split::Nothing, Groups::modules, &expected);
        check(Split::Thread, Groups::modules, &expected);
    }

    #[test]
    fn modules_of_a_part() {
        let first = |tree: &CallTree<'_>| Groups::modules_by_part(tree).next().unwrap();
        check(Split::Name, first, &[("libc", 6, 6), ("demo", 0, 6)]);
    }

    #[test]
    fn parts_of_a_split() {
        check(Split::Name, Groups::parts, &[("web", 6, 6), ("db", 5, 5)]);
    }
}
