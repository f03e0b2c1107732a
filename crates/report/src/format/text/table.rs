//! The flat view, and groups, as text tables.

use std::io::{self, Write};

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Weight;
use crate::view::flat::Flat;
use crate::view::groups::Groups;

use crate::format::number::{Scale, counted, grouped, percent};

/// How a table is laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableOptions {
    /// The terminal's width in columns; long names are shortened to fit. `None` for pipes and
    /// files: nothing is shortened.
    pub width: Option<usize>,
    /// Whether to draw a bar beside each row's own share. Not for pipes.
    pub bars: bool,
    /// The maximum number of rows.
    pub rows: Option<usize>,
    /// Leave out rows whose total share is below this percentage.
    pub min_percent: f64,
}

/// Writes `flat`, the view of `tree`: a caption, a header, a row for each function, and a line on
/// the rows left out, if any.
///
/// The columns, separated by two spaces: own share in percent, own weight, total share in
/// percent, function, module.
///
/// # Errors
/// Those of `out`.
pub fn write(
    tree: &CallTree<'_>,
    flat: &Flat,
    options: &TableOptions,
    out: impl Write,
) -> io::Result<()> {
    let symbolized = tree.symbolized();
    let by_what = flat.rows.iter().any(|row| row.through.is_some());
    let modules: Vec<String> = (flat.rows.iter())
        .map(|row| {
            let module = &symbolized[row.function].module;
            match row.through {
                Some(through) => format!("{module}, by {}", symbolized[through].name),
                None => module.to_string(),
            }
        })
        .collect();
    let lines = flat
        .rows
        .iter()
        .zip(&modules)
        .map(|(row, module)| TableLine {
            own: row.own,
            total: row.total,
            names: [&symbolized[row.function].name, module],
        });
    Table {
        tree,
        of: flat.of,
        total: flat.total,
        titles: [
            "Function",
            if by_what { "Module, by what" } else { "Module" },
        ],
        lines: lines.collect(),
    }
    .write(options, out)
}

/// Writes `groups` of `tree`, which are called `title`, as [`write()`] does functions.
///
/// # Errors
/// Those of `out`.
pub fn write_groups(
    tree: &CallTree<'_>,
    groups: &Groups,
    title: &str,
    options: &TableOptions,
    out: impl Write,
) -> io::Result<()> {
    let lines = groups.rows.iter().map(|row| TableLine {
        own: row.own,
        total: row.total,
        names: [&row.name, ""],
    });
    Table {
        tree,
        of: groups.of,
        total: groups.total,
        titles: [title, ""],
        lines: lines.collect(),
    }
    .write(options, out)
}

/// A table of which only a part may be shown.
struct Table<'t, 'p> {
    tree: &'t CallTree<'p>,
    of: NodeId,
    total: Weight,
    titles: [&'t str; 2],
    lines: Vec<TableLine<'t>>,
}

#[derive(Clone, Copy)]
struct TableLine<'t> {
    own: Weight,
    total: Weight,
    names: [&'t str; 2],
}

impl Table<'_, '_> {
    fn write(&self, options: &TableOptions, mut out: impl Write) -> io::Result<()> {
        let scale = Scale::new(&self.tree.event().unit, self.total);
        writeln!(out, "{}\n", caption(self.tree, self.of, &scale))?;
        let lines: Vec<&TableLine<'_>> = (self.lines.iter())
            .filter(|line| line.total.share_of(self.total) * 100.0 >= options.min_percent)
            .take(options.rows.unwrap_or(usize::MAX))
            .collect();
        let layout = TableColumns::new(self, &lines, &scale, options);
        let own_title = format!("Self {}", scale.unit());
        let [first, second] = self.titles;
        layout.line(
            &mut out,
            ["Self %", &own_title, "Total %", first, second],
            "",
        )?;
        for line in &lines {
            let own_share = line.own.share_of(self.total);
            let [first, second] = line.names;
            let cells = [
                &*percent(own_share),
                &scale.number(line.own),
                &percent(line.total.share_of(self.total)),
                first,
                second,
            ];
            layout.line(&mut out, cells, &bar(own_share))?;
        }
        self.write_rest(&lines, out)
    }

    /// Prints how much was not shown.
    fn write_rest(&self, shown: &[&TableLine<'_>], mut out: impl Write) -> io::Result<()> {
        let left = self.lines.len() - shown.len();
        if left == 0 {
            return Ok(());
        }
        let own = |lines: &mut dyn Iterator<Item = &TableLine<'_>>| {
            let mut sum = Weight::default();
            lines.for_each(|line| sum += line.own);
            sum.share_of(self.total)
        };
        let share = own(&mut self.lines.iter()) - own(&mut shown.iter().copied());
        let (left, share) = (grouped(left as u64), percent(share.max(0.0)));
        writeln!(out, "… {left} more with {share} % of self time")
    }
}

/// The caption for a node of the tree: event and total, in a line.
pub(in crate::format) fn caption(tree: &CallTree<'_>, of: NodeId, scale: &Scale<'_>) -> String {
    let total = tree[of].total;
    let counted = format!(
        "{} of {}, {} {}",
        counted(total.samples, "sample"),
        tree.event().name,
        scale.number(total),
        scale.unit()
    );
    match tree[of].label {
        Label::All => counted,
        _ => format!("{}: {counted}", tree.name(of)),
    }
}

const BAR_WIDTH: usize = 10;

/// A bar of at most [`BAR_WIDTH`] columns, to an eighth of a column.
fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = (share.clamp(0.0, 1.0) * (BAR_WIDTH * 8) as f64).round() as usize;
    "█".repeat(eighths / 8) + EIGHTHS[eighths % 8]
}

