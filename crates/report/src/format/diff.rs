//! The changes between two recordings, as a table and as a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use inferno::flamegraph::color::StrokeColor;

use crate::calltree::{CallTree, Label, NodeId};
use crate::error::Error;
use crate::profile::Weight;
use crate::view::diff::{Basis, Diff, Row, Side, check_events};

use super::flamegraph::{FlameOptions, verdict};
use super::folded;
use super::number::{counted, grouped, percent};
use super::page::Page;
use super::palette::Entry;
use super::table::shorten;

/// How a table of changes is laid out.
#[derive(Clone, Debug, Default)]
pub struct DiffOptions {
    /// The name of the first recording.
    pub before: String,
    /// The name of the second recording.
    pub after: String,
    /// The terminal's width in columns; `None` for pipes and files.
    pub width: Option<usize>,
    /// The maximum number of rows.
    pub rows: Option<usize>,
    /// Leave out functions whose share changed by less than this many percentage points.
    pub min_change: f64,
    /// Write a table for Markdown.
    pub markdown: bool,
}

const TITLES: [&str; 6] = [
    "Before %",
    "After %",
    "Change",
    "Certainty",
    "Function",
    "Module",
];

/// Shares that differ by less than this are equal but for rounding.
const EQUAL: f64 = 1e-9;

/// Which weight of functions a table shows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Share {
    Own,
    /// With all that they call.
    Total,
}

/// Writes the rows of `diff`, without functions that did not change at all: a table of self shares,
/// and one of the total shares of functions that call others, the largest change first.
///
/// The columns: share before and after in percent, change in percentage points, how sure it is,
/// function, module.
///
/// # Errors
/// Those of `out`.
pub fn write(diff: &Diff, options: &DiffOptions, mut out: impl Write) -> io::Result<()> {
    heading(diff, options, &mut out)?;
    let by = match options.min_change {
        0.0 => String::new(),
        least => format!(" by {least} percentage points"),
    };
    let own = Table::new(diff, Share::Own, options);
    let total = Table::new(diff, Share::Total, options);
    match (own.rows.is_empty(), total.rows.is_empty()) {
        _ if options.rows == Some(0) => own.write(options, &mut out),
        (true, true) => writeln!(out, "no function changed{by}"),
        (true, false) => writeln!(out, "no self share changed{by}"),
        _ => own.write(options, &mut out),
    }?;
    if total.rows.is_empty() {
        return Ok(());
    }
    let title = "total weight: each function with all that it calls";
    writeln!(out, "\n{title}\n")?;
    total.write(options, &mut out)
}

fn heading(diff: &Diff, options: &DiffOptions, out: &mut impl Write) -> io::Result<()> {
    // Markdown would join lines to a paragraph.
    let end = if options.markdown { "\\" } else { "" };
    let events = diff.events.as_ref();
    let samples = |weight: Weight, event: Option<&String>| {
        let of = event.map(|event| format!(" of {event}"));
        counted(weight.samples, "sample") + &of.unwrap_or_default()
    };
    let before = samples(diff.before, events.map(|(before, _)| before));
    let after = samples(diff.after, events.map(|(_, after)| after));
    writeln!(out, "before: {}, {before}{end}", options.before)?;
    writeln!(out, "after:  {}, {after}{end}", options.after)?;
    let whole = |what| {
        let after = percent(diff.whole.after.own);
        let certainty = diff.whole.certainty().name();
        format!("self {what} in percent of the total before; total after: {after} % ({certainty})")
    };
    let what = match diff.basis {
        Basis::Weight => "self weight in percent of each recording's total".to_owned(),
        Basis::Run => whole("weight of each run"),
        Basis::Rate => whole("weight by time"),
    };
    writeln!(out, "{what}\n")
}

impl Share {
    fn change(self, row: &Row) -> f64 {
        match self {
            Self::Own => row.change(),
            Self::Total => row.total_change(),
        }
    }

