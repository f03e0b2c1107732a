//! Folded stacks: `root;caller;callee weight`, one line for each distinct stack.
//!
//! The format that `stackcollapse-perf.pl` writes and `flamegraph.pl`, inferno, speedscope and many
//! others read. Frames are separated by `;`, the last number of a line is the weight; so names are
//! written as `encoded` has them.

use std::borrow::Cow;
use std::io::{self, Write};

use prof_model::printable;

use crate::calltree::{CallTree, Label, NodeId};
use crate::folded_name::encoded;

/// Writes all stacks of `tree`, sorted by name, with their weights in the event's unit.
///
/// # Errors
/// Those of `out`.
pub fn write(tree: &CallTree<'_>, mut out: impl Write) -> io::Result<()> {
    let mut lines: Vec<String> = tree
        .nodes()
        .filter(|(_, node)| node.own.samples > 0)
        .map(|(id, node)| format!("{} {}", names(tree, id), node.own.value))
        .collect();
    lines.sort_unstable();
    lines.iter().try_for_each(|line| writeln!(out, "{line}"))
}

/// The names of a stack as other tools, and we, read them.
fn names(tree: &CallTree<'_>, leaf: NodeId) -> String {
    let names = tree.path(leaf).into_iter().map(|id| {
        let is_function = matches!(tree[id].label, Label::Function(_));
        encoded(&named(tree.name(id)), is_function).into_owned()
    });
    names.collect::<Vec<_>>().join(";")
}

fn named(name: &str) -> Cow<'_, str> {
    match name {
        "" => Cow::Borrowed("[no name]"),
        name => printable(name),
    }
}

/// One line, for pictures, which show no characters for others; `name` names each node, and the
/// last one so that it does not end in a number.
pub(in crate::format) fn line(
    tree: &CallTree<'_>,
    leaf: NodeId,
    weight: u64,
    name: impl Fn(NodeId, bool) -> String,
) -> String {
    use std::fmt::Write as _;
    let mut line = joined(tree, leaf, name);
    // Writing to a `String` cannot fail.
    let _ = write!(line, " {weight}");
    line
}

/// The names of a stack without a weight.
pub(in crate::format) fn stack(tree: &CallTree<'_>, leaf: NodeId) -> String {
    joined(tree, leaf, |id, last| plain(tree.name(id), last).into())
}

fn joined(tree: &CallTree<'_>, leaf: NodeId, name: impl Fn(NodeId, bool) -> String) -> String {
    let mut line = String::new();
    let path = tree.path(leaf);
    for (index, &id) in path.iter().enumerate() {
        if index > 0 {
            line.push(';');
        }
        line.push_str(&name(id, index + 1 == path.len()));
    }
    line
}

/// The name without `;` and line breaks, which would end it. Readers take two numbers at the end of
/// a line for a comparison, so the last name must not end in one.
pub(in crate::format) fn plain(name: &str, last: bool) -> Cow<'_, str> {
    let mut name = named(name);
    if name.contains(';') {
        name = Cow::Owned(name.replace(';', ":"));
    }
    let is_number = |word: &str| word.chars().all(|c| c.is_ascii_digit() || c == '.');
    if let Some((start, word)) = name
        .rsplit_once(' ')
        .filter(|(_, word)| last && is_number(word))
    {
        name = Cow::Owned(format!("{start}_{word}"));
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{check_golden, demo, everything};

    #[test]
    fn golden() {
        let symbolized = demo();
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let mut text = Vec::new();
        write(&tree, &mut text).unwrap();
        check_golden("stacks.folded", &text);
    }

    #[test]
    fn names_keep_the_syntax_intact() {
        let check = |name, last, expected: &str| assert_eq!(plain(name, last), expected);
        check("[u8; 4]", true, "[u8: 4]");
        check("worker 12", false, "worker 12");
        check("worker 12", true, "worker_12");
        check("a\nb", true, "a\\nb");
        check("", true, "[no name]");
        check(
            "operator new(unsigned long)",
            true,
            "operator new(unsigned long)",
        );
    }
}
