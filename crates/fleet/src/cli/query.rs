//! `prof query`.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use prof_console::{say, write_stdout};
use prof_filemap::output::Output;
use prof_model::counted;
use prof_report::format::flamegraph::{self, FlameOptions};
use prof_report::format::html::{self, HtmlInput};
use prof_report::format::json::{self, CallView};
use prof_report::format::table::{self, TableOptions};
use prof_report::format::{diff, differential, folded};
use prof_report::view::diff::{Basis, Diff};
use prof_report::view::flat::Flat;
use prof_report::{CallTree, Filter, Pattern, Sources, Split, SymbolizedProfile};
use prof_symbols::{Debuginfod, SymbolOptions, Symbolizer};

use super::values::{Side, Sides, label, labels, rows, time};
use crate::query::{Found, Selection, profile_of, scan, without_frames};
use crate::store::Store;

/// The query, and how to show the result.
#[derive(Debug, Args)]
pub(super) struct QueryFlags {
    /// The data set: a directory or s3://BUCKET/PREFIX
    #[arg(value_name = "URL")]
    url: String,

    /// Only from this time on: 2026-11-24T13:00:00Z, 2026-11-24, or this long ago (6h); times
    /// without a zone are UTC; ten seconds count as a whole, if they begin then
    #[arg(long, value_name = "TIME", value_parser = time)]
    since: Option<i64>,

    /// Only before this time, written as for --since (without a zone in UTC); ten seconds count as
    /// a whole, if they begin before
    #[arg(long, value_name = "TIME", value_parser = time)]
    until: Option<i64>,

    /// Only of this service; may be repeated
    #[arg(long = "service", value_name = "NAME")]
    services: Vec<String>,

    /// Only of this machine; may be repeated
    #[arg(long = "host", value_name = "NAME")]
    hosts: Vec<String>,

    /// Only with this label; may be repeated, and then all are needed
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// Only stacks with a function whose name matches
    #[arg(long, value_name = "REGEX")]
    function: Option<Pattern>,

    /// The event [default: that with the most samples]
    #[arg(short, long, value_name = "EVENT")]
    event: Option<String>,

    /// Draw a flamegraph
    #[arg(long, value_name = "FILE")]
    flamegraph: Option<PathBuf>,

    /// Write a page for browsers
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,

    /// Write folded stacks; - is the standard output
    #[arg(long, value_name = "FILE", conflicts_with = "diff")]
    folded: Option<PathBuf>,

    /// Write functions and calls as JSON, as `prof report --json` does
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// The number of functions to show
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = rows)]
    top: usize,

    /// Compare two parts: two times (SINCE..UNTIL), or two of host=, service= or a label
    #[arg(long, value_name = "A,B", value_parser = Sides::parse)]
    diff: Option<Sides>,
}

impl QueryFlags {
    fn selection(&self) -> Result<Selection> {
        Ok(Selection {
            since: self.since,
            until: self.until,
            services: self.services.clone(),
            hosts: self.hosts.clone(),
            labels: labels(&self.labels)?,
        })
    }

    /// Whether a file is requested that comparisons have, too.
    fn draws(&self) -> bool {
        self.flamegraph.is_some() || self.json.is_some() || self.html.is_some()
    }
}

/// Answers.
pub(super) fn run(flags: &QueryFlags) -> Result<()> {
    let selection = flags.selection()?;
    let store = Store::open_existing(&flags.url)?;
    let filter = Filter {
        event: flags.event.clone(),
        function: flags.function.clone(),
        ..Filter::default()
    };
    if let Some(sides) = &flags.diff {
        return compare(flags, &store, &filter, sides, &selection);
    }
    let (profile, found) = answer(&store, &selection)?;
    let tree = CallTree::new(&profile, &filter, Split::Nothing)?;
    let closing = closing(&found, &tree, &filter) + &others(&profile, &tree.event().name);
    let picture = FlameOptions {
        title: flags.url.clone(),
        subtitle: Some(closing.clone()),
        ..FlameOptions::default()
    };
    write_to(&flags.folded, |out| Ok(folded::write(&tree, out)?))?;
    write_to(&flags.flamegraph, |out| {
        Ok(flamegraph::write(&tree, &picture, out)?)
    })?;
    write_to(&flags.json, |out| {
        Ok(json::calls(&tree, CallView::Calls, out)?)
    })?;
    write_to(&flags.html, |out| {
        page(&flags.url, &[&profile], &filter, out)
    })?;
    if flags.folded.is_some() || flags.draws() {
        say(&closing);
        return Ok(());
    }
    let options = TableOptions {
        width: width(),
        bars: std::io::stdout().is_terminal(),
        rows: Some(flags.top),
        min_percent: 0.0,
    };
    write_stdout(|out| {
        table::write(&tree, &Flat::new(&tree), &options, &mut *out)?;
        writeln!(out, "\n{closing}")?;
        Ok(())
    })
}

