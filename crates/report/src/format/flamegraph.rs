//! The flame graph: an SVG to zoom and search in.

use std::io::{self, Write};

use inferno::flamegraph::{Direction, Options};

use crate::calltree::{CallTree, Label, Node, NodeId};
use crate::symbolized::FunctionKind;

use super::folded;
use super::palette::palette;

/// How a flame graph looks.
#[derive(Clone, Debug)]
pub struct FlameOptions {
    /// The headline.
    pub title: String,
    /// The line below it; [`subtitle`] unless given.
    pub subtitle: Option<String>,
    /// Width in pixels; as wide as the window unless given.
    pub width: Option<usize>,
    /// Whether the root is at the top.
    pub inverted: bool,
    /// Whether to merge from the innermost function outwards: who calls what is hot.
    pub reversed: bool,
    /// Leave out frames narrower than so many percent of the whole.
    pub min_percent: f64,
}

impl Default for FlameOptions {
    fn default() -> Self {
        Self {
            title: "Flame Graph".into(),
            subtitle: None,
            width: None,
            inverted: false,
            reversed: false,
            min_percent: 0.01,
        }
    }
}

/// Draws `tree`. The same tree gives the same bytes, and a function the same colour in every
/// graph: orange for the kernel, green for code made at run time, brown for Rust, yellow for C++,
/// red for C, grey for what has no name or is missing. Inlined functions are paler.
///
/// # Errors
/// Those of `out`.
pub fn write(tree: &CallTree<'_>, options: &FlameOptions, out: impl Write) -> io::Result<()> {
    if options.reversed {
        draw(&tree.inverted(), options, out)
    } else {
        draw(tree, options, out)
    }
}

fn draw(tree: &CallTree<'_>, options: &FlameOptions, out: impl Write) -> io::Result<()> {
    let lines = lines(tree, options);
    let mut palette = palette(tree, |id| {
        let name = folded::plain(tree.name(id), false);
        format!("{name}{}", mark(tree, &tree[id]))
    });
    let mut drawing = Options::default();
    drawing.palette_map = Some(&mut palette);
    drawing.deterministic = true;
    drawing.title = options.title.clone();
    drawing.subtitle = Some(options.subtitle.clone().unwrap_or_else(|| subtitle(tree)));
    drawing.image_width = options.width;
    drawing.count_name = tree.event().unit.name().to_owned();
    drawing.min_width = options.min_percent;
    if options.inverted {
        drawing.direction = Direction::Inverted;
    }
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().map(String::as_str), out)
}

/// What was run, what was counted, and how much of it, in a line that fits the picture.
pub fn subtitle(tree: &CallTree<'_>) -> String {
    const COMMAND_LENGTH: usize = 80;
    let event = &tree.event().name;
    let samples = super::number::grouped(tree.total().samples);
    let counted = format!("{samples} samples of {event}");
    match tree.symbolized().profile().header.command_line.as_slice() {
        [] => counted,
        command => {
            let command = super::table::shorten(&command.join(" "), COMMAND_LENGTH);
            format!("{command} — {counted}")
        }
    }
}

/// The stacks as folded lines. Frames too narrow to be drawn are given to their callers, which
/// draws the same graph from far fewer lines.
fn lines(tree: &CallTree<'_>, options: &FlameOptions) -> Vec<String> {
    let narrow = options.min_percent / 100.0;
    let is_drawn = |id: NodeId| {
        tree[id].parent == NodeId::ROOT || tree[id].total.share_of(tree.total()) >= narrow
    };
    let mut lines = Vec::new();
    let mut pending = vec![NodeId::ROOT];
    while let Some(id) = pending.pop() {
        let (drawn, narrow): (Vec<_>, Vec<_>) =
            tree.children(id).iter().partition(|&&id| is_drawn(id));
        let rest = narrow.iter().map(|&id| tree[id].total.value);
        let weight = tree[id].own.value + rest.sum::<u64>();
        if weight > 0 && id != NodeId::ROOT {
            lines.push(folded::line(tree, id, weight, mark));
        }
        pending.extend(drawn);
    }
    lines.sort_unstable();
    lines
}

/// The ending that keeps functions of one name but different kinds apart; it is not shown.
fn mark(tree: &CallTree<'_>, node: &Node) -> &'static str {
    let Label::Function(function) = node.label else {
        return "";
    };
    match tree.symbolized()[function].kind {
        FunctionKind::Kernel => "_[k]",
        FunctionKind::Jit => "_[j]",
        _ if node.inlined => "_[i]",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{TestProfile, check_golden, demo, everything};

    fn draw(options: &FlameOptions) -> String {
        let symbolized = demo();
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let mut svg = Vec::new();
        write(&tree, options, &mut svg).unwrap();
        String::from_utf8(svg).unwrap()
    }

    #[test]
    fn golden() {
        let options = FlameOptions {
            width: Some(800),
            ..FlameOptions::default()
        };
        let svg = draw(&options);
        // The script and the style are inferno's; what is drawn is ours.
        let frames = svg.split("<svg id=\"frames\"").nth(1).unwrap();
        check_golden("frames.svg", frames.replace("<g>", "\n<g>").as_bytes());
        assert_eq!(svg, draw(&options), "drawn twice");
    }

    #[test]
    fn title_subtitle_unit_and_search_are_there() {
        let svg = draw(&FlameOptions {
            title: "Mine".into(),
            ..FlameOptions::default()
        });
        for text in [
            "Mine",
            "prof record -- demo — 9 samples of cpu-clock",
            " ns, ",
            "search",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn narrow_frames_are_left_to_their_callers() {
        let symbolized = TestProfile::of(&["a main;wide;b 9999", "a main;narrow;c 1"]);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let options = FlameOptions {
            min_percent: 1.0,
            ..FlameOptions::default()
        };
        let expected = ["a;main 1000000", "a;main;wide;b 9999000000"];
        assert_eq!(lines(&tree, &options), expected);
    }
}
