//! Text on the terminal.

use std::cmp::Reverse;
use std::io::{self, IsTerminal};

use anyhow::Result;
use prof_model::{Quality, printable};
use prof_report::format::{coverage, failures, stack_check, table, tree};
use prof_report::view::failures::Failures;
use prof_report::view::flat::Flat;
use prof_report::view::groups::{CodeGroups, Groups};
use prof_report::view::outline::Outline;
use prof_report::view::stack_check::NamedStackCheck;
use prof_report::{CallTree, SymbolizedProfile};

use super::closing::ReportQuality;
use crate::flags::{OutputFlags, Rows};
use crate::output::write_stdout;

/// Writes the requested view, by default a table of functions.
pub(super) fn write(flags: &OutputFlags, calls: &CallTree<'_>) -> Result<()> {
    let text = &flags.text;
    if text.is_tree() || text.callers.is_some() || text.callees.is_some() {
        write_tree(flags, calls)
    } else {
        write_table(flags, calls)
    }
}

fn write_tree(flags: &OutputFlags, calls: &CallTree<'_>) -> Result<()> {
    /// Narrower calls make a tree unreadable; `--min-percent` overrides it.
    const MIN_PERCENT: f64 = 0.5;
    let min_percent = match flags.min_percent {
        0.0 => MIN_PERCENT,
        given => given,
    };
    let outline = Outline::new(calls, min_percent);
    write_stdout(|out| Ok(tree::write(calls, &outline, terminal_width(), out)?))
}

fn write_table(flags: &OutputFlags, calls: &CallTree<'_>) -> Result<()> {
    let options = table::TableOptions {
        width: terminal_width(),
        bars: io::stdout().is_terminal(),
        rows: flags.text.limit,
        min_percent: flags.min_percent,
    };
    let rows = flags.text.sort.map(|sort| sort.rows).unwrap_or_default();
    let by_total = flags.text.by_total();
    let functions = |mut flat: Flat, out: &mut dyn io::Write| {
        if by_total {
            flat.rows.sort_by_key(|row| Reverse(row.total));
        }
        table::write(calls, &flat, &options, out)
    };
    let groups = |mut groups: Groups, title: &str, out: &mut dyn io::Write| {
        if by_total {
            groups.rows.sort_by_key(|row| Reverse(row.total));
        }
        table::write_groups(calls, &groups, title, &options, out)
    };
    write_stdout(|out| match (rows, flags.split()) {
        (Rows::Parts(title), _) => Ok(groups(Groups::parts(calls), title, out)?),
        (Rows::Functions, None) => Ok(functions(Flat::new(calls), out)?),
        (Rows::Code(by), None) => Ok(groups(Groups::code(calls, by), title(by), out)?),
        (Rows::Functions, Some(_)) => write_separated(Flat::by_part(calls), functions, out),
        (Rows::Code(by), Some(_)) => {
            let code = |part, out: &mut dyn io::Write| groups(part, title(by), out);
            write_separated(Groups::code_by_part(calls, by), code, out)
        }
    })
}

fn title(by: CodeGroups) -> &'static str {
    match by {
        CodeGroups::Modules => "Module",
        CodeGroups::Languages => "Language",
    }
}

/// Writes tables with empty lines between them.
fn write_separated<T>(
    tables: impl Iterator<Item = T>,
    write: impl Fn(T, &mut dyn io::Write) -> io::Result<()>,
    out: &mut dyn io::Write,
) -> Result<()> {
    for (index, table) in tables.enumerate() {
        if index > 0 {
            writeln!(out)?;
        }
        write(table, out)?;
    }
    Ok(())
}

/// Lists where unwinding failed.
pub(super) fn write_failures(profile: &SymbolizedProfile, rows: Option<usize>) -> Result<()> {
    write_stdout(|out| Ok(failures::write(&Failures::new(profile), rows, out)?))
}

/// Lists where two unwinders differ.
pub(super) fn write_stack_check(found: &NamedStackCheck, rows: Option<usize>) -> Result<()> {
    write_stdout(|out| Ok(stack_check::write(found, rows, out)?))
}

/// Lists how much of threads' work has samples.
pub(super) fn write_coverage(quality: &Quality, rows: Option<usize>) -> Result<()> {
    write_stdout(|out| Ok(coverage::write(quality, rows, out)?))
}

/// Writes the lines below each view: what it does not show, and the verdict.
pub(super) fn write_closing(asides: &[String], quality: &ReportQuality) -> Result<()> {
    write_stdout(|out| {
        writeln!(out)?;
        let lines = [asides, &[quality.to_string()]].concat();
        for line in lines.iter().flat_map(|text| text.split('\n')) {
            writeln!(out, "{}", printable(line))?;
        }
        Ok(())
    })
}

/// The width of the standard output; `None` if it is not a terminal.
pub(super) fn terminal_width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(io::stdout())?;
    Some(usize::from(width.0))
}
