//! The flat view as a text table.

use std::io::{self, Write};

use crate::calltree::{CallTree, Label, NodeId};
use crate::profile::Weight;
use crate::view::flat::{Flat, Row};

use super::number::{Scale, grouped, percent};

/// How a table is laid out.
#[derive(Clone, Copy, Debug, Default)]
pub struct TableOptions {
    /// The terminal's width in columns; long names are shortened to fit. `None` for pipes and
    /// files: nothing is shortened.
    pub width: Option<usize>,
    /// Whether to draw a bar beside each function's own share. Not for pipes.
    pub bars: bool,
    /// At most so many rows.
    pub rows: Option<usize>,
    /// Leave out functions whose total share is below so many percent.
    pub min_percent: f64,
}

/// Writes `flat`, the view of `tree`: a line on what was counted, a header, a row for each
/// function, and a line on the rows left out, if any.
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
    mut out: impl Write,
) -> io::Result<()> {
    let scale = Scale::new(&tree.event().unit, flat.total);
    writeln!(out, "{}\n", caption(tree, flat.of, &scale))?;
    let rows: Vec<&Row> = flat
        .rows
        .iter()
        .filter(|row| row.total.share_of(flat.total) * 100.0 >= options.min_percent)
        .take(options.rows.unwrap_or(usize::MAX))
        .collect();
    let layout = Layout::new(tree, flat, &rows, &scale, options);
    let own_title = format!("Self {}", scale.unit());
    layout.line(
        &mut out,
        ["Self %", &own_title, "Total %", "Function", "Module"],
        "",
    )?;
    for row in &rows {
        let function = &tree.symbolized()[row.function];
        let own_share = row.own.share_of(flat.total);
        let cells = [
            &*percent(own_share),
            &scale.number(row.own),
            &percent(row.total.share_of(flat.total)),
            &function.name,
            &function.module,
        ];
        layout.line(&mut out, cells, &bar(own_share))?;
    }
    let left = flat.rows.len() - rows.len();
    if left > 0 {
        let own = |rows: &mut dyn Iterator<Item = &Row>| {
            let mut sum = Weight::default();
            rows.for_each(|row| sum += row.own);
            sum
        };
        let shown = own(&mut rows.iter().copied()).share_of(flat.total);
        let all = own(&mut flat.rows.iter()).share_of(flat.total);
        writeln!(
            out,
            "… {} more functions with {} % of self time",
            grouped(left as u64),
            percent((all - shown).max(0.0))
        )?;
    }
    Ok(())
}

/// What was counted in a node of the tree, in a line.
pub(super) fn caption(tree: &CallTree<'_>, of: NodeId, scale: &Scale<'_>) -> String {
    let total = tree[of].total;
    let counted = format!(
        "{} {} of {}, {} {}",
        grouped(total.samples),
        if total.samples == 1 {
            "sample"
        } else {
            "samples"
        },
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
struct Layout {
    bars: bool,
    numbers: [usize; 3],
    function: usize,
    module: usize,
    /// Whether names are cut to the widths.
    cut: bool,
}

impl Layout {
    /// In pipes, longer function names than this push the module to the right.
    const PIPE_FUNCTION: usize = 60;
    const GAP: usize = 2;

    fn new(
        tree: &CallTree<'_>,
        flat: &Flat,
        rows: &[&Row],
        scale: &Scale<'_>,
        options: &TableOptions,
    ) -> Self {
        let longest = |name: fn(&crate::symbolized::Function) -> &str, least: &str| {
            let names = rows
                .iter()
                .map(|row| name(&tree.symbolized()[row.function]));
            names.chain([least]).map(columns).max().unwrap_or(0)
        };
        let own = columns(&scale.number(flat.total)).max(columns("Self ") + columns(scale.unit()));
        let numbers = ["Self %".len(), own, "Total %".len()];
        let mut function = longest(|function| &function.name, "Function");
        let mut module = longest(|function| &function.module, "Module");
        match options.width {
            Some(width) => {
                let bars = if options.bars {
                    BAR_WIDTH + Self::GAP
                } else {
                    0
                };
                let taken = numbers.iter().sum::<usize>() + 4 * Self::GAP + bars;
                let names = width.saturating_sub(taken).max(20);
                module = module.min(names / 3);
                function = function.min(names - module);
            }
            None => function = function.min(Self::PIPE_FUNCTION),
        }
        Self {
            bars: options.bars,
            numbers,
            function,
            module,
            cut: options.width.is_some(),
        }
    }

    fn line(&self, out: &mut impl Write, cells: [&str; 5], bar: &str) -> io::Result<()> {
        let [own_share, own, total_share, function, module] = cells;
        let [w0, w1, w2] = self.numbers;
        write!(out, "{own_share:>w0$}  ")?;
        if self.bars {
            write!(out, "{bar:BAR_WIDTH$}  ")?;
        }
        let (function, module) = if self.cut {
            (
                shorten(function, self.function),
                shorten(module, self.module),
            )
        } else {
            (function.to_owned(), module.to_owned())
        };
        let line = format!(
            "{own:>w1$}  {total_share:>w2$}  {function:w3$}  {module}",
            w3 = self.function
        );
        writeln!(out, "{}", line.trim_end())
    }
}

/// How many columns a text takes, taking every character for one.
pub(super) fn columns(text: &str) -> usize {
    text.chars().count()
}

/// The text, or its beginning and end with an ellipsis between: the end tells functions of one
/// path apart.
pub(super) fn shorten(text: &str, width: usize) -> String {
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
