//! `prof diff`: what changed from one recording to another.

use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use prof_model::Verdict;
use prof_report::format::diff;
use prof_report::format::flamegraph::FlameOptions;
use prof_report::view::diff::Diff;
use prof_report::{CallTree, Filter, Split, SymbolizedProfile};

use super::text::terminal_width;
use crate::console::Console;
use crate::flags::DiffFlags;
use crate::names::{self, Detail};
use crate::output::{write_file, write_stdout};

/// Compares two recordings: a table, or the flamegraphs that the flags ask for.
///
/// # Errors
///
/// When a recording cannot be read or has no samples to compare, the two count different things,
/// or an output cannot be written.
pub(crate) fn run(flags: DiffFlags) -> Result<ExitCode> {
    let detail = Detail::new(flags.filter.no_inline);
    let before = names::read(&flags.before, &flags.symbols, detail)?;
    let after = names::read(&flags.after, &flags.symbols, detail)?;
    let filter = Filter::from(flags.filter);
    let tree_before = CallTree::new(&before, &filter, Split::default())?;
    let tree_after = CallTree::new(&after, &filter, Split::default())?;
    let graphs = [(&flags.flamegraph, false), (&flags.flamegraph_before, true)];
    for (path, gone) in graphs {
        if let Some(path) = path {
            let options = FlameOptions::default();
            write_file(path, |out| {
                Ok(diff::flamegraph(
                    &tree_before,
                    &tree_after,
                    gone,
                    &options,
                    out,
                )?)
            })?;
        }
    }
    if graphs.iter().all(|(path, _)| path.is_none()) {
        let options = diff::DiffOptions {
            width: terminal_width(),
            rows: flags.limit,
            min_change: flags.min_change,
            markdown: flags.markdown,
        };
        let diff = Diff::new(&tree_before, &tree_after)?;
        write_stdout(|out| Ok(diff::write(&diff, &options, out)?))?;
    }
    tell_verdict(&flags.before, &before);
    tell_verdict(&flags.after, &after);
    Ok(ExitCode::SUCCESS)
}

/// A comparison is worth what the worse of its sides is.
fn tell_verdict(path: &Path, profile: &SymbolizedProfile) {
    let verdict = Verdict::new(profile.quality());
    Console::new(false, false).say(format_args!("{}: {verdict}", path.display()));
}
