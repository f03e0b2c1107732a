//! From samples to the tree.

mod remote_read;

use std::cell::OnceCell;

use rustc_hash::FxHashMap;

use super::nodes::Nodes;
use super::{CallTree, Label, NodeId, Split};
use crate::calltree::groups::Groups;
use crate::filter::selection::{Seen, Selection};
use crate::profile::{StackId, Weight};
use crate::symbolize::SymbolizedProfile;

pub(super) fn build<'p>(
    symbolized: &'p SymbolizedProfile,
    selection: &Selection<'_>,
    split: Split,
) -> CallTree<'p> {
    let mut parts = Groups::new(symbolized.profile(), selection.filter(), split);
    let mut builder = Builder::new(symbolized, selection);
    for (number, samples) in samples_by_part(symbolized, selection, &mut parts) {
        let root = match split {
            Split::Nothing => NodeId::ROOT,
            _ => builder
                .nodes
                .child(NodeId::ROOT, Label::Part(number), false),
        };
        builder.add_part(root, &samples);
    }
    builder.nodes.remote_read_callers();
    builder
        .nodes
        .finish(symbolized, selection.event(), parts.into_names())
}

/// The positions of the samples that pass the filter, except for stacks, one group after the other.
fn samples_by_part(
    symbolized: &SymbolizedProfile,
    selection: &Selection<'_>,
    parts: &mut Groups<'_>,
) -> impl Iterator<Item = (u32, Vec<u32>)> {
    let mut by_part: Vec<Vec<u32>> = Vec::new();
    for (position, sample) in (0_u32..).zip(symbolized.profile().samples.iter()) {
        if selection.has(&sample) {
            let part = parts.number(&sample) as usize;
            if part == by_part.len() {
                by_part.push(Vec::new());
            }
            by_part[part].push(position);
        }
    }
    (0..).zip(by_part)
}

/// Builds one group of the tree after the other, so that facts about stacks can be stored by their
/// ids.
struct Builder<'a, 'p> {
    symbolized: &'p SymbolizedProfile,
    selection: &'a Selection<'a>,
    nodes: Nodes,
    /// By stack id: the samples of the part of the tree that is being built.
    weights: Vec<Weight>,
    /// By stack id: the squared weights of these samples, added up.
    squares: Vec<f64>,
    /// By stack id: its place in that part.
    places: Vec<Option<StackPosition>>,
    /// The stacks that have a place.
    placed: Vec<StackId>,
    /// The stacks that are on the way into `places`; kept to save allocations.
    pending: Vec<StackId>,
    /// How many samples of this part have a stack of which this many of the outermost frames were
    /// read from live memory.
    remote_read: FxHashMap<(StackId, u16), u64>,
    depths: OnceCell<Vec<u64>>,
}

#[derive(Clone, Copy)]
struct StackPosition {
    node: NodeId,
    seen: Seen,
    /// Whether anything of the stack is shown.
    shown: bool,
}

impl<'a, 'p> Builder<'a, 'p> {
    fn new(symbolized: &'p SymbolizedProfile, selection: &'a Selection<'a>) -> Self {
        Self {
            symbolized,
            selection,
            nodes: Nodes::default(),
            weights: vec![Weight::default(); symbolized.profile().stacks.len()],
            squares: vec![0.0; symbolized.profile().stacks.len()],
            places: vec![None; symbolized.profile().stacks.len()],
            placed: Vec::new(),
            pending: Vec::new(),
            remote_read: FxHashMap::default(),
            depths: OnceCell::new(),
        }
    }

    /// Adds these samples below `root`.
    fn add_part(&mut self, root: NodeId, samples: &[u32]) {
        for stack in self.weigh(samples) {
            let weight = std::mem::take(&mut self.weights[stack.index()]);
            let squares = std::mem::take(&mut self.squares[stack.index()]);
            let place = self.place(root, stack);
            if self.accepts(place) {
                self.nodes.add(place.node, weight);
                self.nodes.add_squares(place.node, squares);
            }
        }
        remote_read::mark(self);
        for stack in self.placed.drain(..) {
            self.places[stack.index()] = None;
        }
    }

    /// Adds up the samples of each stack. Returns these stacks in the order of their ids: stacks
    /// with common callers are mostly close in memory.
    fn weigh(&mut self, samples: &[u32]) -> Vec<StackId> {
        let all = &self.symbolized.profile().samples;
        let mut stacks = Vec::new();
        for &position in samples {
            let sample = all.at(position as usize);
            let weight = &mut self.weights[sample.stack.index()];
            if *weight == Weight::default() {
                stacks.push(sample.stack);
            }
            *weight += Weight::of(&sample);
            self.squares[sample.stack.index()] += sample.squares();
            if sample.remote_read > 0 {
                let key = (sample.stack, sample.remote_read);
                *self.remote_read.entry(key).or_default() += 1;
            }
        }
        stacks.sort_unstable();
        stacks
    }

    /// Whether stacks that are there are in the tree.
    fn accepts(&self, place: StackPosition) -> bool {
        place.shown && self.selection.accepts(place.seen)
    }

    /// The node of a stack in the tree. Each distinct stack is walked once.
    fn place(&mut self, root: NodeId, stack: StackId) -> StackPosition {
        let mut place = StackPosition {
            node: root,
            seen: Seen::default(),
            shown: false,
        };
        let mut next = Some(stack);
        while let Some(id) = next {
            if let Some(known) = self.places[id.index()] {
                place = known;
                break;
            }
            self.pending.push(id);
            next = self.symbolized.prefix(id);
        }
        while let Some(id) = self.pending.pop() {
            place = self.call(place, id);
            self.places[id.index()] = Some(place);
            self.placed.push(id);
        }
        place
    }

    /// Goes on from `place` into the innermost frame of a stack.
    fn call(&mut self, mut place: StackPosition, stack: StackId) -> StackPosition {
        let symbolized = self.symbolized;
        let frame = symbolized.profile().stacks.frame(stack);
        for location in symbolized.locations(frame).iter().rev() {
            place.seen = self.selection.see(place.seen, location.function);
            if self.selection.shows(location) {
                let label = Label::Function(location.function);
                place.node = self.nodes.child(place.node, label, location.inlined);
                place.shown = true;
            }
        }
        place
    }
}
