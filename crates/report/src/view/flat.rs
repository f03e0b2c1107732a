//! The flat view: each function's own weight, and that of all it called.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;

use super::attribution::Attribution;
use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Weight;
use crate::symbolize::FunctionId;

/// Functions by weight, the heaviest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// The node that it sums up: the tree's root, or one group of its split.
    pub of: NodeId,
    /// The weight of all of that.
    pub total: Weight,
    /// One row for each function.
    pub rows: Vec<Row>,
}

/// A function's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The function.
    pub function: FunctionId,
    /// Samples in the function itself, without functions inlined into it.
    pub own: Weight,
    /// Samples with the function anywhere on their stack, each once however often it recurs.
    pub total: Weight,
    /// Of waits and allocations: what the function mostly called for them.
    pub through: Option<FunctionId>,
}

impl Flat {
    /// Sums up a call tree.
    pub fn new(tree: &CallTree<'_>) -> Self {
        Self::below(tree, NodeId::ROOT)
    }

    /// Sums up each part of a tree's split, the heaviest part first.
    pub fn by_part(tree: &CallTree<'_>) -> impl Iterator<Item = Self> {
        let parts = tree.children(NodeId::ROOT).iter();
        parts.map(|&part| Self::below(tree, part))
    }

    /// Sums up one node of a call tree with all below it.
    fn below(tree: &CallTree<'_>, of: NodeId) -> Self {
        let count = tree.symbolized().functions().len();
        let weights = weigh(tree, of, count, FunctionId::index);
        let through = through(tree);
        let mut rows: Vec<Row> = tree
            .symbolized()
            .function_ids()
            .zip(weights)
            .map(|(function, Weights { own, total })| Row {
                function,
                own,
                total,
                through: through.get(&function).copied(),
            })
            .filter(|row| row.total.samples > 0)
            .collect();
        rows.sort_by_cached_key(|row| {
            let function = &tree.symbolized()[row.function];
            let name = (function.name.clone(), function.module.clone());
            (Reverse(row.own), Reverse(row.total), name, row.function)
        });
        Self {
            of,
            total: tree[of].total,
            rows,
        }
    }
}

/// What functions mostly called to wait or to allocate.
fn through(tree: &CallTree<'_>) -> FxHashMap<FunctionId, FunctionId> {
    let attribution = Attribution::of(tree);
    let mut weights: FxHashMap<(FunctionId, FunctionId), u64> = FxHashMap::default();
    for (id, node) in tree.nodes() {
        if let (Some(owner), Some(through)) = (attribution.owner(id), attribution.through(id)) {
            *weights.entry((owner, through)).or_default() += node.own.value;
        }
    }
    let mut sorted: Vec<_> = weights.into_iter().collect();
    sorted.sort_unstable_by_key(|&((owner, through), weight)| (owner, weight, Reverse(through)));
    // Of each owner, the last one is the heaviest.
    sorted.into_iter().map(|(pair, _)| pair).collect()
}

/// The self and total weight of one of several kinds of code.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Weights {
    pub(super) own: Weight,
    pub(super) total: Weight,
}

/// Weighs a node of a call tree with all below it, by the kinds of code that `kind` puts functions
/// into, of which there are `count`.
pub(super) fn weigh(
    tree: &CallTree<'_>,
    of: NodeId,
    count: usize,
    kind: impl Fn(FunctionId) -> usize,
) -> Vec<Weights> {
    let mut weights = vec![Weights::default(); count];
    visit(tree, of, count, &kind, |part, kind, id| match part {
        // The nodes' own weights are of outermost functions then.
        Part::Own if tree.is_upside_down() => {}
        Part::Own => weights[kind].own += tree[id].own,
        Part::Total => weights[kind].total += tree[id].total,
    });
    for (&function, &own) in tree.own_weights().into_iter().flatten() {
        weights[kind(function)].own += own;
    }
    weights
}

/// The squared weights of each function's samples, added up.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Squares {
    pub(super) own: f64,
    pub(super) total: f64,
}

/// By function.
pub(super) fn squares(tree: &CallTree<'_>) -> Vec<Squares> {
    let nodes: Vec<_> = tree.nodes().map(|(id, node)| (id, node.parent)).collect();
    let mut totals: Vec<f64> = nodes.iter().map(|&(id, _)| tree.squares(id)).collect();
    // Children come after their parents.
    for &(id, parent) in nodes.iter().skip(1).rev() {
        totals[parent.index()] += totals[id.index()];
    }
    let mut squares = vec![Squares::default(); tree.symbolized().functions().len()];
    visit_functions(tree, |part, function, id| {
        let of = &mut squares[function.index()];
        match part {
            Part::Own => of.own += tree.squares(id),
            Part::Total => of.total += totals[id.index()],
        }
    });
    squares
}

/// Calls `add` with each node and each function that it counts for.
pub(super) fn visit_functions(tree: &CallTree<'_>, mut add: impl FnMut(Part, FunctionId, NodeId)) {
    let functions: Vec<FunctionId> = tree.symbolized().function_ids().collect();
    let count = functions.len();
    visit(
        tree,
        NodeId::ROOT,
        count,
        FunctionId::index,
        |part, index, id| {
            add(part, functions[index], id);
        },
    );
}

/// What a node adds to a kind of code.
pub(super) enum Part {
    Own,
    Total,
}

