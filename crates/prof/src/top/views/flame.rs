//! The flamegraph: callers above their callees, widths by weight.

use prof_model::counted;
use ratatui::crossterm::event::KeyCode;
use ratatui::layout::Rect;

use super::Canvas;
use crate::top::app::App;
use crate::top::picture::{Tree, percent};

/// A call that is wide enough to be seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Frame {
    node: usize,
    row: usize,
    x: u16,
    width: u16,
}

/// The frames of all rows, one row after the other, from left to right.
fn frames(tree: &Tree, root: usize, width: u16) -> Vec<Frame> {
    let all = tree.nodes[root].total;
    let column = |weight: u64| match all {
        0 => 0,
        all => (u128::from(weight) * u128::from(width) / u128::from(all)) as u16,
    };
    let mut frames = Vec::new();
    // The node, and its offset in the total.
    let mut row = vec![(root, 0_u64)];
    let mut number = 0;
    while !row.is_empty() {
        let mut below = Vec::new();
        for (node, left) in row {
            let x = column(left);
            let width = column(left + tree.nodes[node].total) - x;
            if width == 0 {
                continue;
            }
            frames.push(Frame {
                node,
                row: number,
                x,
                width,
            });
            let mut left = left;
            for &child in &tree.nodes[node].children {
                below.push((child, left));
                left += tree.nodes[child].total;
            }
        }
        row = below;
        number += 1;
    }
    frames
}

/// Whether a call can be seen without zooming.
pub(in crate::top) fn is_wide_enough(app: &App, tree: &Tree, node: usize) -> bool {
    let frames = frames(tree, app.root(tree), app.size.0);
    frames.iter().any(|frame| frame.node == node)
}

/// Moves the selection, zooms.
pub(in crate::top) fn move_key(app: &mut App, code: KeyCode, tree: &Tree) {
    let frames = frames(tree, app.root(tree), app.size.0);
    let Some(at) = selected(app, tree, &frames) else {
        return;
    };
    let frame = frames[at];
    let id = tree.nodes[frame.node].id;
    let beside = |by: isize| {
        let neighbour = at.checked_add_signed(by)?;
        frames.get(neighbour).filter(|other| other.row == frame.row)
    };
    let to = match code {
        KeyCode::Up | KeyCode::Char('k') => {
            let parent = tree.nodes[frame.node].parent;
            frames.iter().find(|other| other.node == parent)
        }
        KeyCode::Down | KeyCode::Char('j') => {
            let below = |other: &&Frame| tree.nodes[other.node].parent == frame.node;
            frames
                .iter()
                .skip(at + 1)
                .filter(below)
                .max_by_key(|other| other.width)
        }
        KeyCode::Left => beside(-1),
        KeyCode::Right => beside(1),
        KeyCode::Home => frames.first(),
        KeyCode::Enter => {
            if app.root(tree) != frame.node {
                app.zoom.push(id);
            }
            None
        }
        KeyCode::Backspace => {
            app.zoom.pop();
            None
        }
        _ => None,
    };
    app.call = to.map_or(id, |to| tree.nodes[to.node].id);
}

/// The selected frame: that of the selected call, or of the next one outwards that has one.
fn selected(app: &App, tree: &Tree, frames: &[Frame]) -> Option<usize> {
    let mut node = tree.find(app.call);
    loop {
        let found = frames.iter().position(|frame| frame.node == node);
        if found.is_some() || node == Tree::ROOT {
            return found.or((!frames.is_empty()).then_some(0));
        }
        node = tree.nodes[node].parent;
    }
}

pub(super) fn draw(app: &App, tree: &Tree, canvas: &mut Canvas<'_>, area: Rect) {
    let root = app.root(tree);
    let frames = frames(tree, root, area.width);
    let Some(at) = selected(app, tree, &frames) else {
        canvas.text(
            area,
            (area.x, area.y),
            " nothing was sampled here",
            canvas.look.aside(),
        );
        return;
    };
    let chosen = frames[at];
    let title = title(app, tree, chosen.node);
    let style = canvas.look.title();
    canvas.text(area, (area.x, area.y), &title, style);
    let height = usize::from(area.height.saturating_sub(1));
    // If it is too high, only the rows around the selected frame are drawn.
    let rows = frames.last().map_or(0, |frame| frame.row + 1);
    let first = super::first_line(chosen.row, rows, height);
    let seen = first..first + height;
    for frame in frames.iter().filter(|frame| seen.contains(&frame.row)) {
        let node = &tree.nodes[frame.node];
        let y = area.y + 1 + (frame.row - first) as u16;
        let style = canvas.look.flame(&node.name, node.kind);
        let style = match app.is_found(&node.name) && frame.node != Tree::ROOT {
            true => canvas.look.found(style),
            false => style,
        };
        let style = match *frame == chosen {
            true => canvas.look.selected(style),
            false => style,
        };
        let cell = Rect {
            x: area.x + frame.x,
            y,
            width: frame.width,
            height: 1,
        };
        canvas.out.set_style(cell, style);
        let bar = canvas.look.glyph("▏", "|");
        let x = canvas.text(cell, (cell.x, y), bar, style);
        canvas.text(cell, (x, y), &node.name, style);
    }
}

/// The selection and the matches of the search.
fn title(app: &App, tree: &Tree, chosen: usize) -> String {
    let node = &tree.nodes[chosen];
    let all = tree.nodes[Tree::ROOT].total;
    let share = percent(node.total, all);
    let mut title = format!("{share:.2}% {}", node.name);
    if !node.module.is_empty() {
        title += &format!(" ({})", node.module);
    }
    if app.search.is_some() {
        let (calls, weight) = found(app, tree);
        let share = percent(weight, all);
        title = format!("{} found: {share:.2}%  {title}", counted(calls, "call"));
    }
    title
}

/// The number of calls that match the search, and their weight: of nested matches, only the
/// outermost counts.
fn found(app: &App, tree: &Tree) -> (u64, u64) {
    let mut calls = 0;
    let mut weight = 0_u64;
    let mut pending = vec![(Tree::ROOT, false)];
    while let Some((at, within)) = pending.pop() {
        let node = &tree.nodes[at];
        let is_found = at != Tree::ROOT && app.is_found(&node.name);
        calls += u64::from(is_found);
        if is_found && !within {
            weight = weight.saturating_add(node.total);
        }
        let below = node.children.iter();
        pending.extend(below.map(|&child| (child, within || is_found)));
    }
    (calls, weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::top::testing::tree;

    /// Writes frames as `name@row x+width`.
    #[test]
    fn frames_are_as_wide_as_they_weigh() {
        let tree = tree(&["main;a;b 30", "main;a 20", "main;c 49", "main;thin 1"]);
        let frames = frames(&tree, Tree::ROOT, 20);
        let shown = frames.iter().map(|frame| {
            let name = &tree.nodes[frame.node].name;
            format!("{name}@{} {}+{}", frame.row, frame.x, frame.width)
        });
        let shown: Vec<String> = shown.collect();
        assert_eq!(
            shown,
            [
                "all@0 0+20",
                "main@1 0+20",
                "a@2 0+10",
                "c@2 10+9",
                "thin@2 19+1",
                "b@3 0+6"
            ]
        );
    }

    #[test]
    fn calls_within_found_ones_count_once() {
        let tree = tree(&["main;f;g;f 30", "main;f 20", "main;c 50"]);
        let app = App {
            search: "^f$".parse().ok(),
            ..App::default()
        };
        assert_eq!(found(&app, &tree), (2, 50));
    }
}
