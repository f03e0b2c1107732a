//! A call tree reduced to a readable size: light calls are left out, a chain of calls without
//! branches stays at one level, and plain recursion is one line.

use crate::calltree::{CallTree, NodeId};
use crate::profile::Weight;

/// The lines of a tree, from the outermost function inwards, heaviest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outline {
    /// The lines, in the order they are shown.
    pub lines: Vec<OutlineLine>,
}

/// One line of an outline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutlineLine {
    /// Its content.
    pub item: Item,
    /// For each level of indentation, outermost first, whether more follows on that level below
    /// this line.
    pub levels: Vec<bool>,
    /// Whether it has siblings, and so starts a branch. Others continue the line before, their only
    /// caller.
    pub branch: bool,
}

/// The content of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Item {
    /// A call.
    Call(Call),
    /// The number of calls that were left out, and their weight.
    Rest {
        /// How many.
        count: usize,
        /// Their total weight.
        total: Weight,
    },
}

/// A call, or a chain of recursive calls of one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    /// The outermost of them.
    pub node: NodeId,
    /// The innermost of them.
    pub innermost: NodeId,
    /// How many there are.
    pub depth: usize,
    /// Their own weights together.
    pub own: Weight,
}

impl Outline {
    /// The outline of `tree` without the calls of less than `min_percent` of everything.
    pub fn new(tree: &CallTree<'_>, min_percent: f64) -> Self {
        let pruned = Pruned { tree, min_percent };
        let mut lines = Vec::new();
        let mut pending = pruned.below(NodeId::ROOT, &[]);
        while let Some(line) = pending.pop() {
            if let Item::Call(call) = line.item {
                pending.extend(pruned.below(call.innermost, &line.levels));
            }
            lines.push(line);
        }
        Self { lines }
    }
}

struct Pruned<'a> {
    tree: &'a CallTree<'a>,
    min_percent: f64,
}

impl Pruned<'_> {
    /// The lines of a node's callees, the last one first.
    fn below(&self, id: NodeId, levels: &[bool]) -> Vec<OutlineLine> {
        let (shown, rest) = self.children(id);
        let mut items: Vec<Item> = shown.map(|id| Item::Call(self.call(id))).collect();
        // A few light calls below something shown with its own weight say nothing.
        if let (Some(rest), false) = (self.rest(rest), items.is_empty()) {
            items.push(rest);
        }
        let last = items.len().saturating_sub(1);
        let branch = last > 0;
        let line = |(index, item)| {
            let mut levels = levels.to_vec();
            if branch {
                levels.push(index < last);
            }
            OutlineLine {
                item,
                levels,
                branch,
            }
        };
        items.into_iter().enumerate().map(line).rev().collect()
    }

    /// A node's children: the significant ones, and the others. They are sorted by weight.
    fn children(&self, id: NodeId) -> (impl Iterator<Item = NodeId>, &[NodeId]) {
        let all = self.tree.total();
        let matters = |&id: &NodeId| self.tree[id].total.share_of(all) * 100.0 >= self.min_percent;
        let children = self.tree.children(id);
        let (shown, rest) = children.split_at(children.partition_point(matters));
        (shown.iter().copied(), rest)
    }

    /// The run of recursive calls that starts at `node`: each the only call of the one before.
    fn call(&self, node: NodeId) -> Call {
        let mut call = Call {
            node,
            innermost: node,
            depth: 1,
            own: self.tree[node].own,
        };
        while let &[child] = self.tree.children(call.innermost) {
            if self.tree[child].label != self.tree[node].label {
                break;
            }
            call.innermost = child;
            call.depth += 1;
            call.own += self.tree[child].own;
        }
        call
    }

    fn rest(&self, nodes: &[NodeId]) -> Option<Item> {
        let mut total = Weight::default();
        nodes.iter().for_each(|&id| total += self.tree[id].total);
        (!nodes.is_empty()).then_some(Item::Rest {
            count: nodes.len(),
            total,
        })
    }
}