    /// Whether the row belongs to the table. The total of a function that calls nothing is its self
    /// weight.
    fn is_of(self, row: &Row) -> bool {
        let calls = |side: &Side| side.total_samples > side.samples;
        self == Self::Own || calls(&row.before) || calls(&row.after)
    }

    fn cells(self, row: &Row) -> [String; 6] {
        let (before, after, sure) = match self {
            Self::Own => (row.before.own, row.after.own, row.certainty()),
            Self::Total => (row.before.total, row.after.total, row.total_certainty()),
        };
        [
            percent(before),
            percent(after),
            format!("{:+.2}", self.change(row) * 100.0),
            sure.name().into(),
            row.function.to_string(),
            row.module.to_string(),
        ]
    }
}

/// The rows to write, and how many more there are.
struct Table {
    rows: Vec<[String; 6]>,
    left: usize,
}

impl Table {
    fn new(diff: &Diff, share: Share, options: &DiffOptions) -> Self {
        let mut rows: Vec<&Row> = diff.rows.iter().filter(|row| share.is_of(row)).collect();
        let change = |row: &Row| share.change(row).abs();
        rows.sort_by(|a, b| change(b).total_cmp(&change(a)));
        let shown: Vec<[String; 6]> = rows
            .iter()
            .filter(|row| change(row) > EQUAL && change(row) * 100.0 >= options.min_change)
            .take(options.rows.unwrap_or(usize::MAX))
            .map(|row| share.cells(row))
            .collect();
        Self {
            left: rows.len() - shown.len(),
            rows: shown,
        }
    }

    fn write(&self, options: &DiffOptions, out: &mut impl Write) -> io::Result<()> {
        match options.markdown {
            true => self.markdown(out)?,
            false => self.text(options, out)?,
        }
        match self.left {
            0 => Ok(()),
            more => writeln!(out, "\n… {}", counted(more as u64, "more function")),
        }
    }

    fn markdown(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "| {} |", TITLES.join(" | "))?;
        writeln!(out, "|--:|--:|--:|---|---|---|")?;
        self.rows.iter().try_for_each(|cells| {
            let cells = cells.each_ref().map(|cell| escape(cell));
            writeln!(out, "| {} |", cells.join(" | "))
        })
    }

    fn text(&self, options: &DiffOptions, out: &mut impl Write) -> io::Result<()> {
        let names = self.rows.iter().map(|cells| cells[4].chars().count());
        let longest = names.max().unwrap_or(0).max(TITLES[4].len());
        let names = longest.min(options.width.map_or(60, |width| {
            // The width left by the other columns and twenty for the module.
            width.saturating_sub(60).max(20)
        }));
        let titles = TITLES.map(String::from);
        let mut lines = [&titles].into_iter().chain(&self.rows);
        lines.try_for_each(|cells| line(cells, names, options.width.is_some(), out))
    }
}

fn line(cells: &[String; 6], names: usize, cut: bool, out: &mut impl Write) -> io::Result<()> {
    let [before, after, change, certainty, function, module] = cells;
    let function = if cut {
        shorten(function, names)
    } else {
        function.clone()
    };
    let text = format!(
        "{before:>8}  {after:>7}  {change:>7}  {certainty:<9}  {function:names$}  {module}"
    );
    writeln!(out, "{}", text.trim_end())
}

/// Text that Markdown shows as it is: no links, no code, no emphasis, no HTML.
pub(super) fn escape(cell: &str) -> String {
    let mut escaped = String::with_capacity(cell.len());
    for character in cell.chars() {
        match character {
            '<' => escaped.push_str("&lt;"),
            '&' => escaped.push_str("&amp;"),
            '|' | '`' | '[' | ']' | '*' | '_' | '~' | '\\' | '!' => {
                escaped.push('\\');
                escaped.push(character);
            }
            _ => escaped.push(character),
        }
    }
    // Addresses become links all by themselves.
    escaped.replace("://", ":\\//").replace("www.", "www\\.")
}

