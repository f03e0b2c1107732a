//! The flat view: each function's own weight, and that of all it called.

use std::cmp::Reverse;

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::{Event, Weight};
use crate::symbolize::{FunctionId, FunctionKind, OFF_CPU};

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
        let mut rows: Vec<Row> = tree
            .symbolized()
            .function_ids()
            .zip(weights)
            .map(|(function, Weights { own, total })| Row {
                function,
                own,
                total,
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
    let count = tree.symbolized().functions().len();
    let mut squares = vec![Squares::default(); count];
    let root = NodeId::ROOT;
    visit(
        tree,
        root,
        count,
        FunctionId::index,
        |part, kind, id| match part {
            Part::Own => squares[kind].own += tree.squares(id),
            Part::Total => squares[kind].total += totals[id.index()],
        },
    );
    squares
}

/// What a node adds to a kind of code.
enum Part {
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
    let waits = Waits::of(tree);
    let mut steps = vec![Step::Enter(of)];
    while let Some(step) = steps.pop() {
        match step {
            Step::Enter(id) => {
                if let Label::Function(function) = tree[id].label {
                    add(Part::Own, kind(waits.owner(id).unwrap_or(function)), id);
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

/// Assigns the self weight of off-CPU time. Each wait ends in the scheduler, which explains
/// nothing: the innermost function of the program gets it.
struct Waits {
    /// By node's number: the function that has the node's own weight, if it is not the node's.
    owners: Vec<Option<FunctionId>>,
}

impl Waits {
    fn of(tree: &CallTree<'_>) -> Self {
        let symbolized = tree.symbolized();
        let off_cpu = tree.event().is_off_cpu();
        if !off_cpu && tree.event().name != Event::WALL_CLOCK {
            return Self { owners: Vec::new() };
        }
        // By node: whether the thread waits there, and the innermost function of the program.
        let mut found: Vec<(bool, Option<FunctionId>)> = Vec::with_capacity(tree.nodes().count());
        let mut owners = Vec::new();
        for (id, node) in tree.nodes() {
            let (mut waits, mut user) = match id {
                NodeId::ROOT => (off_cpu, None),
                _ => found[node.parent.index()],
            };
            let mut owner = None;
            if let Label::Function(function) = node.label {
                match symbolized[function].kind {
                    FunctionKind::State => waits |= &*symbolized[function].name == OFF_CPU,
                    FunctionKind::Kernel if waits => owner = user,
                    FunctionKind::Kernel | FunctionKind::Missing => {}
                    FunctionKind::User | FunctionKind::Jit | FunctionKind::Interpreted(_) => {
                        user = Some(function)
                    }
                }
            }
            found.push((waits, user));
            owners.push(owner);
        }
        Self { owners }
    }

    fn owner(&self, id: NodeId) -> Option<FunctionId> {
        self.owners.get(id.index()).copied().flatten()
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
