//! Differential flame graphs: the changes between two recordings as a picture.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;

use inferno::flamegraph::color::StrokeColor;

use super::flamegraph::{FlameOptions, verdict};
use super::page::Page;
use super::palette::Entry;
use crate::calltree::{CallTree, Label, NodeId};
use crate::error::Error;
use crate::format::number::grouped;
use crate::format::tools::folded;
use crate::view::diff::check_events;

/// Draws the stacks of `after`, red where they grew and blue where they shrank since `before`.
/// Widths are those of `after`; with `gone`, those of `before`, so that removed functions are
/// visible as well. Both are scaled to the same whole.
///
/// # Errors
/// [`Error::DifferentEvents`], those of `out`.
pub fn write(
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
    use crate::testing::{TestProfile, everything, two_recordings};

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
        let (before, after) = two_recordings();
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
            write(&tree(&before), &tree(&after), gone, &options, &mut svg).unwrap();
            let svg = String::from_utf8(svg).unwrap();
            assert_eq!(svg.contains("<title>gone "), gone);
            let legend = "less than before (full colour: by 38.00 points)";
            assert!(svg.contains(legend), "{svg}");
        }
    }
}
