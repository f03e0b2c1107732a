//! The changes between two recordings, as a table.

use std::io::{self, Write};

use crate::profile::Weight;
use crate::view::diff::{Basis, Diff, Row, Side};

use super::table::shorten;
use crate::format::number::{counted, percent};

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
pub(in crate::format) fn escape(cell: &str) -> String {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calltree::{CallTree, Split};
    use crate::testing::{TestProfile, check_golden, everything, two_recordings};

    fn table(options: &DiffOptions) -> Vec<u8> {
        let (before, after) = two_recordings();
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
            let (before, _) = two_recordings();
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
}
