//! Trees derived from other trees: from a function, or from the innermost functions outwards.

use std::collections::BTreeSet;

use prof_model::similar;
use rustc_hash::FxHashMap;

use super::nodes::Nodes;
use super::{CallTree, Label, Node, NodeId};
use crate::error::Error;
use crate::pattern::Pattern;
use crate::profile::Weight;
use crate::symbolize::FunctionId;

/// The own weights of functions.
#[derive(Default)]
struct OwnWeights(FxHashMap<FunctionId, Weight>);

impl OwnWeights {
    fn add(&mut self, node: &Node) {
        if let Label::Function(function) = node.label {
            *self.0.entry(function).or_default() += node.own;
        }
    }
}

impl<'p> CallTree<'p> {
    /// The callees of the functions that match `pattern`: their subtrees, merged, below one node
    /// for each of these functions. Of recursive calls only the outermost counts.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`].
    pub fn callees_of(&self, pattern: &Pattern) -> Result<Self, Error> {
        let mut nodes = Nodes::default();
        // The node in the new tree for each node of this one.
        let mut places = vec![None; self.nodes.len()];
        for (id, node) in self.nodes() {
            let parent = match places[node.parent.index()] {
                None if !self.matches(id, pattern) => continue,
                None => NodeId::ROOT,
                Some(parent) => parent,
            };
            let place = nodes.child(parent, node.label, node.inlined);
            nodes.add(place, node.own);
            nodes.add_remote_read(place, node.remote_read);
            places[id.index()] = Some(place);
        }
        self.derived(nodes, pattern)
    }

    /// The callers of the functions that match `pattern`: upside down, from one node for each of
    /// these functions outwards. Weights are the total weights of the functions. Of recursive calls
    /// only the outermost counts.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`].
    pub fn callers_of(&self, pattern: &Pattern) -> Result<Self, Error> {
        let mut nodes = Nodes::default();
        let mut inside = vec![false; self.nodes.len()];
        let mut own = OwnWeights::default();
        for (id, node) in self.nodes() {
            inside[id.index()] = inside[node.parent.index()];
            let matches = self.matches(id, pattern);
            if matches {
                own.add(node);
            }
            if !inside[id.index()] && matches {
                inside[id.index()] = true;
                let outermost = self.outwards(&mut nodes, NodeId::ROOT, id, node.total.samples);
                nodes.add(outermost, node.total);
            }
        }
        let mut tree = self.derived(nodes, pattern)?;
        tree.upside_down = Some(own.0);
        Ok(tree)
    }

    /// The tree upside down: from the sampled functions to their callers, in each group of the
    /// split.
    pub fn inverted(&self) -> Self {
        let mut nodes = Nodes::default();
        let mut own = OwnWeights::default();
        for (id, node) in self.nodes().filter(|(_, node)| node.own.samples > 0) {
            own.add(node);
            let part = self.path(id).into_iter().next().map(|id| self[id].label);
            let start = match part {
                Some(label @ Label::Part(_)) => nodes.child(NodeId::ROOT, label, false),
                _ => NodeId::ROOT,
            };
            let outermost = self.outwards(&mut nodes, start, id, node.own.samples);
            nodes.add(outermost, node.own);
        }
        let mut tree = nodes.finish(self.symbolized, self.event, self.parts.clone());
        tree.upside_down = Some(own.0);
        tree
    }

    /// Adds the function at `id` and its callers, as they were in this many samples, below `place`;
    /// returns the outermost one's node.
    fn outwards(
        &self,
        nodes: &mut Nodes,
        mut place: NodeId,
        mut id: NodeId,
        samples: u64,
    ) -> NodeId {
        while let Label::Function(_) = self[id].label {
            place = nodes.child(place, self[id].label, self[id].inlined);
            if self[id].is_remote_read() {
                nodes.add_remote_read(place, samples);
            }
            id = self[id].parent;
        }
        place
    }

    fn matches(&self, id: NodeId, pattern: &Pattern) -> bool {
        let is_function = matches!(self[id].label, Label::Function(_));
        is_function && self[id].total.samples > 0 && pattern.matches(self.name(id))
    }

    fn derived(&self, nodes: Nodes, pattern: &Pattern) -> Result<Self, Error> {
        let tree = nodes.finish(self.symbolized, self.event, self.parts.clone());
        match tree.total().samples {
            0 => Err(no_such_function(&[self], pattern)),
            _ => Ok(tree),
        }
    }

    /// Checks that `pattern` matches a function on the stacks of one of `trees`.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`].
    pub fn check_pattern(trees: &[&Self], pattern: &Pattern) -> Result<(), Error> {
        let mut names = trees.iter().flat_map(|tree| tree.functions());
        match names.any(|name| pattern.matches(name)) {
            true => Ok(()),
            false => Err(no_such_function(trees, pattern)),
        }
    }

    /// The names of the functions on its stacks.
    fn functions(&self) -> impl Iterator<Item = &str> {
        self.nodes()
            .filter(|(_, node)| node.total.samples > 0)
            .filter(|(_, node)| matches!(node.label, Label::Function(_)))
            .map(|(id, _)| self.name(id))
    }
}

fn no_such_function(trees: &[&CallTree<'_>], pattern: &Pattern) -> Error {
    let names: BTreeSet<&str> = trees.iter().flat_map(|tree| tree.functions()).collect();
    let pattern = pattern.to_string();
    Error::NoSuchFunction {
        similar: similar(&pattern, names),
        pattern,
    }
}
