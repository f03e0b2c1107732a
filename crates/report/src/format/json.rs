//! The report as JSON: what docs/json.md describes.

use std::io::{self, Write};

use prof_model::{Fallback, Losses, Quality};
use serde::Serialize;

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Weight as Sum;
use crate::symbolized::ModuleNaming;
use crate::view::flat::Flat;

/// The version of the schema. Additions do not change it, everything else does.
pub const VERSION: u32 = 1;

/// Writes `tree`, and `flat`, which was made of it.
///
/// # Errors
/// Those of `out`.
pub fn write(tree: &CallTree<'_>, flat: &Flat, out: impl Write) -> io::Result<()> {
    super::write_json(&report(tree, flat), out)
}

#[derive(Serialize)]
struct Report<'a> {
    format: &'static str,
    version: u32,
    recording: Recording<'a>,
    event: Event<'a>,
    total: Weight,
    quality: Worth<'a>,
    modules: Vec<Module<'a>>,
    functions: Vec<Function<'a>>,
    tree: Vec<Node<'a>>,
}

#[derive(Serialize)]
struct Recording<'a> {
    command_line: &'a [String],
    hostname: Option<&'a str>,
    os_release: Option<&'a str>,
    arch: Option<&'a str>,
}

#[derive(Serialize)]
struct Event<'a> {
    name: &'a str,
    unit: &'a str,
}

#[derive(Serialize)]
struct Weight {
    value: u64,
    samples: u64,
}

/// Of the recording as a whole, whatever the filters.
#[derive(Serialize)]
struct Worth<'a> {
    samples: u64,
    user_stacks: u64,
    whole_stacks: u64,
    partial_stacks: Vec<Partial>,
    losses: &'a Losses,
    fallbacks: &'a [Fallback],
}

#[derive(Serialize)]
struct Partial {
    reason: prof_model::StackEnd,
    samples: u64,
}

#[derive(Serialize)]
struct Module<'a> {
    name: &'a str,
    samples: u64,
    addresses: usize,
    named: usize,
    problem: Option<String>,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    module: &'a str,
    kind: &'static str,
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
    /// Of the root and of the parts of a split.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    inlined: bool,
    #[serde(rename = "self")]
    own: Weight,
    total: Weight,
}

impl From<Sum> for Weight {
    fn from(Sum { value, samples }: Sum) -> Self {
        Self { value, samples }
    }
}

fn report<'a>(tree: &'a CallTree<'a>, flat: &Flat) -> Report<'a> {
    let symbolized = tree.symbolized();
    let header = &symbolized.profile().header;
    let event = tree.event();
    Report {
        format: "prof-report",
        version: VERSION,
        recording: Recording {
            command_line: &header.command_line,
            hostname: header.hostname.as_deref(),
            os_release: header.os_release.as_deref(),
            arch: header.arch.as_deref(),
        },
        event: Event {
            name: &event.name,
            unit: event.unit.name(),
        },
        total: tree.total().into(),
        quality: worth(symbolized.quality()),
        modules: symbolized.naming().iter().map(module).collect(),
        functions: functions(tree, flat),
        tree: nodes(tree, flat),
    }
}

fn worth(quality: &Quality) -> Worth<'_> {
    let partial = |(reason, samples)| Partial { reason, samples };
    Worth {
        samples: quality.samples,
        user_stacks: quality.user_stacks(),
        whole_stacks: quality.whole_stacks(),
        partial_stacks: quality.partial_stacks().into_iter().map(partial).collect(),
        losses: &quality.losses,
        fallbacks: &quality.fallbacks,
    }
}

fn module(naming: &ModuleNaming) -> Module<'_> {
    Module {
        name: &naming.module,
        samples: naming.samples,
        addresses: naming.addresses,
        named: naming.named,
        problem: (!naming.status.is_named()).then(|| naming.status.to_string()),
    }
}

fn functions<'a>(tree: &CallTree<'a>, flat: &Flat) -> Vec<Function<'a>> {
    let rows = flat.rows.iter().map(|row| {
        let function = &tree.symbolized()[row.function];
        Function {
            name: &function.name,
            module: &function.module,
            kind: function.kind.name(),
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
            own: node.own.into(),
            total: node.total.into(),
        });
        let children = tree.children(id).iter().rev();
        pending.extend(children.map(|&child| (Some(index), child)));
    }
    nodes
}
