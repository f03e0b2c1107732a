//! From samples to the tree.

use rustc_hash::FxHashMap;

use super::nodes::Nodes;
use super::{CallTree, Label, NodeId, Split};
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
    builder
        .nodes
        .finish(symbolized, selection.event(), builder.parts)
}

struct Builder<'a, 'p> {
    symbolized: &'p SymbolizedProfile,
    selection: &'a Selection<'a>,
    split: Split,
    nodes: Nodes,
    parts: Vec<String>,
    part_ids: FxHashMap<(i64, i64), NodeId>,
    /// Where a stack is in the tree, below a part.
    places: FxHashMap<(NodeId, StackId), Place>,
    /// The stacks that are on the way into `places`; kept to save allocations.
    pending: Vec<StackId>,
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
            parts: Vec::new(),
            part_ids: FxHashMap::default(),
            places: FxHashMap::default(),
            pending: Vec::new(),
        }
    }

    fn push(&mut self, sample: &Sample) {
        let part = self.part(sample);
        let place = self.place(part, sample.stack);
        if place.shown && self.selection.takes(place.seen) {
            self.nodes.add(place.node, Weight::of(sample));
        }
    }

    /// The node that a sample's stack starts from.
    fn part(&mut self, sample: &Sample) -> NodeId {
        let key = match self.split {
            Split::Nothing => return NodeId::ROOT,
            Split::Name => (sample.name.index() as i64, 0),
            Split::Thread => (sample.pid.into(), sample.tid.into()),
            Split::Process => (sample.pid.into(), 0),
            Split::Cpu => (sample.cpu.map_or(-1, i64::from), 0),
        };
        if let Some(&id) = self.part_ids.get(&key) {
            return id;
        }
        let name = &self.symbolized.profile().names[sample.name];
        self.parts.push(match self.split {
            Split::Nothing | Split::Name => name.to_owned(),
            Split::Thread => format!("{name} {}/{}", sample.pid, sample.tid),
            Split::Process => format!("{name} {}", sample.pid),
            Split::Cpu => match sample.cpu {
                Some(cpu) => format!("CPU {cpu}"),
                None => "CPU unknown".into(),
            },
        });
        let id = self.nodes.child(
            NodeId::ROOT,
            Label::Part(self.parts.len() as u32 - 1),
            false,
        );
        self.part_ids.insert(key, id);
        id
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