/// The widths of the columns.
struct TableColumns {
    bars: bool,
    numbers: [usize; 3],
    names: [usize; 2],
    /// Whether names are cut to the widths.
    cut: bool,
}

impl TableColumns {
    /// In pipes, names longer than this shift the next columns to the right.
    const PIPE_NAME: usize = 60;
    const GAP: usize = 2;

    fn new(
        table: &Table<'_, '_>,
        lines: &[&TableLine<'_>],
        scale: &Scale<'_>,
        options: &TableOptions,
    ) -> Self {
        let longest = |column: usize| {
            let names = lines.iter().map(|line| line.names[column]);
            names.chain([table.titles[column]]).map(columns).max()
        };
        let own = columns(&scale.number(table.total)).max(columns("Self ") + columns(scale.unit()));
        let numbers = ["Self %".len(), own, "Total %".len()];
        let mut first = longest(0).unwrap_or(0);
        let mut second = longest(1).unwrap_or(0);
        match options.width {
            Some(width) => {
                let bars = if options.bars {
                    BAR_WIDTH + Self::GAP
                } else {
                    0
                };
                let taken = numbers.iter().sum::<usize>() + 4 * Self::GAP + bars;
                let names = width.saturating_sub(taken).max(20);
                second = second.min(names / 3);
                first = first.min(names - second);
            }
            None => first = first.min(Self::PIPE_NAME),
        }
        Self {
            bars: options.bars,
            numbers,
            names: [first, second],
            cut: options.width.is_some(),
        }
    }

    fn line(&self, out: &mut impl Write, cells: [&str; 5], bar: &str) -> io::Result<()> {
        let [own_share, own, total_share, first, second] = cells;
        let [w0, w1, w2] = self.numbers;
        let [w3, w4] = self.names;
        write!(out, "{own_share:>w0$}  ")?;
        if self.bars {
            write!(out, "{bar:BAR_WIDTH$}  ")?;
        }
        let (first, second) = match self.cut {
            true => (shorten(first, w3), shorten(second, w4)),
            false => (first.to_owned(), second.to_owned()),
        };
        let line = format!("{own:>w1$}  {total_share:>w2$}  {first:w3$}  {second}");
        writeln!(out, "{}", line.trim_end())
    }
}

/// The width of a text, counting every character as one column.
pub(in crate::format) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text, or its beginning and end with an ellipsis between: the end distinguishes functions of
/// one path.
pub(in crate::format) fn shorten(text: &str, width: usize) -> String {
    let length = columns(text);
    if length <= width {
        return text.to_owned();
    }
    let kept = width.saturating_sub(1);
    let head = kept / 2;
    let tail = kept - head;
    let start: String = text.chars().take(head).collect();
    let end: String = text.chars().skip(length - tail).collect();
    format!("{start}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::Split;
    use crate::testing::{check_golden, demo, everything};

    fn table(options: &TableOptions) -> Vec<u8> {
        let symbolized = demo();
        let tree = CallTree::new(&symbolized, &everything(), Split::Nothing).unwrap();
        let mut text = Vec::new();
        write(&tree, &Flat::new(&tree), options, &mut text).unwrap();
        text
    }

    #[test]
    fn golden() {
        check_golden("flat.txt", &table(&TableOptions::default()));
        let terminal = TableOptions {
            width: Some(72),
            bars: true,
            rows: Some(5),
            min_percent: 0.0,
        };
        check_golden("flat-terminal.txt", &table(&terminal));
    }

    #[test]
    fn each_part_has_its_own_table() {
        let symbolized = demo();
        let tree = CallTree::new(&symbolized, &everything(), Split::Thread).unwrap();
        let mut text = Vec::new();
        for flat in Flat::by_part(&tree).skip(1).take(2) {
            write(&tree, &flat, &TableOptions::default(), &mut text).unwrap();
        }
        check_golden("flat-by-thread.txt", &text);
    }

    #[test]
    fn long_names_keep_both_ends() {
        let check = |text, width, expected: &str| assert_eq!(shorten(text, width), expected);
        check("short", 5, "short");
        check("core::fmt::Formatter::pad", 11, "core:…::pad");
        check("x", 0, "…");
    }

    #[test]
    fn bars_grow_by_eighths() {
        let check = |share, expected: &str| assert_eq!(bar(share), expected);
        check(0.0, "");
        check(0.0125, "▏");
        check(0.25, "██▌");
        check(1.0, "██████████");
    }
}
