//! Every format of a profile whose names are chosen to do harm.

use std::io::Write;
use std::process::Command;

use prof_model::is_printable;

use super::readers;
use crate::calltree::{CallTree, Split};
use crate::format::{
    annotate, csv, diff, differential, firefox, flamechart, flamegraph, folded, json, pprof,
    script, speedscope, table, timeline, tree,
};
use crate::profile::Unit;
use crate::source::Sources;
use crate::symbolize::SymbolizedProfile;
use crate::testing::{TestProfile, everything};
use crate::view::annotate::{Annotation, Wanted};
use crate::view::chart::Chart;
use crate::view::diff::{Basis, Diff};
use crate::view::flat::Flat;
use crate::view::groups::{CodeGroups, Groups};
use crate::view::outline::Outline;
use crate::view::timeline::Timeline;

/// Clears the screen, starts a formula, breaks lines and tables, reverses the direction of text, is
/// invalid XML, and is a link, code and a row of a table in Markdown. (Without the separators of
/// test profiles.)
const HOSTILE: &str =
    "=\u{1b}[2J\u{9b}31m\r\n\t\u{202e}x\u{200b}\u{feff}\u{fffe}\u{7}\0`[x](y)`|<b>]]>&\"'";

fn hostile(weight: u64) -> SymbolizedProfile {
    let mut test = TestProfile::new();
    test.line(&format!("{HOSTILE} {HOSTILE}!{HOSTILE};{HOSTILE} {weight}"));
    test.line(&format!("{HOSTILE} {HOSTILE}!{HOSTILE};jit:{HOSTILE} 1"));
    let event = &mut test.profile.events[0];
    event.name = HOSTILE.into();
    event.unit = Unit::Count(HOSTILE.into());
    let header = &mut test.profile.header;
    header.command_line = vec![HOSTILE.into(), HOSTILE.into()];
    for text in [
        &mut header.hostname,
        &mut header.os_release,
        &mut header.arch,
    ] {
        *text = Some(HOSTILE.into());
    }
    test.finish_with(Some(HOSTILE))
}

/// The checks for a format.
#[derive(Clone, Copy)]
enum Rules {
    /// Text for the terminal and other text: these control characters are our own.
    Text(&'static [char]),
    Csv,
    Markdown,
    Json,
    Svg,
    /// Lengths come before texts.
    Binary,
}

type Write1 = fn(&SymbolizedProfile, &mut Vec<u8>);

const TEXT: Rules = Rules::Text(&['\n']);

const FORMATS: &[(&str, Rules, Write1)] = &[
    ("table", TEXT, |p, out| {
        let tree = tree_of(p);
        table::write(
            &tree,
            &Flat::new(&tree),
            &table::TableOptions::default(),
            out,
        )
        .unwrap();
    }),
    ("modules", TEXT, |p, out| {
        let (tree, options) = (tree_of(p), table::TableOptions::default());
        table::write_groups(
            &tree,
            &Groups::code(&tree, CodeGroups::Modules),
            "Module",
            &options,
            out,
        )
        .unwrap();
    }),
    ("tree", TEXT, |p, out| {
        let tree = tree_of(p);
        tree::write(&tree, &Outline::new(&tree, 0.0), None, out).unwrap();
    }),
    ("timeline", TEXT, |p, out| {
        timeline::write(&timeline_of(p), None, out).unwrap();
    }),
    ("annotate", TEXT, |p, out| {
        let options = annotate::AnnotateOptions {
            width: None,
            context: 1,
            min_percent: 0.0,
            colors: false,
        };
        let sources = Sources::default();
        let annotation = Annotation::new(p, &everything(), Wanted::Hottest(&sources)).unwrap();
        annotate::write(&annotation, None, &sources, &options, out).unwrap();
    }),
    ("folded", TEXT, |p, out| {
        folded::write(&tree_of(p), out).unwrap()
    }),
    ("script", Rules::Text(&['\n', '\t']), |p, out| {
        script::write(p, &everything(), out).unwrap();
    }),
    ("csv", Rules::Csv, |p, out| {
        let tree = tree_of(p);
        csv::write(&tree, &Flat::new(&tree), out).unwrap();
    }),
    ("diff", TEXT, |p, out| changes(p, false, out)),
    ("diff --markdown", Rules::Markdown, |p, out| {
        changes(p, true, out)
    }),
    ("flamegraph", Rules::Svg, |p, out| {
        flamegraph::write(&tree_of(p), &flamegraph::FlameOptions::default(), out).unwrap();
    }),
    ("flamechart", Rules::Svg, |p, out| {
        let chart = Chart::new(p, &everything(), Split::Name, 0.0).unwrap();
        flamechart::write(&chart, &flamegraph::FlameOptions::default(), out).unwrap();
    }),
    ("timeline.svg", Rules::Svg, |p, out| {
        timeline::write_svg(&timeline_of(p), &timeline::SvgOptions::default(), out).unwrap();
    }),
    ("diff.svg", Rules::Svg, |p, out| {
        let (before, options) = (hostile(3), flamegraph::FlameOptions::default());
        differential::write(&tree_of(&before), &tree_of(p), false, &options, out).unwrap();
    }),
    ("json", Rules::Json, |p, out| {
        json::calls(&tree_of(p), json::CallView::Calls, out).unwrap()
    }),
    ("timeline.json", Rules::Json, |p, out| {
        json::timeline(&timeline_of(p), out).unwrap()
    }),
    ("speedscope", Rules::Json, |p, out| {
        speedscope::write(p, &everything(), out).unwrap()
    }),
    ("firefox", Rules::Json, |p, out| {
        firefox::write(p, &everything(), out).unwrap()
    }),
    ("pprof", Rules::Binary, |p, out| {
        pprof::write(p, &everything(), out).unwrap()
    }),
];

fn tree_of(profile: &SymbolizedProfile) -> CallTree<'_> {
    CallTree::new(profile, &everything(), Split::Name).unwrap()
}

