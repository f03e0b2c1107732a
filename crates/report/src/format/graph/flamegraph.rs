//! The flame graph: an SVG to zoom and search in.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::io::{self, Write};

use inferno::flamegraph::color::{BackgroundColor, Color, PaletteMap};
use inferno::flamegraph::{Direction, FuncFrameAttrsMap, Options, TextTruncateDirection};
use prof_model::{Verdict, printable};

use crate::calltree::{CallTree, Label, Node, NodeId};
use crate::symbolize::SymbolizedProfile;

use super::frame_names::FrameNames;
use super::page::{self, GraphDirection, Page};
use super::palette::{CallStyle, Entry, Legend, Palette};
use crate::format::text::table::{columns, shorten};
use crate::format::tools::folded;

pub use super::palette::PaletteBy;

/// How a flame graph looks.
#[derive(Clone, Debug)]
pub struct FlameOptions {
    /// The headline.
    pub title: String,
    /// The line below it; by default the command, the event and the verdict.
    pub subtitle: Option<String>,
    /// The meaning of a function's hue.
    pub palette: PaletteBy,
    /// Width in pixels; as wide as the window unless given.
    pub width: Option<usize>,
    /// Whether the root is at the bottom.
    pub upwards: bool,
    /// Whether to merge from the innermost function outwards, to show the callers of hot functions.
    pub reversed: bool,
    /// Leave out frames narrower than this percentage of the total.
    pub min_percent: f64,
}

impl Default for FlameOptions {
    fn default() -> Self {
        Self {
            title: "Flame Graph".into(),
            subtitle: None,
            palette: PaletteBy::default(),
            width: None,
            upwards: false,
            reversed: false,
            min_percent: 0.1,
        }
    }
}

/// Draws `tree`, with a legend of its colours. The same tree gives the same bytes. Inlined
/// functions are paler, and frames that were read from live memory in most of their samples dull
/// and in italics.
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
    let palette = Palette::new(tree.symbolized(), options.palette);
    let names = FrameNames::new(tree, |id| color(tree, &palette, id));
    let lines = lines(tree, &names, options);
    let (mut colors, legend) = colors(tree, &palette, &names, options);
    let unit = &tree.event().unit;
    let mut drawing = options.drawing();
    drawing.palette_map = Some(&mut colors);
    drawing.func_frameattrs = italics(tree, &names)?;
    drawing.subtitle = Some(subtitle(tree, options));
    drawing.count_name = unit.name().to_owned();
    let mut svg = Vec::new();
    inferno::flamegraph::from_lines(&mut drawing, lines.iter().map(String::as_str), &mut svg)?;
    let svg = names.shown(svg);
    let page = Page::parse(&svg, options.direction(), options.width)?;
    page.write_with_legend(&legend, unit, out)
}

impl FlameOptions {
    /// The options that graphs and charts share.
    pub(in crate::format) fn drawing(&self) -> Options<'_> {
        let mut drawing = Options::default();
        drawing.deterministic = true;
        drawing.title = self.title.clone();
        drawing.image_width = self.width;
        drawing.min_width = self.min_percent;
        drawing.text_truncate_direction = TextTruncateDirection::Right;
        drawing.bgcolors = Some(BackgroundColor::Flat([252, 252, 252].into()));
        // Lines come in the order of drawing; this option keeps it.
        drawing.flame_chart = true;
        drawing.direction = match self.direction() {
            GraphDirection::Downwards => Direction::Inverted,
            GraphDirection::Upwards => Direction::Straight,
        };
        drawing
    }

    pub(in crate::format) fn direction(&self) -> GraphDirection {
        match self.upwards {
            true => GraphDirection::Upwards,
            false => GraphDirection::Downwards,
        }
    }

    /// How many characters of a subtitle fit into the picture.
    pub(in crate::format) fn subtitle_length(&self) -> usize {
        const CHARACTER: f64 = 7.5;
        (self.width.unwrap_or(page::WIDTH) as f64 / CHARACTER) as usize
    }
}

/// The command, the event, the total and the verdict, in a line.
fn subtitle(tree: &CallTree<'_>, options: &FlameOptions) -> String {
    let subtitle = || {
        let event = &tree.event().name;
        let samples = crate::format::number::counted(tree.total().samples, "sample");
        let counted = format!("{samples} of {event}");
        described(tree.symbolized(), &counted, options.subtitle_length())
    };
    options.subtitle.clone().unwrap_or_else(subtitle)
}

/// The verdict, if the profile allows one.
pub(in crate::format) fn verdict(symbolized: &SymbolizedProfile) -> Option<Verdict> {
    let is_known = !symbolized.profile().missing_data.quality;
    is_known.then(|| symbolized.verdict())
}

/// The verdict in a line.
fn verdict_line(symbolized: &SymbolizedProfile) -> Option<String> {
    /// In characters; less important parts are left out if necessary.
    const LONGEST: usize = 70;
    let verdict = verdict(symbolized)?.to_string();
    let mut line = verdict.lines().next()?;
    while let Some((start, _)) = line.rsplit_once(", ").filter(|_| columns(line) > LONGEST) {
        line = start;
    }
    Some(printable(line).into_owned())
}

