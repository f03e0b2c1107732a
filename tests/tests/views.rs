//! Views of real recordings: pictures over time, merged threads, and common properties of all
//! outputs.

use std::collections::HashMap;
use std::path::Path;

use prof_tests::{Need, Outcome, Program, Recorded, Session, USER_CODE, needs, perf_record};
use serde_json::Value;

const THREADS: Program = Program::c(&["threads.c"]);

fn record(session: &Session) -> Recorded<'_> {
    session.record(USER_CODE, &[THREADS.build().to_str().unwrap(), "200"])
}

fn assert_xml(session: &Session, file: &str) -> String {
    if needs(&[Need::Tool("/usr/bin/python3")]) {
        let code = "import sys, xml.dom.minidom as m; m.parse(sys.argv[1])";
        let python = session.command(Path::new("/usr/bin/python3"), ["-c", code, file]);
        Outcome::of(python).assert_code(0);
    }
    std::fs::read_to_string(session.path(file)).unwrap()
}

#[test]
fn the_timeline_has_a_row_for_each_thread() {
    let session = Session::new();
    let recorded = record(&session);
    let rows = |options: &[&str]| {
        let mut arguments = vec!["--timeline"];
        arguments.extend(options);
        let outcome = recorded.report(&arguments);
        // Low ones only, where the machine had little time for us.
        let is_row = |line: &&str| line.contains(|c| ('▁'..='█').contains(&c));
        let rows = outcome.stdout.lines().filter(is_row).map(str::to_owned);
        (rows.collect::<Vec<_>>(), outcome)
    };
    let (threads, outcome) = rows(&[]);
    assert!(threads.len() >= 2, "{outcome}");
    let (processes, outcome) = rows(&["--by", "process"]);
    assert_eq!(processes.len(), 1, "{outcome}");
    let (merged, outcome) = rows(&["--merge-threads=.*"]);
    assert_eq!(merged.len(), 1, "{outcome}");
    recorded.report(&["--timeline=line.svg", "--title", "a & b"]);
    let svg = assert_xml(&session, "line.svg");
    assert!(
        svg.contains("a &amp; b") && svg.matches("<rect").count() > 20,
        "{svg}"
    );
}

/// Ten runs one after the other, with the pauses between them left out.
#[test]
fn recordings_follow_each_other_on_the_timeline() {
    let session = Session::new();
    let program = Program::c(&["shares.c"]).build();
    let timeline = |inputs: &[String]| {
        let inputs = inputs.iter().flat_map(|input| ["-i", input.as_str()]);
        let view = ["report", "--timeline", "--json", "-", "--by", "process"];
        let outcome = session.run(view.into_iter().chain(inputs));
        outcome.assert_code(0);
        let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let rows = json["rows"].as_array().unwrap();
        let moments = rows[0]["values"].as_array().unwrap().len() as u64;
        (json["step"].as_u64().unwrap() * moments, rows.len())
    };
    let names: Vec<String> = (0..10).map(|number| format!("{number}.data")).collect();
    let mut alone = 0;
    for name in &names {
        session.record(
            &["-e", "cpu-clock:u", "-o", name],
            &[program.to_str().unwrap(), "20"],
        );
        alone += timeline(std::slice::from_ref(name)).0;
    }
    let (together, rows) = timeline(&names);
    assert_eq!(rows, 10);
    // Each has the period of its first sample more, and moments are rounded up.
    assert!(together <= alone, "{together} ns, {alone} ns alone");
    assert!(together * 4 > alone, "{together} ns, {alone} ns alone");
}

#[test]
fn the_flame_chart_has_a_lane_for_each_thread() {
    let session = Session::new();
    let recorded = record(&session);
    recorded.report(&["--flamechart", "chart.svg", "--width", "900"]);
    let svg = assert_xml(&session, "chart.svg");
    for text in [
        "Flame Chart",
        "in the order of time",
        "thread_main",
        "width=\"900\"",
        "id=\"axis\"",
        "s</text>",
    ] {
        assert!(svg.contains(text), "no {text}");
    }
    // The thread itself is the first row of its lane, as wide as all of the time.
    let lanes = svg.matches("<rect x=\"0.0000%\"").count();
    assert!(svg.matches("sampled for ").count() <= lanes, "{svg}");
}

/// Everything that can be written of a recording, in one run.
const ALL_FILES: [(&str, &str); 9] = [
    ("--flamegraph", "f.svg"),
    ("--flamechart", "c.svg"),
    ("--folded", "f.folded"),
    ("--pprof", "p.pb.gz"),
    ("--firefox", "f.json"),
    ("--speedscope", "s.json"),
    ("--json", "r.json"),
    ("--csv", "r.csv"),
    ("--palette", "module"),
];

