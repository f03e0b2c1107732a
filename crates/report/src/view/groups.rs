//! Weights by module, language, thread, process or CPU.

use std::cmp::Reverse;
use std::collections::HashMap;

use crate::calltree::{CallTree, NodeId};
use crate::profile::Weight;
use crate::symbolize::{FunctionId, FunctionKind, Languages, SymbolizedProfile, UNKNOWN};

use super::flat::{Weights, weigh};

/// The key for grouping code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CodeGroups {
    /// The file it is in.
    Modules,
    /// The language it is written in; the kernel's has none.
    Languages,
}

/// Parts of a profile by weight, the heaviest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    /// The node that it sums up: the tree's root, or one group of its split.
    pub of: NodeId,
    /// The weight of all of that.
    pub total: Weight,
    /// One row for each group.
    pub rows: Vec<Group>,
}

/// One group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the module, language, thread, process or CPU.
    pub name: String,
    /// Samples in it.
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

    /// Sums up the code of a whole tree.
    pub fn code(tree: &CallTree<'_>, by: CodeGroups) -> Self {
        Self::code_below(tree, NodeId::ROOT, by)
    }

    /// Sums up the code of each part of a tree's split, the heaviest part first.
    pub fn code_by_part(tree: &CallTree<'_>, by: CodeGroups) -> impl Iterator<Item = Self> {
        let parts = tree.children(NodeId::ROOT).iter();
        parts.map(move |&part| Self::code_below(tree, part, by))
    }

    fn code_below(tree: &CallTree<'_>, of: NodeId, by: CodeGroups) -> Self {
        let mut names = Vec::new();
        let mut numbers = HashMap::new();
        let group_of: Vec<usize> = names_of_groups(tree.symbolized(), by)
            .into_iter()
            .map(|name| {
                *numbers.entry(name).or_insert_with(|| {
                    names.push(name);
                    names.len() - 1
                })
            })
            .collect();
        let weights = weigh(tree, of, names.len(), |function| group_of[function.index()]);
        let rows = names
            .into_iter()
            .zip(weights)
            .map(|(name, Weights { own, total })| Group {
                name: match name {
                    "" => UNKNOWN.to_owned(),
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

/// By function's number: the name of its group.
fn names_of_groups(symbolized: &SymbolizedProfile, by: CodeGroups) -> Vec<&str> {
    let ids = symbolized.function_ids();
    let module = |id: FunctionId| &*symbolized[id].module;
    match by {
        CodeGroups::Modules => ids.map(module).collect(),
        CodeGroups::Languages => {
            let languages = Languages::of(symbolized);
            let of_none = |id: FunctionId| match symbolized[id].kind {
                FunctionKind::Kernel | FunctionKind::Jit => module(id),
                _ => "",
            };
            let name = |id| {
                languages
                    .get(id)
                    .map_or_else(|| of_none(id), |it| it.name())
            };
            ids.map(name).collect()
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
        let modules = |tree: &CallTree<'_>| Groups::code(tree, CodeGroups::Modules);
        check(Split::Nothing, modules, &expected);
        check(Split::Thread, modules, &expected);
    }

    #[test]
    fn languages_that_call_each_other_count_once() {
        let symbolized = TestProfile::of(&[
            "t main;ns::run;compare;k:page_fault 2",
            "t main;ns::run;jit:made 3",
        ]);
        let tree = CallTree::new(&symbolized, &everything(), Split::Nothing).unwrap();
        let found = Groups::code(&tree, CodeGroups::Languages);
        let names = found.rows.iter().map(|row| (&*row.name, row.total.samples));
        let names: Vec<_> = names.collect();
        let expected = [("[jit]", 1), ("[kernel]", 1), ("C", 2), ("C++", 2)];
        assert_eq!(names, expected);
    }

    #[test]
    fn modules_of_a_part() {
        let first = |tree: &CallTree<'_>| {
            Groups::code_by_part(tree, CodeGroups::Modules)
                .next()
                .unwrap()
        };
        check(Split::Name, first, &[("libc", 6, 6), ("demo", 0, 6)]);
    }

    #[test]
    fn parts_of_a_split() {
        check(Split::Name, Groups::parts, &[("web", 6, 6), ("db", 5, 5)]);
    }
}