/// Draws the stacks of `after`, red where they grew and blue where they shrank since `before`.
/// Widths are those of `after`; with `gone`, those of `before`, so that removed functions are
/// visible as well. Both are scaled to the same whole.
///
/// # Errors
/// [`Error::DifferentEvents`], those of `out`.
pub fn flamegraph(
    before: &CallTree<'_>,
    after: &CallTree<'_>,
    gone: bool,
    options: &FlameOptions,
    out: impl Write,
) -> Result<(), Error> {
    check_events(before, after)?;
    let (narrow, wide) = if gone {
        (after, before)
    } else {
        (before, after)
    };
    let stacks = stacks(narrow, wide, options);
    let legend = legend(&stacks, wide.total().value);
    let unit = &wide.event().unit;
    let mut drawing = options.drawing();
    drawing.subtitle = Some(options.subtitle.clone().unwrap_or_else(|| {
        let count = |tree: &CallTree<'_>| grouped(tree.total().samples);
        format!(
            "{} samples of {} before, {} after; widths: {}; colours: own time{}",
            count(before),
            wide.event().name,
            count(after),
            if gone { "before" } else { "after" },
            verdicts(before, after),
        )
    }));
    drawing.count_name = unit.name().to_owned();
    drawing.negate_differentials = gone;
    // Most frames are as bright as the background.
    drawing.stroke_color = StrokeColor::Color([205, 205, 205].into());
    let lines: Vec<String> = stacks.iter().map(Stack::line).collect();
    let mut svg = Vec::new();
    // inferno reads them from the last to the first.
    let lines = lines.iter().rev().map(String::as_str);
    inferno::flamegraph::from_lines(&mut drawing, lines, &mut svg)?;
    let page = Page::parse(&svg, options.direction(), options.width)?;
    page.write_with_legend(&legend, unit, out)?;
    Ok(())
}

/// How far either recording can be trusted, as far as that is known.
fn verdicts(before: &CallTree<'_>, after: &CallTree<'_>) -> String {
    let graded = [(before, "before"), (after, "after")].map(|(tree, when)| {
        let verdict = verdict(tree.symbolized())?;
        Some(format!("{} {when}", verdict.grade))
    });
    let graded: Vec<String> = graded.into_iter().flatten().collect();
    match graded.is_empty() {
        true => String::new(),
        false => format!("; verdict: {}", graded.join(", ")),
    }
}

/// inferno's colours of frames that grew most, of those that did not change and of those that
/// shrank most, and how much that is.
fn legend(stacks: &[Stack], whole: u64) -> [Entry; 3] {
    let changes = stacks
        .iter()
        .map(|stack| stack.compared.abs_diff(stack.shown));
    let most = changes.max().unwrap_or(0) as f64 / whole.max(1) as f64 * 100.0;
    let entry = |color: [u8; 3], text| Entry {
        color: color.into(),
        text,
    };
    [
        entry(
            [255, 100, 100],
            format!("more than before (full colour: by {most:.2} points)"),
        ),
        entry([235, 235, 235], "the same (white)".into()),
        entry(
            [100, 100, 255],
            format!("less than before (full colour: by {most:.2} points)"),
        ),
    ]
}

/// A stack of either recording.
struct Stack {
    /// Its frames, separated by `;`.
    frames: String,
    /// Its weight in the other recording, scaled to the total of the one with the widths.
    compared: u64,
    /// Its weight in the recording that the widths are of.
    shown: u64,
}

impl Stack {
    /// In inferno's format.
    fn line(&self) -> String {
        format!("{} {} {}", self.frames, self.compared, self.shown)
    }
}