/// The command, the event and the verdict, in a line of about this many characters; the command is
/// shortened.
pub(in crate::format) fn described(
    symbolized: &SymbolizedProfile,
    counted: &str,
    length: usize,
) -> String {
    const SHORTEST: usize = 24;
    let mut text = match verdict_line(symbolized) {
        Some(verdict) => format!("{counted} — {verdict}"),
        None => counted.to_owned(),
    };
    let command = program(&symbolized.profile().header.command_line);
    if !command.is_empty() {
        let left = length.saturating_sub(columns(&text) + 3).max(SHORTEST);
        text = format!("{} — {text}", shorten(&command, left));
    }
    text
}

/// The recorded program, if the command line contains it; otherwise the whole command line. After
/// `cargo prof --` there are arguments only.
fn program(command_line: &[String]) -> String {
    let is_cargo = command_line.first().is_some_and(|word| word == "cargo");
    let own = command_line.iter().position(|word| word == "--");
    let own = own.filter(|_| !is_cargo);
    match own.map(|own| &command_line[own + 1..]) {
        Some(program) if !program.is_empty() => program.join(" "),
        _ => command_line.join(" "),
    }
}

fn color(tree: &CallTree<'_>, palette: &Palette<'_>, id: NodeId) -> Color {
    let node = &tree[id];
    match node.label {
        Label::Function(function) => palette.function(function, style(node)),
        Label::All | Label::Part(_) => Palette::part(),
    }
}

fn style(node: &Node) -> CallStyle {
    CallStyle {
        inlined: node.inlined,
        remote_read: node.is_remote_read(),
    }
}

fn colors(
    tree: &CallTree<'_>,
    palette: &Palette<'_>,
    names: &FrameNames<'_, '_>,
    options: &FlameOptions,
) -> (PaletteMap, Vec<Entry>) {
    let mut colors = PaletteMap::default();
    let mut legend = Legend::new(palette);
    // inferno's name for the root frame.
    colors.insert("", Palette::part());
    for (id, node) in tree.nodes() {
        if let Label::Function(function) = node.label
            && is_drawn(tree, id, options)
        {
            legend.add(function, style(node), node.own.value);
        }
        colors.insert(names.of(id), color(tree, palette, id));
    }
    (colors, legend.entries())
}

/// Attributes of the frames that were read from live memory, in inferno's syntax.
fn italics(tree: &CallTree<'_>, names: &FrameNames<'_, '_>) -> io::Result<FuncFrameAttrsMap> {
    let nodes = tree.nodes().filter(|(_, node)| node.is_remote_read());
    let functions = nodes.filter(|(_, node)| matches!(node.label, Label::Function(_)));
    let names: BTreeSet<String> = functions.map(|(id, _)| names.of(id)).collect();
    let line = |name| format!("{name}\tg_extra=font-style=\"italic\"\n");
    let lines: String = names.into_iter().map(line).collect();
    FuncFrameAttrsMap::from_reader(lines.as_bytes())
}

/// Whether a node is wide enough, or the part of a split.
fn is_drawn(tree: &CallTree<'_>, id: NodeId, options: &FlameOptions) -> bool {
    let narrow = options.min_percent / 100.0;
    let node = &tree[id];
    node.parent == NodeId::ROOT || node.total.share_of(tree.total()) >= narrow
}

