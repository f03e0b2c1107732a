//! pprof's format, read by `go tool pprof` and by speedscope.

use std::fs;
use std::process::Command;

use super::super::pprof;
use super::{expected, filters, readers, written};
use crate::calltree::{CallTree, Split};
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::format::pprof::message::Label;
use crate::testing::{TestProfile, demo, everything};
use crate::view::flat::Flat;

#[test]
fn samples_have_the_language_of_their_innermost_function() {
    let symbolized = TestProfile::of(&[
        "t main;ns::run 1",
        "t main;ns::run;compare;k:page_fault 2",
        "t k:kthread 4",
    ]);
    let shown = FilteredSamples::new(&symbolized, &everything()).unwrap();
    let profile = pprof::message(&shown);
    let string = |index: i64| &*profile.string_table[index as usize];
    let language = |labels: &[Label]| {
        let label = labels.iter().find(|label| string(label.key) == "language");
        label.map(|label| string(label.str).to_owned())
    };
    let found: Vec<_> = profile
        .sample
        .iter()
        .map(|it| language(&it.label))
        .collect();
    assert_eq!(found, [Some("C++".into()), Some("C".into()), None]);
}

#[test]
fn speedscope_reads_the_same_stacks() {
    let symbolized = demo();
    // It drops inlined functions of pprof's files.
    let filters = filters().into_iter().map(|(name, filter)| {
        let filter = Filter {
            no_inline: true,
            ..filter
        };
        (name, filter)
    });
    let filters: Vec<_> = filters.collect();
    let write = |filter| written(|out| pprof::write(&symbolized, filter, out));
    let files: Vec<_> = filters.iter().map(|(_, filter)| write(filter)).collect();
    let Some(read) = readers::speedscope(".pb.gz", &files) else {
        return;
    };
    for ((name, filter), read) in filters.iter().zip(read) {
        assert_eq!(
            read,
            expected(&symbolized, filter, Split::Nothing),
            "{name}"
        );
    }
}

/// The output of `go tool pprof` for the demo.
fn go_tool_pprof(arguments: &[&str]) -> Option<String> {
    if !readers::has("go", "version") {
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("demo.pb.gz");
    fs::write(
        &path,
        written(|out| pprof::write(&demo(), &everything(), out)),
    )
    .unwrap();
    let mut command = Command::new("go");
    command.args(["tool", "pprof"]).args(arguments).arg(path);
    Some(readers::output(&mut command))
}

#[test]
fn go_tool_pprof_sums_up_as_we_do() {
    let Some(top) = go_tool_pprof(&["-top", "-unit=ns", "-nodecount=1000", "-nodefraction=0"])
    else {
        return;
    };
    let symbolized = demo();
    let tree = CallTree::new(&symbolized, &everything(), Split::Nothing).unwrap();
    let flat = Flat::new(&tree);
    let ns = |number: u64| match number {
        0 => "0".to_owned(),
        number => format!("{number}ns"),
    };
    let mut rows: Vec<_> = flat
        .rows
        .iter()
        .map(|row| {
            let name = symbolized[row.function].name.to_string();
            (name, ns(row.own.value), ns(row.total.value))
        })
        .collect();
    // `   500000000ns 50.00% 50.00%  900000000ns 90.00%  compute`
    let lines = top
        .lines()
        .skip_while(|line| !line.contains("flat%"))
        .skip(1);
    let mut read: Vec<_> = lines
        .map(|line| {
            let words: Vec<_> = line.split_whitespace().collect();
            let name = words[5..].join(" ");
            let name = name
                .trim_end_matches(" (inline)")
                .trim_end_matches(" (partial-inline)");
            (name.to_owned(), words[0].to_owned(), words[3].to_owned())
        })
        .collect();
    rows.sort();
    read.sort();
    assert_eq!(read, rows);
}

#[test]
fn go_tool_pprof_finds_types_labels_lines_and_mappings() {
    let Some(raw) = go_tool_pprof(&["-raw"]) else {
        return;
    };
    for part in [
        "PeriodType: cpu nanoseconds",
        "samples/count cpu/nanoseconds[dflt]",
        "process:[demo] thread:[demo]",
        "process:[demo] thread:[worker]",
        "pid:[1] tid:[3]",
        "ns::innermost /src/demo.c:10",
        "ns::inner /src/demo.c:11",
        "/bin/demo  [FN][FL][LN][IN]",
        "/bin/libz.so.1",
    ] {
        assert!(raw.contains(part), "no {part} in\n{raw}");
    }
}