#[test]
fn one_thread_and_many_write_the_same() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[Program::cpp(&["inlining.cpp"]).build()]);
    let write = |threads: &str| -> Vec<Vec<u8>> {
        let mut prof = session.prof(["report", "-i"]);
        prof.arg(&recorded.file).env("RAYON_NUM_THREADS", threads);
        prof.args(ALL_FILES.iter().flat_map(|(flag, value)| [flag, value]));
        Outcome::of(prof).assert_code(0);
        let mut written: Vec<Vec<u8>> = ALL_FILES[..8]
            .iter()
            .map(|(_, file)| std::fs::read(session.path(file)).unwrap())
            .collect();
        let texts: [&[&str]; 6] = [
            &["report"],
            &["report", "--tree"],
            &["report", "--callers", "burn"],
            &["report", "--timeline"],
            &["annotate", "--asm"],
            &["script"],
        ];
        for arguments in texts {
            let mut prof = session.prof(arguments);
            prof.arg("-i").arg(&recorded.file);
            let outcome = Outcome::of({
                prof.env("RAYON_NUM_THREADS", threads);
                prof
            });
            outcome.assert_code(0);
            assert!(
                !outcome.stdout.contains('\u{1b}'),
                "colours in a pipe: {outcome}"
            );
            written.push(outcome.stdout.into_bytes());
        }
        written
    };
    let one = write("1");
    for threads in ["2", "7"] {
        for (index, (one, many)) in one.iter().zip(write(threads)).enumerate() {
            assert!(
                *one == many,
                "output {index} differs with {threads} threads"
            );
        }
    }
}

#[test]
fn a_report_that_fails_leaves_files_as_they_were() {
    let session = Session::new();
    let recorded = record(&session);
    let file = recorded.file.to_str().unwrap();
    session.write("old.svg", b"old");
    for options in [
        &["--flamegraph", "old.svg", "--callers", "no_such_function"][..],
        &["--flamechart", "old.svg", "--pid", "1"],
        &["--timeline=old.svg", "--comm", "nobody"],
        &["--json", "old.svg", "--event", "cycles:z"],
    ] {
        let outcome = session.run(["report", "-i", file].iter().chain(options));
        outcome.assert_refused(&[]);
        assert_eq!(
            std::fs::read(session.path("old.svg")).unwrap(),
            b"old",
            "{outcome}"
        );
    }
    let names = std::fs::read_dir(session.directory()).unwrap();
    let left = names.filter(|name| {
        let name = name.as_ref().unwrap().file_name();
        name.to_string_lossy().starts_with(".old")
    });
    assert_eq!(left.count(), 0, "temporary files are left");
    session
        .run(["report", "-i", file, "--folded", "/dev/full"])
        .assert_refused(&["/dev/full", "no space left"]);
}

#[test]
fn every_requested_output_is_written() {
    let session = Session::new();
    let recorded = record(&session);
    let check = |options: &[&str], text: &str, files: &[&str]| {
        let outcome = recorded.report(options);
        assert!(outcome.stdout.contains(text), "{options:?}: {outcome}");
        for file in files {
            let size = std::fs::metadata(session.path(file)).map(|file| file.len());
            assert!(size.is_ok_and(|size| size > 0), "{options:?}: no {file}");
            std::fs::remove_file(session.path(file)).unwrap();
        }
    };
    let all = [
        "--timeline=t.svg",
        "--flamegraph",
        "f.svg",
        "--pprof",
        "p.gz",
    ];
    check(&all, "", &["t.svg", "f.svg", "p.gz"]);
    check(&["--timeline", "--csv", "r.csv"], "full height", &["r.csv"]);
    check(&["--tree", "--folded", "f"], "thread_main", &["f"]);
    check(&["--coverage", "--json", "r.json"], "", &["r.json"]);
    check(&["--unwind-failures", "--folded", "f"], "", &["f"]);
    let file = recorded.file.to_str().unwrap();
    let both = ["report", "-i", file, "--tree", "--folded", "-"];
    session.run(both).assert_refused(&["only one output"]);
}

