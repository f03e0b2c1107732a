//! Stacks of symbolized functions, merged into one tree: the basis of most views.

pub(crate) mod groups;

mod build;
mod derive;
mod nodes;
#[cfg(test)]
mod tests;

use rustc_hash::FxHashMap;

use crate::error::{Error, NoSamples};
use crate::filter::Filter;
use crate::filter::selection::Selection;
use crate::profile::{Event, MissingData, Weight};
use crate::symbolize::{FunctionId, SymbolizedProfile};

/// The top level of a [`CallTree`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Split {
    /// Outermost functions: nothing is split.
    Nothing,
    /// Thread names; threads of one name together.
    #[default]
    Name,
    /// Threads.
    Thread,
    /// Processes.
    Process,
    /// CPUs.
    Cpu,
}

impl Split {
    /// The split for profiles that may lack threads.
    fn of(self, missing_data: MissingData) -> Result<Self, Error> {
        match self {
            Self::Nothing => Ok(self),
            _ if !missing_data.threads => Ok(self),
            // Outermost frames may well be the names of threads.
            Self::Name => Ok(Self::Nothing),
            Self::Thread | Self::Process | Self::Cpu => Err(Error::Lacking {
                asked: "--by",
                lacking: "threads",
            }),
        }
    }
}

/// A node's number; greater than its parent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NodeId(u32);

/// What a node represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Label {
    /// Everything.
    All,
    /// One part of a [`Split`]: an index for [`CallTree::part`].
    Part(u32),
    /// A call of this function.
    Function(FunctionId),
}

/// A node of a call tree.
#[derive(Clone, Debug)]
pub struct Node {
    /// The caller; the root is its own.
    pub parent: NodeId,
    /// What it represents.
    pub label: Label,
    /// Whether the compiler inlined the function here, in every sample.
    pub inlined: bool,
    /// In how many samples this frame was read from live memory, after the sample.
    pub remote_read: u64,
    /// Samples in this function itself.
    pub own: Weight,
    /// Samples in it or in its callees.
    pub total: Weight,
}

/// All stacks that a [`Filter`] lets through, merged from the outermost function inwards.
#[derive(Clone, Debug)]
pub struct CallTree<'p> {
    symbolized: &'p SymbolizedProfile,
    event: u16,
    nodes: Vec<Node>,
    /// By node: the squared weights of its own samples, added up. Nodes at the end may lack them,
    /// if they are 0; trees derived from others lack all.
    squares: Vec<f64>,
    /// Children of all nodes, one node after the other, heaviest first.
    children: Vec<NodeId>,
    /// The end of each node's children in `children`.
    ends: Vec<u32>,
    parts: Vec<String>,
    /// The functions' own weights, if the tree is upside down: its nodes' own weights are those of
    /// the stacks that begin there.
    upside_down: Option<FxHashMap<FunctionId, Weight>>,
}

impl Node {
    /// Whether it was read from live memory in most of its samples.
    pub(crate) fn is_remote_read(&self) -> bool {
        self.remote_read > self.total.samples / 2
    }
}

impl NodeId {
    /// The node of everything.
    pub const ROOT: Self = Self(0);

    /// The position among the tree's nodes.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl<'p> CallTree<'p> {
    /// Whether children are callers, not callees.
    pub(crate) fn is_upside_down(&self) -> bool {
        self.upside_down.is_some()
    }

    /// The functions' own weights, if the tree is upside down.
    pub(crate) fn own_weights(&self) -> Option<&FxHashMap<FunctionId, Weight>> {
        self.upside_down.as_ref()
    }

    /// Merges the stacks that `filter` lets through.
    ///
    /// # Errors
    /// [`Error::NoSamples`] if that is none, [`Error::NoSuchEvent`], [`Error::Lacking`].
    pub fn new(
        symbolized: &'p SymbolizedProfile,
        filter: &Filter,
        split: Split,
    ) -> Result<Self, Error> {
        let profile = symbolized.profile();
        if profile.samples.is_empty() {
            return Err(Error::NoSamples(NoSamples::recorded(&profile.quality)));
        }
        let selection = Selection::new(symbolized, filter)?;
        let split = split.of(profile.missing_data)?;
        let tree = build::build(symbolized, &selection, split);
        if tree.total().samples == 0 {
            return Err(Error::NoSamples(NoSamples::Left));
        }
        Ok(tree)
    }

    /// The profile that the tree is of.
    pub fn symbolized(&self) -> &'p SymbolizedProfile {
        self.symbolized
    }

    /// The event whose samples these are.
    pub fn event(&self) -> &'p Event {
        &self.symbolized.profile().events[usize::from(self.event)]
    }

    /// The weight of everything.
    pub fn total(&self) -> Weight {
        self[NodeId::ROOT].total
    }

    /// The squared weights of a node's own samples, added up: the less equal the weights, the more
    /// of the node's weight is chance.
    pub(crate) fn squares(&self, id: NodeId) -> f64 {
        self.squares.get(id.index()).copied().unwrap_or_default()
    }

    /// All nodes, each after its parent.
    pub fn nodes(&self) -> impl Iterator<Item = (NodeId, &Node)> {
        let numbers = 0_u32..;
        numbers.map(NodeId).zip(&self.nodes)
    }

    /// The callees of a node, the heaviest first; equal ones by name.
    pub fn children(&self, id: NodeId) -> &[NodeId] {
        let end = |index: usize| self.ends[index] as usize;
        let start = id.index().checked_sub(1).map_or(0, end);
        &self.children[start..end(id.index())]
    }

    /// The name of a part of the [`Split`] (`cc1`, `worker 123/456`, `CPU 3`).
    pub fn part(&self, index: u32) -> &str {
        &self.parts[index as usize]
    }

    /// A node's name, as views show it.
    pub fn name(&self, id: NodeId) -> &str {
        match self[id].label {
            Label::All => "all",
            Label::Part(index) => self.part(index),
            Label::Function(function) => &self.symbolized[function].name,
        }
    }

    /// The nodes from the outermost (below the root) to this one.
    pub fn path(&self, id: NodeId) -> Vec<NodeId> {
        let parent = |&id: &NodeId| Some(self[id].parent);
        let mut path: Vec<_> = std::iter::successors(Some(id), parent)
            .take_while(|&id| id != NodeId::ROOT)
            .collect();
        path.reverse();
        path
    }
}

impl std::ops::Index<NodeId> for CallTree<'_> {
    type Output = Node;

    fn index(&self, id: NodeId) -> &Node {
        &self.nodes[id.index()]
    }
}
