//! The flat view: each function's own weight, and that of all it called.

use std::cmp::Reverse;

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Weight;
use crate::symbolized::FunctionId;

/// Functions by weight, the heaviest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flat {
    /// The weight of everything.
    pub total: Weight,
    /// One row for each function.
    pub rows: Vec<Row>,
}

/// A function's weights.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row {
    /// The function.
    pub function: FunctionId,
    /// Samples taken in the function itself, functions inlined into it aside.
    pub own: Weight,
    /// Samples with the function anywhere on their stack, each once however often it recurs.
    pub total: Weight,
}

impl Flat {
    /// Sums up a call tree.
    pub fn new(tree: &CallTree<'_>) -> Self {
        let count = tree.symbolized().functions().len();
        let mut own = vec![Weight::default(); count];
        let mut total = vec![Weight::default(); count];
        let mut active = vec![0_u32; count];
        let mut steps = vec![Step::Enter(NodeId::ROOT)];
        while let Some(step) = steps.pop() {
            match step {
                Step::Enter(id) => {
                    if let Label::Function(function) = tree[id].label {
                        own[function.index()] += tree[id].own;
                        // Only the outermost of recursive calls counts: it holds the others.
                        if active[function.index()] == 0 {
                            total[function.index()] += tree[id].total;
                        }
                        active[function.index()] += 1;
                        steps.push(Step::Leave(function));
                    }
                    steps.extend(tree.children(id).iter().map(|&id| Step::Enter(id)));
                }
                Step::Leave(function) => active[function.index()] -= 1,
            }
        }
        let mut rows: Vec<Row> = tree
            .symbolized()
            .function_ids()
            .map(|function| Row {
                function,
                own: own[function.index()],
                total: total[function.index()],
            })
            .filter(|row| row.total.samples > 0)
            .collect();
        rows.sort_by_cached_key(|row| {
            let function = &tree.symbolized()[row.function];
            let name = (function.name.clone(), function.module.clone());
            (Reverse(row.own), Reverse(row.total), name, row.function)
        });
        Self {
            total: tree.total(),
            rows,
        }
    }
}

enum Step {
    Enter(NodeId),
    Leave(FunctionId),
}
