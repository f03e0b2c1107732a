//! The call tree: a line for each call, with those below it that are open.

use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::list::HEAD;
use super::{Canvas, first_line, moved};
use crate::top::app::App;
use crate::top::picture::{Tree, percent};

/// A line of the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TreeLine {
    node: usize,
    /// Its columns of indentation: an only callee is not indented further than its caller.
    indent: usize,
    /// Whether its callees are shown; `None` if there are none.
    open: Option<bool>,
}

/// Calls with a larger share are open unless the user closed them, in percent.
const OPEN: f64 = 5.0;
/// Calls with a smaller share are left out, in percent.
const LEAST: f64 = 0.1;

fn lines(app: &App, tree: &Tree) -> Vec<TreeLine> {
    let root = app.root(tree);
    let all = tree.nodes[root].total;
    let shown = |node: usize| -> Vec<usize> {
        let children = tree.nodes[node].children.iter().copied();
        let is_shown = |&child: &usize| percent(tree.nodes[child].total, all) >= LEAST;
        children.filter(is_shown).collect()
    };
    let mut lines = Vec::new();
    let mut pending: Vec<(usize, usize)> = match root {
        Tree::ROOT => shown(root)
            .into_iter()
            .rev()
            .map(|node| (node, 0))
            .collect(),
        root => vec![(root, 0)],
    };
    while let Some((node, indent)) = pending.pop() {
        let below = shown(node);
        let is_open = || {
            let toggled = app.opened.get(&tree.nodes[node].id).copied();
            toggled.unwrap_or(percent(tree.nodes[node].total, all) >= OPEN)
        };
        let open = (!below.is_empty()).then(is_open);
        lines.push(TreeLine { node, indent, open });
        if open == Some(true) {
            let indent = indent + usize::from(below.len() > 1);
            pending.extend(below.into_iter().rev().map(|node| (node, indent)));
        }
    }
    lines
}

/// Moves the selection, opens and closes, zooms.
pub(in crate::top) fn move_key(app: &mut App, code: KeyCode, tree: &Tree) {
    let lines = lines(app, tree);
    let Some(last) = lines.len().checked_sub(1) else {
        return;
    };
    let at = selected(app, tree, &lines);
    let line = lines[at];
    let id = tree.nodes[line.node].id;
    match code {
        KeyCode::Right | KeyCode::Char('l' | '+') => {
            app.opened.insert(id, true);
        }
        KeyCode::Left | KeyCode::Char('-') if line.open == Some(true) => {
            app.opened.insert(id, false);
        }
        KeyCode::Left => {
            let parent = tree.nodes[line.node].parent;
            if let Some(above) = lines.iter().find(|line| line.node == parent) {
                app.call = tree.nodes[above.node].id;
                return;
            }
        }
        KeyCode::Enter => {
            if app.zoom.last() != Some(&id) {
                app.zoom.push(id);
            }
        }
        KeyCode::Backspace => {
            app.zoom.pop();
        }
        code => {
            let to = moved(code, at, last, usize::from(app.size.1));
            app.call = tree.nodes[lines[to].node].id;
            return;
        }
    }
    app.call = id;
}

/// The selected line: that of the selected call, or of the next one outwards that has one.
fn selected(app: &App, tree: &Tree, lines: &[TreeLine]) -> usize {
    let mut node = tree.find(app.call);
    loop {
        if let Some(at) = lines.iter().position(|line| line.node == node) {
            return at;
        }
        if node == Tree::ROOT {
            return 0;
        }
        node = tree.nodes[node].parent;
    }
}

pub(super) fn draw(app: &App, tree: &Tree, canvas: &mut Canvas<'_>, area: Rect) {
    let title = format!("{:>8} {:>8}  calls", "total", "self");
    let style = canvas.look.title();
    canvas.text(area, (area.x, area.y), &title, style);
    let all = tree.nodes[Tree::ROOT].total;
    let lines = lines(app, tree);
    let selected = selected(app, tree, &lines);
    let height = usize::from(area.height.saturating_sub(HEAD));
    let first = first_line(selected, lines.len(), height);
    // In a deep stack, the outer levels are not indented, which leaves columns for names.
    let deepest = usize::from(area.width / 3);
    for (at, line) in lines.iter().enumerate().skip(first).take(height) {
        let node = &tree.nodes[line.node];
        let y = area.y + HEAD + (at - first) as u16;
        let (total, own) = (percent(node.total, all), percent(node.own, all));
        let mark = match line.open {
            Some(true) => canvas.look.glyph("▾", "-"),
            Some(false) => canvas.look.glyph("▸", "+"),
            None => " ",
        };
        let indent = " ".repeat(line.indent.min(deepest));
        let start = format!("{total:>7.2}% {own:>7.2}%  {indent}{mark} ");
        let x = canvas.text(area, (area.x, y), &start, Style::new());
        let style = canvas.look.function(node.kind);
        let style = match app.is_found(&node.name) {
            true => canvas.look.found(style),
            false => style,
        };
        canvas.text(area, (x, y), &node.name, style);
        if at == selected {
            let style = canvas.look.selected(Style::new());
            canvas.out.set_style(
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                style,
            );
        }
    }
}
