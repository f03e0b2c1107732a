//! A tree as it grows, and its completion.

use std::cmp::Reverse;

use super::{CallTree, Label, Node, NodeId};
use crate::numbers::Numbers;
use crate::profile::Weight;
use crate::symbolize::SymbolizedProfile;

/// Nodes with their own weights; those of whole subtrees are summed up at the end.
pub(super) struct Nodes {
    nodes: Vec<Node>,
    /// As in [`CallTree`].
    squares: Vec<f64>,
    numbers: Numbers,
}

impl Default for Nodes {
    fn default() -> Self {
        let mut root = Self {
            nodes: Vec::new(),
            squares: Vec::new(),
            numbers: Numbers::default(),
        };
        root.child(NodeId::ROOT, Label::All, false);
        root
    }
}

impl Nodes {
    /// The child of `parent` with this label, which is added if it is new.
    pub(super) fn child(&mut self, parent: NodeId, label: Label, inlined: bool) -> NodeId {
        let nodes = &mut self.nodes;
        let number = self.numbers.intern(&(parent, label), |number| {
            let node = &nodes[number as usize];
            (node.parent, node.label)
        });
        let id = NodeId(number);
        match nodes.get_mut(id.index()) {
            Some(node) => node.inlined &= inlined,
            None => nodes.push(Node {
                parent,
                label,
                inlined,
                remote_read: 0,
                own: Weight::default(),
                total: Weight::default(),
            }),
        }
        id
    }

    /// Adds to a node's own weight.
    pub(super) fn add(&mut self, id: NodeId, weight: Weight) {
        self.nodes[id.index()].own += weight;
    }

    /// Adds to the squared weights of a node's own samples.
    pub(super) fn add_squares(&mut self, id: NodeId, squares: f64) {
        self.squares.resize(self.nodes.len(), 0.0);
        self.squares[id.index()] += squares;
    }

    /// Adds to the number of samples in which a node was read from live memory.
    pub(super) fn add_remote_read(&mut self, id: NodeId, samples: u64) {
        self.nodes[id.index()].remote_read += samples;
    }

    /// Marks the callers of all nodes that were read from live memory in the same samples, too.
    pub(super) fn remote_read_callers(&mut self) {
        // Children come after their parents.
        for index in (1..self.nodes.len()).rev() {
            let Node {
                parent,
                remote_read,
                ..
            } = self.nodes[index];
            self.nodes[parent.index()].remote_read += remote_read;
        }
    }

    pub(super) fn finish(
        mut self,
        symbolized: &SymbolizedProfile,
        event: u16,
        parts: Vec<String>,
    ) -> CallTree<'_> {
        // Children come after their parents.
        for index in (0..self.nodes.len()).rev() {
            let Node { parent, own, .. } = self.nodes[index];
            self.nodes[index].total += own;
            let total = self.nodes[index].total;
            if index != NodeId::ROOT.index() {
                self.nodes[parent.index()].total += total;
            }
        }
        let mut tree = CallTree {
            symbolized,
            event,
            nodes: self.nodes,
            squares: self.squares,
            children: Vec::new(),
            ends: Vec::new(),
            parts,
            upside_down: None,
        };
        (tree.children, tree.ends) = sorted_children(&tree);
        tree
    }
}

/// The children of all nodes and the end of those of each node. Nodes without samples, which remain
/// from stacks that the filter rejected, are left out.
fn sorted_children(tree: &CallTree<'_>) -> (Vec<NodeId>, Vec<u32>) {
    let mut children: Vec<NodeId> = tree
        .nodes()
        .skip(1)
        .filter(|(_, node)| node.total.samples > 0)
        .map(|(id, _)| id)
        .collect();
    children.sort_by(|&a, &b| {
        let key = |id| {
            let node = &tree[id];
            (node.parent, Reverse(node.total))
        };
        key(a)
            .cmp(&key(b))
            .then_with(|| tree.name(a).cmp(tree.name(b)))
            .then(a.cmp(&b))
    });
    let mut ends = vec![0_u32; tree.nodes.len()];
    for &child in &children {
        ends[tree[child].parent.index()] += 1;
    }
    let mut end = 0;
    for slot in &mut ends {
        end += *slot;
        *slot = end;
    }
    (children, ends)
}
