//! The flame graph: an SVG to zoom and search in.

use std::collections::BTreeSet;
use std::io::{self, Write};

use inferno::flamegraph::color::PaletteMap;
use inferno::flamegraph::{Direction, FuncFrameAttrsMap, Options};

use crate::calltree::{CallTree, Label, Node, NodeId};
use crate::symbolized::{FunctionKind, SymbolizedProfile};

use super::folded;
use super::palette::{Manner, Palette};
use super::table::{columns, shorten};

pub use super::palette::PaletteBy;

/// How a flame graph looks.
#[derive(Clone, Debug)]
pub struct FlameOptions {
    /// The headline.
    pub title: String,
    /// The line below it; unless given, the command, what was counted and what the marks mean.
    pub subtitle: Option<String>,
    /// What the hue of a function tells.
    pub palette: PaletteBy,
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
            palette: PaletteBy::default(),
            width: None,
            inverted: false,
            reversed: false,
            min_percent: 0.01,
        }
    }
}

/// Draws `tree`. The same tree gives the same bytes, and a function the same colour in every
/// graph: orange for the kernel, green for code made at run time, brown for Rust, yellow for C++,
/// red for C, grey for what has no name or is missing; or a hue for each module. Inlined functions
/// are paler, and frames that were read back after most of their samples dull and in italics.
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
    let marks = Marks::of(tree);
    let mut colors = colors(tree, options.palette);
    let mut drawing = options.drawing();
    drawing.palette_map = Some(&mut colors);
    drawing.func_frameattrs = italics(tree)?;
    drawing.subtitle = Some(options.subtitle.clone().unwrap_or_else(|| {
        let length = options.subtitle_length();
        subtitle(tree, &marks.legend(options.palette), length)
    }));
    drawing.count_name = tree.event().unit.name().to_owned();
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().map(String::as_str), out)
}

impl FlameOptions {
    /// What is the same for graphs and charts.
    pub(super) fn drawing(&self) -> Options<'_> {
        let mut drawing = Options::default();
        drawing.deterministic = true;
        drawing.title = self.title.clone();
        drawing.image_width = self.width;
        drawing.min_width = self.min_percent;
        if self.inverted {
            drawing.direction = Direction::Inverted;
        }
        drawing
    }

    /// How many characters of a subtitle fit into the picture.
    pub(super) fn subtitle_length(&self) -> usize {
        /// inferno's, unless told otherwise: pixels of the picture and of a character.
        const WIDTH: usize = 1200;
        const CHARACTER: f64 = 7.5;
        (self.width.unwrap_or(WIDTH) as f64 / CHARACTER) as usize
    }
}

/// What was run, what was counted, how much of it, and what the marks mean, in a line of about so
/// many characters.
fn subtitle(tree: &CallTree<'_>, legend: &str, length: usize) -> String {
    let event = &tree.event().name;
    let samples = super::number::grouped(tree.total().samples);
    let counted = format!("{samples} samples of {event}");
    described(tree.symbolized(), &counted, legend, length)
}

/// The command, what was counted, and a legend; the command is shortened first.
pub(super) fn described(
    symbolized: &SymbolizedProfile,
    counted: &str,
    legend: &str,
    length: usize,
) -> String {
    const SHORTEST: usize = 24;
    let mut text = match legend {
        "" => counted.to_owned(),
        legend => format!("{counted} — {legend}"),
    };
    let command = symbolized.profile().header.command_line.join(" ");
    if !command.is_empty() {
        let left = length.saturating_sub(columns(&text) + 3).max(SHORTEST);
        text = format!("{} — {text}", shorten(&command, left));
    }
    text
}

/// Which marks there are in a graph.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Marks {
    pub(super) kernel: bool,
    pub(super) jit: bool,
    pub(super) inlined: bool,
    pub(super) read_back: bool,
    pub(super) missing: bool,
}

impl Marks {
    fn of(tree: &CallTree<'_>) -> Self {
        let mut marks = Self::default();
        for (_, node) in tree.nodes().filter(|(_, node)| node.total.samples > 0) {
            if let Label::Function(function) = node.label {
                marks.add(tree.symbolized()[function].kind, node.inlined);
                marks.read_back |= node.is_read_back();
            }
        }
        marks
    }

    pub(super) fn add(&mut self, kind: FunctionKind, inlined: bool) {
        self.inlined |= inlined;
        match kind {
            FunctionKind::Kernel => self.kernel = true,
            FunctionKind::Jit => self.jit = true,
            FunctionKind::Missing => self.missing = true,
            FunctionKind::User | FunctionKind::State => {}
        }
    }