#[test]
fn spellings_of_perf() {
    let session = Session::new();
    // Callers of three hot functions come before these by their total only.
    let program = Program::c(&["shares.c"]).build();
    let recorded = session.record(USER_CODE, &[program]);
    let table = |options: &[&str]| {
        recorded
            .report(&[&["--no-inline"], options].concat())
            .stdout
    };
    let by_total = table(&["--sort", "total"]);
    assert_eq!(by_total, table(&["--children"]));
    assert_ne!(by_total, table(&[]));
    assert_eq!(table(&["--no-children"]), table(&[]));
    assert_eq!(table(&["-g"]), table(&["--tree"]));
    let outcome = session.run(["record", "-b", "--", "true"]);
    outcome.assert_refused(&["--call-graph lbr"]);
    let outcome = session.run(["record", "-o", "my.svg", "--", "true"]);
    outcome.assert_refused(&["--flamegraph my.svg"]);
}

#[test]
fn scripts_have_the_samples_of_all_events() {
    let session = Session::new();
    let program = Program::c(&["threads.c"]).build();
    let events = ["-e", "cpu-clock:u,page-faults:u"];
    let recorded = session.record(&events, &[&program]);
    let script = |options: &[&str]| {
        let file = recorded.file.to_str().unwrap();
        let outcome = session.run(["script", "-i", file].iter().chain(options));
        outcome.assert_code(0);
        ["cpu-clock:u: ", "page-faults:u: "].map(|event| outcome.stdout.contains(event))
    };
    assert_eq!(script(&[]), [true, true]);
    assert_eq!(script(&["--event", "page-faults:u"]), [false, true]);
}

#[test]
fn events_are_found_by_their_whole_names_first() {
    let session = Session::new();
    let program = Program::c(&["threads.c"]).build();
    let recorded = session.record(&["-e", "cpu-clock:u,cpu-clock"], &[&program]);
    let shown = |event: &str| {
        let json = recorded.report(&["--event", event, "--json", "-"]).stdout;
        let json: Value = serde_json::from_str(&json).unwrap();
        json["event"]["name"].clone()
    };
    for event in ["cpu-clock", "cpu-clock:u"] {
        assert_eq!(shown(event), event);
    }
}

#[test]
fn callers_have_no_self_weight_of_what_they_call() {
    let session = Session::new();
    let program = Program::c(&["shares.c"]).build();
    let recorded = session.record(USER_CODE, &[program]);
    let own = |options: &[&str]| -> HashMap<String, u64> {
        let json = recorded.report(&[options, &["--json", "-"]].concat());
        let json: Value = serde_json::from_str(&json.stdout).unwrap();
        let functions = json["functions"].as_array().unwrap().iter();
        let own = functions.map(|it| (&it["name"], &it["self"]["value"]));
        own.map(|(name, own)| (name.as_str().unwrap().to_owned(), own.as_u64().unwrap()))
            .collect()
    };
    let (all, callers) = (own(&[]), own(&["--callers", "^burn_sixty$"]));
    assert!(callers.len() > 1, "{callers:?}");
    for (name, own) in callers {
        let expected = if name == "burn_sixty" { all[&name] } else { 0 };
        assert_eq!(own, expected, "{name}");
    }
    let text = recorded.report(&["--callers", "^burn_sixty$"]).stdout;
    assert!(!text.contains("Self"), "{text}");
}

#[test]
fn recordings_without_times_have_no_timeline() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let program = Program::c(&["threads.c"]).build();
    let file = session.path("perf.data");
    perf_record(&["-e", "cpu-clock", "--no-timestamp"], &file, &[&program]);
    let outcome = session.run(["report", "-i", "perf.data", "--timeline"]);
    outcome.assert_refused(&["no times"]);
}

#[test]
fn tables_follow_the_terminal() {
    if !needs(&[Need::Tool("g++"), Need::Tool("script")]) {
        return;
    }
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[Program::cpp(&["inlining.cpp"]).build()]);
    let prof = session.prof([""; 0]);
    let prof = prof
        .get_args()
        .last()
        .map(|name| name.to_string_lossy().into_owned());
    let prof = prof.unwrap();
    for width in [60, 100] {
        for view in ["", "--tree", "--timeline"] {
            let command = format!(
                "stty cols {width} rows 24; {prof} report {view} -i {}",
                recorded.file.display()
            );
            let script = session.command(Path::new("script"), ["-qec", &command, "/dev/null"]);
            let outcome = Outcome::of(script);
            outcome.assert_code(0);
            let lines = outcome
                .stdout
                .lines()
                .take_while(|line| !line.contains("verdict"));
            let widest = lines
                .skip(1)
                .map(|line| line.trim_end().chars().count())
                .max();
            assert!(widest <= Some(width), "{view} at {width}: {outcome}");
        }
    }
}