fn compare(
    flags: &QueryFlags,
    store: &Store,
    filter: &Filter,
    sides: &Sides,
    of: &Selection,
) -> Result<()> {
    let side = |part: &Side| answer(store, &part.of(of.clone())).with_context(|| part.name.clone());
    let (before, found_before) = side(&sides.before)?;
    let (after, found_after) = side(&sides.after)?;
    let event = found_before.events.first();
    let event = filter
        .event
        .clone()
        .or(event.map(|event| event.name.to_string()));
    let filter = &Filter {
        event,
        ..filter.clone()
    };
    let trees = [&before, &after].map(|profile| CallTree::new(profile, filter, Split::Nothing));
    let [tree_before, tree_after] = trees;
    let (tree_before, tree_after) = (tree_before?, tree_after?);
    let compared = Diff::new(&tree_before, &tree_after, Basis::default())?;
    let picture = FlameOptions::default();
    write_to(&flags.flamegraph, |out| {
        let (before, after) = (&tree_before, &tree_after);
        Ok(differential::write(before, after, false, &picture, out)?)
    })?;
    write_to(&flags.json, |out| {
        Ok(json::diff(&tree_before, &tree_after, &compared, out)?)
    })?;
    write_to(&flags.html, |out| {
        page(&flags.url, &[&before, &after], filter, out)
    })?;
    if !flags.draws() {
        let options = diff::DiffOptions {
            before: sides.before.name.clone(),
            after: sides.after.name.clone(),
            width: width(),
            rows: Some(flags.top),
            min_change: 0.0,
            markdown: false,
        };
        write_stdout(|out| Ok(diff::write(&compared, &options, out)?))?;
    }
    let closing_before = closing(&found_before, &tree_before, filter);
    let closing_after = closing(&found_after, &tree_after, filter);
    say(&format!("{}: {closing_before}", sides.before.name));
    say(&format!("{}: {closing_after}", sides.after.name));
    Ok(())
}

/// The profile of a selection, and the sums that it is made of.
fn answer(store: &Store, selection: &Selection) -> Result<(SymbolizedProfile, Found)> {
    let found = scan(store, selection)?;
    for alias in &found.aliases {
        say(&format!("{alias}: it counts once, as the latter"));
    }
    if found.sums.is_empty() {
        bail!(
            "no samples to show: the data set is empty, or --since, --until, --service, --host and \
             --label leave out all of it"
        );
    }
    let profile = profile_of(store, selection, &found)?;
    // Most frames bring their names.
    let symbolizer = Symbolizer::new(SymbolOptions {
        debuginfod: Debuginfod::from_environment(),
        ..SymbolOptions::default()
    });
    Ok((SymbolizedProfile::new(profile, &symbolizer), found))
}

/// A line about the data of what is shown.
fn closing(found: &Found, tree: &CallTree<'_>, filter: &Filter) -> String {
    let profile = tree.symbolized().profile();
    let events = profile.events.iter();
    let event = events.take_while(|event| !std::ptr::eq(*event, tree.event()));
    let event = u16::try_from(event.count()).unwrap_or(u16::MAX);
    let counts = found.counts(event);
    let mut line = format!(
        "{} of {} on {}",
        counted(counts.samples, "sample"),
        counted(counts.runs as u64, "recording"),
        counted(counts.hosts as u64, "host"),
    );
    if filter.function.is_some() {
        let shown = tree.total().samples;
        line += &format!("; {shown} of these have a function that matches --function");
    }
    line += &match without_frames(profile, event) {
        0 if counts.stacks == 0 => "; no user stacks".to_owned(),
        0 => {
            let share = counts.whole as f64 / counts.stacks as f64;
            format!("; {:.1} % of the stacks are whole", share * 100.0)
        }
        missing => format!(
            "; the data set lacks the frames of {}: see `prof data check`",
            counted(missing, "sample")
        ),
    };
    line
}

/// The events that the result leaves out; empty if there are none.
fn others(profile: &SymbolizedProfile, shown: &str) -> String {
    let events = profile.profile().events.iter().map(|event| &*event.name);
    let others: Vec<&str> = events.filter(|&name| name != shown).collect();
    match others.is_empty() {
        true => String::new(),
        false => format!(
            "; this shows {shown}, --event NAME shows {}",
            others.join(", ")
        ),
    }
}

fn page(
    title: &str,
    profiles: &[&SymbolizedProfile],
    filter: &Filter,
    out: &mut dyn Write,
) -> Result<()> {
    let inputs = profiles.iter().map(|&profile| HtmlInput {
        profile,
        code: Vec::new(),
    });
    let inputs: Vec<_> = inputs.collect();
    Ok(html::write(
        title,
        &inputs,
        filter,
        &Sources::default(),
        out,
    )?)
}

/// Writes a file, if there is to be one, as a whole or not at all; `-` is the standard output.
fn write_to(path: &Option<PathBuf>, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let Some(path) = path else {
        return Ok(());
    };
    if path == Path::new("-") {
        return write_stdout(fill);
    }
    let write = || -> Result<()> { Output::create(path)?.fill(false, fill) };
    write().with_context(|| format!("cannot write {}", path.display()))
}

/// The width of the terminal; `None` for pipes and files.
fn width() -> Option<usize> {
    let (width, _) = terminal_size::terminal_size_of(std::io::stdout())?;
    Some(usize::from(width.0))
}
