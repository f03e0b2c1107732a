//! A call tree as an indented outline.

use std::io::{self, Write};

use crate::calltree::{CallTree, NodeId};
use crate::profile::Weight;
use crate::view::outline::{Item, Outline, OutlineLine};

use super::table::{caption, columns, shorten};
use crate::format::number::{Scale, grouped, percent};

/// Writes `outline`, a view of `tree`: a caption, a header, and a line for each call. If a function
/// has only one significant callee, this is written below it on the same level. `width` is the
/// terminal's, `None` in pipes.
///
/// The columns, separated by two spaces: share with all callees in percent, weight with all
/// callees, own weight, function.
///
/// # Errors
/// Those of `out`.
pub fn write(
    tree: &CallTree<'_>,
    outline: &Outline,
    width: Option<usize>,
    mut out: impl Write,
) -> io::Result<()> {
    let scale = Scale::new(&tree.event().unit, tree.total());
    writeln!(out, "{}\n", caption(tree, NodeId::ROOT, &scale))?;
    let layout = TreeColumns::new(tree, &scale, width);
    layout.header(&mut out)?;
    for line in &outline.lines {
        layout.line(&mut out, line)?;
    }
    Ok(())
}

struct TreeColumns<'a> {
    tree: &'a CallTree<'a>,
    scale: &'a Scale<'a>,
    titles: [String; 3],
    weight: usize,
    width: Option<usize>,
}

impl<'a> TreeColumns<'a> {
    fn new(tree: &'a CallTree<'a>, scale: &'a Scale<'a>, width: Option<usize>) -> Self {
        let unit = scale.unit();
        let titles = [
            "Total %".into(),
            format!("Total {unit}"),
            format!("Self {unit}"),
        ];
        let widest = columns(&scale.number(tree.total()));
        Self {
            weight: widest.max(columns(&titles[1])),
            tree,
            scale,
            titles,
            width,
        }
    }

    fn header(&self, out: &mut impl Write) -> io::Result<()> {
        let [share, total, own] = &self.titles;
        let numbers = self.numbers([share, total, own]);
        writeln!(out, "{numbers}Function")
    }

    /// The columns before a function. A tree of callers has none of functions' own weights.
    fn numbers(&self, [share, total, own]: [&str; 3]) -> String {
        let weight = self.weight;
        match self.tree.is_upside_down() {
            true => format!("{share:>7}  {total:>weight$}  "),
            false => format!("{share:>7}  {total:>weight$}  {own:>weight$}  "),
        }
    }

    fn line(&self, out: &mut impl Write, line: &OutlineLine) -> io::Result<()> {
        let (total, own, name) = match line.item {
            Item::Call(call) => {
                let name = self.tree.name(call.node);
                let name = match call.depth {
                    1 => name.to_owned(),
                    depth => format!("{name} ({} calls deep)", grouped(depth as u64)),
                };
                let own = self.scale.number(call.own);
                (self.tree[call.node].total, own, name)
            }
            Item::Rest { count, total } => (
                total,
                String::new(),
                format!("… {} more", grouped(count as u64)),
            ),
        };
        let numbers = self.numbers([&self.share(total), &self.scale.number(total), &own]);
        let indentation = indentation(line);
        let used = columns(&numbers) + columns(&indentation);
        let name = match self.width {
            Some(width) => shorten(&name, width.saturating_sub(used).max(12)),
            None => name,
        };
        writeln!(out, "{numbers}{indentation}{name}")
    }

    fn share(&self, weight: Weight) -> String {
        percent(weight.share_of(self.tree.total()))
    }
}

/// Lines that lead from callers to this call.
fn indentation(line: &OutlineLine) -> String {
    let Some((last, outer)) = line.levels.split_last() else {
        return String::new();
    };
    let mut text: String = outer
        .iter()
        .map(|&more| if more { "│ " } else { "  " })
        .collect();
    text.push_str(match (line.branch, last) {
        (true, true) => "├ ",
        (true, false) => "└ ",
        (false, true) => "│ ",
        (false, false) => "  ",
    });
    text
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
        write(&tree, &Outline::new(&tree, 2.5), None, &mut text).unwrap();
        check_golden("tree.txt", &text);
    }
}