/// The stacks as folded lines, from right to left, functions by name. Frames too narrow to draw are
/// merged into their callers, which draws the same graph from far fewer lines.
///
/// Names are compared one by one. Whole lines must not be: `f;g` comes after `f2` then, and inferno
/// draws `f` in two pieces.
fn lines(tree: &CallTree<'_>, names: &FrameNames<'_, '_>, options: &FlameOptions) -> Vec<String> {
    let mut lines = Vec::new();
    let mut pending = vec![NodeId::ROOT];
    while let Some(id) = pending.pop() {
        let (mut drawn, narrow): (Vec<_>, Vec<_>) = tree
            .children(id)
            .iter()
            .partition(|&&id| is_drawn(tree, id, options));
        let rest = narrow.iter().map(|&id| tree[id].total.value);
        let weight = tree[id].own.value + rest.sum::<u64>();
        if weight > 0 && id != NodeId::ROOT {
            lines.push(folded::line(tree, id, weight, |id, last| {
                names.in_line(id, last)
            }));
        }
        drawn.sort_by_cached_key(|&id| Reverse(names.of(id)));
        pending.extend(drawn);
    }
    lines.reverse();
    lines
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
        // The script and the style are inferno's; the frames are ours.
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
            "demo — 9 samples of cpu-clock — verdict: ",
            "main (880 ms, ",
            "search",
            "opacity:1",
            ">libc.so.6</text>",
        ] {
            assert!(svg.contains(text), "{text}");
        }
    }

    #[test]
    fn what_was_recorded_is_named() {
        let check = |line: &str, expected: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            assert_eq!(program(&words), expected);
        };
        check("prof record -F 99 -- ./bin 7", "./bin 7");
        check("prof record -p 7", "prof record -p 7");
        check("cargo prof --bin b -- 7", "cargo prof --bin b -- 7");
    }

    #[test]
    fn functions_of_one_name_have_the_colours_of_their_own_modules() {
        let symbolized = TestProfile::of(&["bash bash!main 3", "py python!main;libc.so.6!main 5"]);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let mut svg = Vec::new();
        let options = FlameOptions {
            palette: PaletteBy::Module,
            ..FlameOptions::default()
        };
        write(&tree, &options, &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let of_main = svg.split("<title>main (").skip(1);
        let colors: BTreeSet<&str> = of_main
            .filter_map(|frame| frame.split("fill=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(colors.len(), 3, "{svg}");
    }

    #[test]
    fn frames_of_java_have_short_names() {
        let method = "jit:void java.util.concurrent.ThreadPoolExecutor.runWorker(java.lang.Object)";
        let mut test = TestProfile::new();
        test.line(&format!("java libjvm.so!JavaMain;{method} 3"));
        let symbolized = test.finish_with(None);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let mut svg = Vec::new();
        write(&tree, &FlameOptions::default(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        let name = "<title>java.util.concurrent.ThreadPoolExecutor.runWorker (";
        assert!(svg.contains(name), "{svg}");
    }

    #[test]
    fn frames_read_later_are_marked() {
        let mut test = TestProfile::new();
        test.line("a start;main 1");
        test.remote_read = 2;
        test.line("a start;main;deep;k:deeper 5");
        test.line("a start;main;deep+inlined 5");
        let symbolized = test.finish();
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let marked = |tree: &CallTree<'_>| -> BTreeSet<String> {
            let nodes = tree.nodes().filter(|(_, node)| node.is_remote_read());
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
        for text in ["kernel", "pale: inlined", "dull italics: read later"] {
            assert!(svg.contains(&format!(">{text}</text>")), "{text}: {svg}");
        }
        assert!(!svg.contains(">missing<"), "{svg}");
    }

    #[test]
    fn the_subtitle_fits_the_picture() {
        let symbolized = TestProfile::of(&["a b 1"; 50]);
        let verdict = verdict(&symbolized).unwrap();
        let text = |length| described(&symbolized, "9 samples", length);
        let whole = format!("demo — 9 samples — {verdict}");
        assert_eq!(text(200), whole);
        assert_eq!(text(10), whole);
        let mut test = TestProfile::new();
        test.line("a b 1");
        test.profile.header.command_line = vec!["long".repeat(50)];
        test.profile.missing_data.quality = true;
        let symbolized = test.finish();
        let text = described(&symbolized, "9 samples", 50);
        assert_eq!(columns(&text), 50, "{text}");
        assert!(text.ends_with("long — 9 samples"), "{text}");
    }

    #[test]
    fn the_first_screen_shows_the_hot_part() {
        // A thousand frames of start-up, in 0.05 % of the samples.
        let deep = format!("a main;{} 1", vec!["init"; 1000].join(";"));
        let mut lines = vec!["a main;hot 1"; 1999];
        lines.push(&deep);
        let symbolized = TestProfile::of(&lines);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let draw = |upwards| {
            let options = FlameOptions {
                upwards,
                ..FlameOptions::default()
            };
            let mut svg = Vec::new();
            write(&tree, &options, &mut svg).unwrap();
            String::from_utf8(svg).unwrap()
        };
        let number = |text: &str, from: &str| -> f64 {
            let (_, rest) = text.split_once(from).unwrap();
            rest.split_once('"').unwrap().0.parse().unwrap()
        };
        let place = |svg: &str, title: &str| {
            let (_, frame) = svg.split_once(&format!("<title>{title} (")).unwrap();
            number(frame, " y=\"")
        };
        for upwards in [false, true] {
            let svg = draw(upwards);
            assert!(number(&svg, "height=\"") < 200.0, "{svg}");
            assert!(!svg.contains("<title>init "), "{svg}");
            let (root, leaf) = (place(&svg, "all"), place(&svg, "hot"));
            assert_eq!(root > leaf, upwards);
        }
    }

    #[test]
    fn a_function_is_drawn_in_one_piece() {
        let lines = ["a main;sort 1", "a main;sort2 1", "a main;sort;swap 1"];
        let symbolized = TestProfile::of(&lines);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let mut svg = Vec::new();
        write(&tree, &FlameOptions::default(), &mut svg).unwrap();
        let svg = String::from_utf8(svg).unwrap();
        assert_eq!(svg.matches("<title>sort (").count(), 1, "{svg}");
    }

    #[test]
    fn narrow_frames_are_left_to_their_callers() {
        let symbolized = TestProfile::of(&["a main;wide;b 9999", "a main;narrow;c 1"]);
        let tree = CallTree::new(&symbolized, &everything(), Split::Name).unwrap();
        let options = FlameOptions {
            min_percent: 1.0,
            ..FlameOptions::default()
        };
        // From right to left.
        let expected = ["a;main;wide;b 9999000000", "a;main 1000000"];
        let palette = Palette::new(&symbolized, options.palette);
        let names = FrameNames::new(&tree, |id| color(&tree, &palette, id));
        assert_eq!(lines(&tree, &names, &options), expected);
    }
}