    /// What those that there are mean.
    pub(super) fn legend(self, palette: PaletteBy) -> String {
        let by_language = palette == PaletteBy::Language;
        let all = [
            (!by_language, "a hue for each module"),
            (self.kernel, "orange: kernel"),
            (self.jit && by_language, "green: run-time code"),
            (self.inlined, "pale: inlined"),
            (self.read_back, "dull italics: read back later"),
            (self.missing, "grey: missing"),
        ];
        let there = all.into_iter().filter(|(is_there, _)| *is_there);
        there.map(|(_, text)| text).collect::<Vec<_>>().join(", ")
    }
}

/// A node's name as inferno gets to know it.
fn marked(tree: &CallTree<'_>, id: NodeId) -> String {
    let name = folded::plain(tree.name(id), false);
    format!("{name}{}", mark(tree, &tree[id]))
}

fn colors(tree: &CallTree<'_>, by: PaletteBy) -> PaletteMap {
    let palette = Palette::new(tree.symbolized(), by);
    let mut colors = PaletteMap::default();
    // What inferno calls the frame of everything.
    colors.insert("", Palette::part());
    for (id, node) in tree.nodes() {
        let color = match node.label {
            Label::Function(function) => {
                let manner = Manner {
                    inlined: node.inlined,
                    read_back: node.is_read_back(),
                };
                palette.function(function, manner)
            }
            Label::All | Label::Part(_) => Palette::part(),
        };
        colors.insert(marked(tree, id), color);
    }
    colors
}

/// Attributes of the frames that were read back, in inferno's syntax.
fn italics(tree: &CallTree<'_>) -> io::Result<FuncFrameAttrsMap> {
    let nodes = tree.nodes().filter(|(_, node)| node.is_read_back());
    let functions = nodes.filter(|(_, node)| matches!(node.label, Label::Function(_)));
    let names: BTreeSet<String> = functions.map(|(id, _)| marked(tree, id)).collect();
    let line = |name| format!("{name}\tg_extra=font-style=\"italic\"\n");
    let lines: String = names.into_iter().map(line).collect();
    FuncFrameAttrsMap::from_reader(lines.as_bytes())
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

/// The ending that keeps functions of one name but different kinds apart; inferno does not show it,
/// and knows no others than these.
fn mark(tree: &CallTree<'_>, node: &Node) -> &'static str {
    let Label::Function(function) = node.label else {
        return "";
    };
    match tree.symbolized()[function].kind {
        FunctionKind::Kernel => "_[k]",
        _ if node.is_read_back() && !node.inlined => "_[w]",
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
    fn what_was_read_back_is_marked() {
        let mut test = TestProfile::new();
        test.line("a start;main 1");
        test.read_back = 2;
        test.line("a start;main;deep;k:deeper 5");
        test.line("a start;main;deep+inlined 5");
        let symbolized = test.finish();
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let marked = |tree: &CallTree<'_>| -> BTreeSet<String> {
            let nodes = tree.nodes().filter(|(_, node)| node.is_read_back());
            let functions = nodes.filter(|(_, node)| matches!(node.label, Label::Function(_)));
            functions.map(|(id, _)| tree.name(id).to_owned()).collect()
        };
        let expected = ["main", "start"].map(String::from).into();
        assert_eq!(marked(&tree), expected);
        assert_eq!(marked(&tree.inverted()), expected);
        let mut svg = Vec::new();
        write(&tree, &FlameOptions::default(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let italic = |name| svg.contains(&format!("<g font-style=\"italic\"><title>{name} ("));
        assert_eq!(["main", "deep", "a"].map(italic), [true, false, false]);
        let legend = "orange: kernel, pale: inlined, dull italics: read back later";
        assert!(svg.contains(legend), "{svg}");
        assert!(!svg.contains("grey: missing"), "{svg}");
    }

    #[test]
    fn the_subtitle_fits_the_picture() {
        let symbolized = demo();
        let check = |length, expected: &str| {
            assert_eq!(
                described(&symbolized, "9 samples", "pale: x", length),
                expected
            );
        };
        check(100, "prof record -- demo — 9 samples — pale: x");
        check(10, "prof record -- demo — 9 samples — pale: x");
        let mut test = TestProfile::new();
        test.line("a b 1");
        test.profile.header.command_line = vec!["long".repeat(50)];
        let symbolized = test.finish();
        let text = described(&symbolized, "9 samples", "pale: x", 60);
        assert_eq!(columns(&text), 60, "{text}");
        assert!(text.ends_with("long — 9 samples — pale: x"), "{text}");
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