/// The stacks of both, functions by name: a function's self time comes before its callees.
fn stacks(compared: &CallTree<'_>, shown: &CallTree<'_>, options: &FlameOptions) -> Vec<Stack> {
    let scale = shown.total().value as f64 / compared.total().value.max(1) as f64;
    let mut stacks: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    let renamed = renamed_part(compared, shown);
    let both = [(compared, false), (shown, true)];
    for (tree, is_shown) in both {
        let inverted = options.reversed.then(|| tree.inverted());
        let tree = inverted.as_ref().unwrap_or(tree);
        for (id, node) in tree.nodes().filter(|(_, node)| node.own.samples > 0) {
            let mut frames = folded::stack(tree, id);
            if let Some((old, new)) = renamed.as_ref().filter(|_| !is_shown) {
                let (part, calls) = frames.split_once(';').unwrap_or((&frames, ""));
                if part == old {
                    frames = format!("{new};{calls}");
                }
            }
            let weights = stacks.entry(frames).or_default();
            if is_shown {
                weights.1 += node.own.value;
            } else {
                weights.0 += (node.own.value as f64 * scale).round() as u64;
            }
        }
    }
    let stacks = stacks.into_iter();
    let mut stacks: Vec<Stack> = stacks
        .map(|(frames, (compared, shown))| Stack {
            frames,
            compared,
            shown,
        })
        .collect();
    stacks.sort_by(|a, b| a.frames.split(';').cmp(b.frames.split(';')));
    stacks
}

