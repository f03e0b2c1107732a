//! Functions and call trees.

use std::io::{self, Write};

use serde::Serialize;

use super::{Document, Event, Weight};
use crate::calltree::{CallTree, Label, NodeId};
use crate::symbolize::{Language, Languages};
use crate::view::flat::Flat;

/// The view of a call tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallView {
    /// All calls, from the outermost functions inwards.
    #[default]
    Calls,
    /// The callers of some functions: outwards from these.
    Callers,
    /// The callees of some functions: inwards from these.
    Callees,
}

impl CallView {
    fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::Callers => "callers",
            Self::Callees => "callees",
        }
    }
}

/// Writes `tree`, which shows `view`, and the functions in it.
///
/// # Errors
/// Those of `out`.
pub fn calls(tree: &CallTree<'_>, view: CallView, out: impl Write) -> io::Result<()> {
    let flat = Flat::new(tree);
    let body = Calls {
        event: tree.event().into(),
        total: tree.total().into(),
        functions: functions(tree, &flat),
        tree: nodes(tree, &flat),
    };
    Document::write(tree.symbolized(), view.name(), body, out)
}

#[derive(Serialize)]
struct Calls<'a> {
    event: Event<'a>,
    total: Weight,
    functions: Vec<Function<'a>>,
    tree: Vec<Node<'a>>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    kind: &'static str,
    language: Option<&'static str>,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
}

#[derive(Serialize)]
struct Node<'a> {
    parent: Option<usize>,
    /// Index in `functions`, for calls of a function.
    #[serde(skip_serializing_if = "Option::is_none")]
    function: Option<usize>,
    /// For the root and for the groups of a split.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    inlined: bool,
    remote_read: u64,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
}

fn functions<'a>(tree: &CallTree<'a>, flat: &Flat) -> Vec<Function<'a>> {
    let languages = Languages::of(tree.symbolized());
    let rows = flat.rows.iter().map(|row| {
        let function = &tree.symbolized()[row.function];
        Function {
            name: &function.name,
            module: &function.module,
            kind: function.kind.name(),
            language: languages.get(row.function).map(Language::name),
            own: row.own.into(),
            total: row.total.into(),
        }
    });
    rows.collect()
}

/// The nodes with samples, each after its parent, the children of one node heaviest first.
fn nodes<'a>(tree: &'a CallTree<'a>, flat: &Flat) -> Vec<Node<'a>> {
    let mut positions = vec![None; tree.symbolized().functions().len()];
    for (position, row) in flat.rows.iter().enumerate() {
        positions[row.function.index()] = Some(position);
    }
    let mut nodes: Vec<Node<'a>> = Vec::new();
    let mut pending = vec![(None, NodeId::ROOT)];
    while let Some((parent, id)) = pending.pop() {
        let node = &tree[id];
        let (function, name) = match node.label {
            Label::Function(function) => (positions[function.index()], None),
            _ => (None, Some(tree.name(id))),
        };
        let index = nodes.len();
        nodes.push(Node {
            parent,
            function,
            name,
            inlined: node.inlined,
            remote_read: node.remote_read,
            own: node.own.into(),
            total: node.total.into(),
        });
        let children = tree.children(id).iter().rev();
        pending.extend(children.map(|&child| (Some(index), child)));
    }
    nodes
}
