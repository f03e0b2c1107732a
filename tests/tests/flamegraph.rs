//! The flamegraph and the table, as people get to see them.

use std::path::Path;

use prof_tests::{Need, Outcome, Program, Session, needs};

const SHARES: Program = Program::c(&["shares.c"]);

#[track_caller]
fn assert_svg(session: &Session, file: &str, words: &[&str]) {
    let svg = std::fs::read_to_string(session.path(file)).unwrap();
    for word in words {
        assert!(svg.contains(word), "no {word} in {file}");
    }
    if needs(&[Need::Tool("/usr/bin/python3")]) {
        let code = "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])";
        let python = session.command(Path::new("/usr/bin/python3"), ["-c", code, file]);
        Outcome::of(python).assert_code(0);
    }
}

#[test]
fn straight_from_one_command() {
    let session = Session::new();
    let binary = SHARES.build();
    let recorded = session.record(
        &["-e", "cpu-clock", "--flamegraph", "out.svg"],
        &[binary.to_str().unwrap(), "300"],
    );
    recorded.outcome.assert_says(&["out.svg"]);
    let words = [
        "<svg",
        "burn_sixty",
        "samples of cpu-clock — verdict: ",
        " ms, ",
        "Search",
        "_start",
    ];
    assert_svg(&session, "out.svg", &words);
    // Libraries that share a hue are next to each other, the heavier one first.
    let svg = std::fs::read_to_string(session.path("out.svg")).unwrap();
    let legend = [">libc.so.6", ", libc.so.6"];
    assert!(legend.iter().any(|it| svg.contains(it)), "{svg}");
}

#[test]
fn differences_show_the_verdicts_of_both_recordings() {
    let session = Session::new();
    let recorded = session.record(&[], &[SHARES.build().to_str().unwrap(), "300"]);
    let file = recorded.file.to_str().unwrap();
    let drawn = session.run(["diff", file, file, "--flamegraph", "diff.svg"]);
    drawn.assert_code(0);
    assert_svg(
        &session,
        "diff.svg",
        &["own time; verdict: ", " before, ", " after"],
    );
}

#[test]
fn names_of_templates_are_escaped() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let recorded = session.record(&[], &[Program::cpp(&["inlining.cpp"]).build()]);
    recorded.report(&["--flamegraph", "out.svg", "--title", "a < b & \"c\""]);
    assert_svg(
        &session,
        "out.svg",
        &["shapes::Polygon&lt;", "a &lt; b &amp;"],
    );
    recorded.report(&["--short-names", "--flamegraph", "out.svg"]);
    assert_svg(&session, "out.svg", &["shapes::Polygon::area "]);
}

#[test]
fn the_table_shows_self_and_total_with_module_and_then_the_verdict() {
    let session = Session::new();
    let recorded = session.record(
        &["-e", "cpu-clock"],
        &[SHARES.build().to_str().unwrap(), "500"],
    );
    let outcome = recorded.report(&["--no-inline"]);
    let line = |function: &str| {
        let line = outcome.stdout.lines().find(|line| line.contains(function));
        line.unwrap_or_else(|| panic!("no {function}: {outcome}"))
    };
    let percentages = |function| -> Vec<f64> {
        let words = line(function).split(|c: char| c.is_whitespace() || c == '%');
        words.filter_map(|word| word.parse().ok()).collect()
    };
    let (sixty, main) = (percentages("burn_sixty"), percentages(" main"));
    assert!((40.0..80.0).contains(&sixty[0]), "{outcome}");
    assert!(main.iter().any(|share| *share > 95.0), "{outcome}");
    assert!(line("burn_sixty").contains("shares"), "{outcome}");
    let said = outcome.stdout.clone() + &outcome.stderr;
    assert!(said.contains("verdict: good"), "{outcome}");
}

#[test]
fn the_report_is_the_same_each_time() {
    let session = Session::new();
    let recorded = session.record(&[], &[Program::c(&["libc.c"]).build()]);
    let folded = || recorded.report(&["--folded", "-"]).stdout;
    assert!(folded() == folded());
    let draw = |name: &str| {
        recorded.report(&["--flamegraph", name]);
        std::fs::read(session.path(name)).unwrap()
    };
    assert!(draw("1.svg") == draw("2.svg"));
}