/// Calls `add` with each node and each kind that it counts for.
fn visit(
    tree: &CallTree<'_>,
    of: NodeId,
    count: usize,
    kind: impl Fn(FunctionId) -> usize,
    mut add: impl FnMut(Part, usize, NodeId),
) {
    let mut active = vec![0_u32; count];
    let attribution = Attribution::of(tree);
    let mut steps = vec![Step::Enter(of)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(id) => {
                if let Label::Function(function) = tree[id].label {
                    add(
                        Part::Own,
                        kind(attribution.owner(id).unwrap_or(function)),
                        id,
                    );
                    let kind = kind(function);
                    // Only the outermost of recursive calls counts: it contains the others.
                    if active[kind] == 0 {
                        add(Part::Total, kind, id);
                    }
                    active[kind] += 1;
                    steps.push(Step::Leave(kind));
                }
                steps.extend(tree.children(id).iter().map(|&id| Step::Enter(id)));
            }
            Step::Leave(kind) => active[kind] -= 1,
        }
    }
}

enum Step {
    Enter(NodeId),
    /// All calls below one of this kind are done.
    Leave(usize),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, everything};

    fn check(stacks: &[&str], expected: &[(&str, u64, u64)]) {
        let symbolized = TestProfile::of(stacks);
        for split in [Split::Nothing, Split::Thread] {
            let tree = CallTree::new(&symbolized, &everything(), split).unwrap();
            let flat = Flat::new(&tree);
            let milliseconds = |weight: Weight| weight.value / 1_000_000;
            let rows: Vec<_> = flat
                .rows
                .iter()
                .map(|row| {
                    let name = &*symbolized[row.function].name;
                    (name, milliseconds(row.own), milliseconds(row.total))
                })
                .collect();
            assert_eq!(rows, expected);
        }
    }

    #[test]
    fn own_and_total() {
        check(
            &["t main;a;b 3", "t main;a 2", "u/2 main;b 4"],
            &[("b", 7, 7), ("a", 2, 5), ("main", 0, 9)],
        );
    }

    #[test]
    fn a_wait_is_the_programs_not_the_schedulers() {
        let lines = [
            "t main;reads;k:vfs_read;k:schedule 3",
            "t k:kthread;k:schedule 1",
        ];
        let own = |event: &str| -> Vec<(String, u64)> {
            let mut test = TestProfile::new();
            test.profile.events[0].name = event.into();
            lines.iter().for_each(|line| test.line(line));
            let symbolized = test.finish();
            let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
            let rows = Flat::new(&tree).rows.into_iter();
            let own = rows.filter(|row| row.own.samples > 0);
            own.map(|row| {
                (
                    symbolized[row.function].name.to_string(),
                    row.own.value / 1_000_000,
                )
            })
            .collect()
        };
        let expected = [("reads".to_owned(), 3), ("schedule".to_owned(), 1)];
        assert_eq!(own("offcpu-time"), expected);
        assert_eq!(own("offcpu-time:u"), expected);
        assert_eq!(own("cpu-clock"), [("schedule".to_owned(), 4)]);
    }

    #[test]
    fn allocations_and_waits_are_those_of_who_calls_the_library() {
        let lines = [
            "t main;parse;libc.so.6!malloc;libc.so.6!_int_malloc 3",
            "t main;alloc::raw_vec::grow;libc.so.6!realloc 2",
            "t libc.so.6!start_thread;libc.so.6!calloc 1",
        ];
        let rows = |event: &str, native: bool| -> Vec<(String, u64, Option<String>)> {
            let mut test = TestProfile::new();
            test.profile.events[0].name = event.into();
            test.profile.native = native;
            lines.iter().for_each(|line| test.line(line));
            let symbolized = test.finish();
            let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
            let rows = Flat::new(&tree).rows.into_iter();
            let own = rows.filter(|row| row.own.samples > 0);
            let name = |id: FunctionId| symbolized[id].name.to_string();
            own.map(|row| {
                (
                    name(row.function),
                    row.own.value / 1_000_000,
                    row.through.map(name),
                )
            })
            .collect()
        };
        let row = |name: &str, own, through: &str| {
            let through = Some(through.to_owned()).filter(|name| !name.is_empty());
            (name.to_owned(), own, through)
        };
        let expected = [
            row("parse", 3, "malloc"),
            row("main", 2, "alloc::raw_vec::grow"),
            row("calloc", 1, ""),
        ];
        assert_eq!(rows("alloc-bytes", false), expected);
        assert_eq!(rows("offcpu-time", false), expected);
        let as_sampled = [
            row("_int_malloc", 3, ""),
            row("realloc", 2, ""),
            row("calloc", 1, ""),
        ];
        assert_eq!(rows("alloc-bytes", true), as_sampled);
        assert_eq!(rows("cpu-clock", false), as_sampled);
    }

    #[test]
    fn recursion_counts_once() {
        check(&["t f;f;g;f 5", "t f;g;g 1"], &[("f", 5, 6), ("g", 1, 6)]);
    }

    #[test]
    fn inlined_functions_have_their_own_weight() {
        check(
            &["t main;outer+inner 5", "t main;outer 1"],
            &[("inner", 5, 5), ("outer", 1, 6), ("main", 0, 6)],
        );
    }
}