/// The one thread name that only the first has, and the one that only the second has: two builds of
/// a program have different names.
fn renamed_part(first: &CallTree<'_>, second: &CallTree<'_>) -> Option<(String, String)> {
    let names = |tree: &CallTree<'_>| -> BTreeSet<String> {
        let parts = tree.children(NodeId::ROOT).iter();
        let parts = parts.filter(|&&id| matches!(tree[id].label, Label::Part(_)));
        parts
            .map(|&id| folded::plain(tree.name(id), false).into_owned())
            .collect()
    };
    let (first, second) = (names(first), names(second));
    let alone = |of: &BTreeSet<String>, other: &BTreeSet<String>| {
        let mut alone = of.difference(other);
        alone.next().filter(|_| alone.next().is_none()).cloned()
    };
    Some((alone(&first, &second)?, alone(&second, &first)?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::{TestProfile, check_golden, everything};

    fn recordings() -> (SymbolizedProfile, SymbolizedProfile) {
        let mut before = vec!["t main;work;slow 10"; 50];
        before.extend(["t main;work 10"; 40]);
        before.extend(["t main;gone 10"; 10]);
        let mut after = vec!["t main;work;slow 20"; 20];
        after.extend(["t main;work 20"; 42]);
        after.extend(["t main;ns::new|<T> 20"; 38]);
        (TestProfile::of(&before), TestProfile::of(&after))
    }

    fn table(options: &DiffOptions) -> Vec<u8> {
        let (before, after) = recordings();
        let tree = |profile| CallTree::new(profile, &everything(), Split::Name).unwrap();
        let diff = Diff::new(&tree(&before), &tree(&after), Basis::default()).unwrap();
        let mut text = Vec::new();
        write(&diff, options, &mut text).unwrap();
        text
    }

    #[test]
    fn golden() {
        let labelled = DiffOptions {
            before: "old.data".into(),
            after: "new.data".into(),
            ..DiffOptions::default()
        };
        check_golden("diff.txt", &table(&labelled));
        let markdown = DiffOptions {
            markdown: true,
            min_change: 5.0,
            ..labelled
        };
        check_golden("diff.md", &table(&markdown));
    }

    #[test]
    fn nothing_is_listed_that_did_not_change() {
        let check = |rows, min_change, expected: &str| {
            let (before, _) = recordings();
            let tree = CallTree::new(&before, &everything(), Split::Name).unwrap();
            let diff = Diff::new(&tree, &tree, Basis::default()).unwrap();
            let options = DiffOptions {
                rows,
                min_change,
                ..DiffOptions::default()
            };
            let mut text = Vec::new();
            write(&diff, &options, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            assert!(text.ends_with(expected), "{text}");
        };
        check(None, 0.0, "\n\nno function changed\n");
        check(Some(3), 0.5, "changed by 0.5 percentage points\n");
    }

    #[test]
    fn totals_change_where_no_self_share_does() {
        let before = TestProfile::of(&["t disk;sleep 10", "t net;sleep 2"]);
        let after = TestProfile::of(&["t disk;sleep 10", "t net;sleep 100"]);
        let check = |min_change, expected: &[&str]| {
            let tree = |profile| CallTree::new(profile, &everything(), Split::Name).unwrap();
            let diff = Diff::new(&tree(&before), &tree(&after), Basis::default()).unwrap();
            let options = DiffOptions {
                min_change,
                ..DiffOptions::default()
            };
            let mut text = Vec::new();
            write(&diff, &options, &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let lines: Vec<&str> = text.lines().skip(4).collect();
            assert_eq!(lines, expected);
        };
        let expected = [
            "no self share changed",
            "",
            "total weight: each function with all that it calls",
            "",
            "Before %  After %   Change  Certainty  Function  Module",
            "   83.33     9.09   -74.24  noise      disk      demo",
            "   16.67    90.91   +74.24  noise      net       demo",
        ];
        check(0.0, &expected);
        check(80.0, &["no function changed by 80 percentage points"]);
    }

    #[test]
    fn events_that_differ_are_named() {
        let check = |names: [&str; 2], expected: [&str; 2]| {
            let [before, after] = names.map(|name| {
                let mut test = TestProfile::new();
                test.profile.events[0].name = name.into();
                test.line("t main 1");
                test.finish()
            });
            let tree = |profile| CallTree::new(profile, &everything(), Split::Name).unwrap();
            let diff = Diff::new(&tree(&before), &tree(&after), Basis::default()).unwrap();
            let mut text = Vec::new();
            write(&diff, &DiffOptions::default(), &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let lines: Vec<&str> = text.lines().take(2).collect();
            assert_eq!(lines, expected);
        };
        check(
            ["cpu-clock", "task-clock:u"],
            [
                "before: , 1 sample of cpu-clock",
                "after:  , 1 sample of task-clock:u",
            ],
        );
        check(
            ["cpu-clock"; 2],
            ["before: , 1 sample", "after:  , 1 sample"],
        );
    }

    #[test]
    fn two_builds_of_a_program_are_compared() {
        let before = TestProfile::of(&["app-1 main 1", "sh main 1"]);
        let after = TestProfile::of(&["app-2 main 1", "sh main 1"]);
        let tree = |profile| CallTree::new(profile, &everything(), Split::Name).unwrap();
        let stacks = stacks(&tree(&before), &tree(&after), &FlameOptions::default());
        let lines: Vec<String> = stacks.iter().map(Stack::line).collect();
        assert_eq!(
            lines,
            ["app-2;main 1000000 1000000", "sh;main 1000000 1000000"]
        );
    }

    #[test]
    fn stacks_are_scaled_to_the_same_whole() {
        let (before, after) = recordings();
        let tree = |profile| CallTree::new(profile, &everything(), Split::Nothing).unwrap();
        let stacks = stacks(&tree(&before), &tree(&after), &FlameOptions::default());
        let lines: Vec<String> = stacks.iter().map(Stack::line).collect();
        let expected = [
            "main;gone 200000000 0",
            "main;ns::new|<T> 0 760000000",
            "main;work 800000000 840000000",
            "main;work;slow 1000000000 400000000",
        ];
        assert_eq!(lines, expected);
        for gone in [false, true] {
            let mut svg = Vec::new();
            let options = FlameOptions::default();
            flamegraph(&tree(&before), &tree(&after), gone, &options, &mut svg).unwrap();
            let svg = String::from_utf8(svg).unwrap();
            assert_eq!(svg.contains("<title>gone "), gone);
            let legend = "less than before (full colour: by 38.00 points)";
            assert!(svg.contains(legend), "{svg}");
        }
    }
}