fn timeline_of(profile: &SymbolizedProfile) -> Timeline<'_> {
    Timeline::new(profile, &everything(), Split::Thread, 10).unwrap()
}

fn changes(profile: &SymbolizedProfile, markdown: bool, out: &mut Vec<u8>) {
    let before = hostile(3);
    let diff = Diff::new(&tree_of(&before), &tree_of(profile), Basis::Weight).unwrap();
    let options = diff::DiffOptions {
        markdown,
        ..diff::DiffOptions::default()
    };
    diff::write(&diff, &options, out).unwrap();
}

#[test]
fn hostile_names_do_no_harm_in_any_format() {
    let profile = hostile(5);
    for (format, rules, write) in FORMATS {
        let mut bytes = Vec::new();
        write(&profile, &mut bytes);
        match rules {
            Rules::Binary => continue,
            Rules::Text(ours) => check_text(format, &bytes, ours),
            Rules::Csv => {
                check_text(format, &bytes, &['\n']);
                check_csv(&bytes);
            }
            Rules::Markdown => {
                check_text(format, &bytes, &['\n']);
                let text = String::from_utf8(bytes).unwrap();
                for active in ["[x]", "``", " `", "<b>"] {
                    assert!(!text.contains(active), "{format}: {active} in\n{text}");
                }
            }
            Rules::Json => {
                serde_json::from_slice::<serde_json::Value>(&bytes).unwrap();
                // Other escapes are left to readers: paths are unchanged.
                let text = String::from_utf8(bytes).unwrap();
                assert!(!text.contains(|c: char| c < ' ' && c != '\n'), "{format}");
            }
            Rules::Svg => {
                // Lines and tabs are those of inferno's script.
                check_text(format, &bytes, &['\n', '\t']);
                check_xml(format, &bytes);
            }
        }
    }
}

#[track_caller]
fn check_text(format: &str, bytes: &[u8], ours: &[char]) {
    let text = std::str::from_utf8(bytes).unwrap();
    assert!(
        text.contains("\\x1b[2J") || text.contains("\\\\x1b"),
        "{format}: {text}"
    );
    let bad = text
        .chars()
        .find(|&c| !is_printable(c) && !ours.contains(&c));
    assert_eq!(bad, None, "{format}: {text:?}");
    // A line break in a name would start a line with the text after it.
    assert!(!text.contains("\n\\t\\u{202e}"), "{format}: {text}");
}

fn check_csv(bytes: &[u8]) {
    for row in ::csv::Reader::from_reader(bytes).records() {
        for cell in &row.unwrap() {
            assert!(
                !cell.starts_with(['=', '+', '-', '@', '\t', '\r']),
                "{cell}"
            );
        }
    }
}

fn check_xml(format: &str, bytes: &[u8]) {
    if !readers::has("python3", "--version") {
        return;
    }
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(bytes).unwrap();
    let parse =
        "import sys, xml.dom.minidom as m; print(m.parse(sys.argv[1]).documentElement.tagName)";
    let mut python = Command::new("python3");
    python.args(["-c", parse]).arg(file.path());
    assert_eq!(readers::output(&mut python).trim(), "svg", "{format}");
}
