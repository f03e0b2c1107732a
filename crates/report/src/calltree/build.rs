//! From samples to the tree.

mod read_back;

use rustc_hash::FxHashMap;

use super::nodes::Nodes;
use super::{CallTree, Label, NodeId, Split};
use crate::parts::Parts;
use crate::profile::{Sample, StackId, Weight};
use crate::selection::{Seen, Selection};
use crate::symbolized::SymbolizedProfile;

pub(super) fn build<'p>(
    symbolized: &'p SymbolizedProfile,
    selection: &Selection<'_>,
    split: Split,
) -> CallTree<'p> {
    let mut builder = Builder::new(symbolized, selection, split);
    for sample in symbolized.profile().samples.iter() {
        if selection.has(&sample) {
            builder.push(&sample);
        }
    }
    read_back::mark(&mut builder);
    builder
        .nodes
        .finish(symbolized, selection.event(), builder.parts.into_names())
}

struct Builder<'a, 'p> {
    symbolized: &'p SymbolizedProfile,
    selection: &'a Selection<'a>,
    split: Split,
    nodes: Nodes,
    parts: Parts<'p>,
    /// Where a stack is in the tree, below a part.
    places: FxHashMap<(NodeId, StackId), Place>,
    /// The stacks that are on the way into `places`; kept to save allocations.
    pending: Vec<StackId>,
    /// How many samples have a stack, below a part, of which so many of the outermost frames were
    /// read back.
    read_back: FxHashMap<(NodeId, StackId, u16), u64>,
}

#[derive(Clone, Copy)]
struct Place {
    node: NodeId,
    seen: Seen,
    /// Whether anything of the stack is shown.
    shown: bool,
}

impl<'a, 'p> Builder<'a, 'p> {
    fn new(symbolized: &'p SymbolizedProfile, selection: &'a Selection<'a>, split: Split) -> Self {
        Self {
            symbolized,
            selection,
            split,
            nodes: Nodes::default(),
            parts: Parts::new(symbolized.profile(), selection.filter(), split),
            places: FxHashMap::default(),
            pending: Vec::new(),
            read_back: FxHashMap::default(),
        }
    }

    fn push(&mut self, sample: &Sample) {
        let part = self.part(sample);
        let place = self.place(part, sample.stack);
        if place.shown && self.selection.takes(place.seen) {
            self.nodes.add(place.node, Weight::of(sample));
            if sample.read_back > 0 {
                let key = (part, sample.stack, sample.read_back);
                *self.read_back.entry(key).or_default() += 1;
            }
        }
    }

    /// The node that a sample's stack starts from.
    fn part(&mut self, sample: &Sample) -> NodeId {
        if self.split == Split::Nothing {
            return NodeId::ROOT;
        }
        let part = Label::Part(self.parts.number(sample));
        self.nodes.child(NodeId::ROOT, part, false)
    }

    /// Where a stack is in the tree. Each distinct stack is walked once.
    fn place(&mut self, part: NodeId, stack: StackId) -> Place {
        let mut place = Place {
            node: part,
            seen: Seen::default(),
            shown: false,
        };
        let mut next = Some(stack);
        while let Some(id) = next {
            if let Some(&known) = self.places.get(&(part, id)) {
                place = known;
                break;
            }
            self.pending.push(id);
            next = self.symbolized.prefix(id);
        }
        while let Some(id) = self.pending.pop() {
            place = self.call(place, id);
            self.places.insert((part, id), place);
        }
        place
    }

    /// Goes on from `place` into the innermost frame of a stack.
    fn call(&mut self, mut place: Place, stack: StackId) -> Place {
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
