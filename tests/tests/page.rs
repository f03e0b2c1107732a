//! `prof report --html`: the page's tables are those of the report, and the page works in a
//! browser.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_tests::browser::Browser;
use prof_tests::{Need, Outcome, Program, Session, USER_CODE, needs};
use serde_json::{Value, json};

const SHARES: Program = Program::c(&["shares.c"]);
const THREADS: Program = Program::c(&["threads.c"]);
const INLINING: Program = Program::cpp(&["inlining.cpp"]);

/// Three programs, one of them with threads, one in C++.
fn record(session: &Session, file: &str, time: u32) {
    let [shares, threads, inlining] = [SHARES, THREADS, INLINING].map(|it| it.build());
    let others = format!("{} 150; {} 50", threads.display(), inlining.display());
    let script = format!("{} {time}; {others}", shares.display());
    let options = [USER_CODE, &["-o", file]].concat();
    session.record(&options, &["sh", "-c", &script]);
}

fn write_page(session: &Session, arguments: &[&str]) -> PathBuf {
    let arguments = [arguments, &["--html", "page.html"]].concat();
    session.run(arguments).assert_code(0);
    session.path("page.html")
}

/// The tables that the page's own code computes.
fn tables(page: &Path, pattern: &str) -> Value {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut node = Command::new("node");
    node.arg(root.join("crates/report/web/test/tables.mjs"));
    node.arg(page).arg(pattern);
    let outcome = Outcome::of(node);
    outcome.assert_code(0);
    serde_json::from_str(&outcome.stdout).unwrap()
}

fn sorted(rows: impl Iterator<Item = Value>) -> Vec<String> {
    let mut rows: Vec<String> = rows.map(|row| row.to_string()).collect();
    rows.sort();
    rows
}

fn functions(table: &Value) -> Vec<String> {
    let rows = table["functions"].as_array().unwrap().iter();
    sorted(rows.map(|row| json!([row["name"], row["module"], row["self"], row["total"]])))
}

/// Weights by path; functions and threads of the same names are merged.
#[derive(Debug, Default, PartialEq)]
struct Paths(BTreeMap<String, (u64, u64)>);

impl Paths {
    fn add(&mut self, path: &[Value], total: &Value) {
        let sum = self.0.entry(json!(path).to_string()).or_default();
        sum.0 += total["value"].as_u64().unwrap();
        sum.1 += total["samples"].as_u64().unwrap();
    }

    fn of_report(report: &Value) -> Self {
        let mut known: Vec<Vec<Value>> = Vec::new();
        let mut paths = Self::default();
        for node in report["tree"].as_array().unwrap() {
            let parent = node["parent"].as_u64();
            let mut path = parent.map_or_else(Vec::new, |parent| known[parent as usize].clone());
            if let Some(function) = node["function"].as_u64() {
                path.push(report["functions"][function as usize]["name"].clone());
                paths.add(&path, &node["total"]);
            }
            known.push(path);
        }
        paths
    }

    fn of_page(table: &Value, view: &str) -> Self {
        let mut paths = Self::default();
        for row in table[view].as_array().unwrap() {
            paths.add(row["path"].as_array().unwrap(), &row["total"]);
        }
        paths
    }
}

#[test]
fn tables_of_the_page_are_those_of_the_report() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    record(&session, "prof.data", 150);
    // The program may have run on one only.
    let has_samples = |cpu: &String| session.run(["report", "--cpu", cpu]).status.success();
    let cpu = (0..64)
        .map(|cpu| cpu.to_string())
        .find(has_samples)
        .unwrap();
    let script = session.run(["script"]).stdout;
    let of_thread = |line: &str| Some(line.strip_prefix("threads ")?.split_once('/')?.1.to_owned());
    let thread = script.lines().find_map(of_thread).unwrap();
    let thread = thread.split_whitespace().next().unwrap();
    let conditions: [&[&str]; 15] = [
        &[],
        &["--function", "burn_(sixty|thirty)"],
        &["--function", "(?i)BURN_THIRTY"],
        &["--focus", "^burn_thirty$", "--ignore", "burn_ten"],
        &["--tid", thread],
        &["--ignore", "burn_ten"],
        &["--hide", "^burn$"],
        &["--module", "threads"],
        &["--language", "C++"],
        &["--language", "rust,C", "--no-kernel"],
        &["--since", "50ms", "--until", "200ms"],
        &["--no-kernel", "--comm", "shares"],
        &["--cpu", &cpu],
        &["--no-inline"],
        &["--fold-async"],
    ];
    for flags in conditions {
        check_tables(&session, flags, "^burn_thirty$");
    }
}

/// The page's tables are those of the report with the same flags; callers and callees are those of
/// `function`.
fn check_tables(session: &Session, flags: &[&str], function: &str) {
    let page = write_page(session, &[&["report"], flags].concat());
    let table = tables(&page, function);
    let report = |view: &[&str]| -> Option<Value> {
        let arguments = [&["report", "--json", "-"], flags, view].concat();
        serde_json::from_str(&session.run(arguments).stdout).ok()
    };
    let calls = report(&[]).unwrap();
    assert_eq!(functions(&table), functions(&calls), "{flags:?}");
    assert_eq!(
        Paths::of_page(&table, "calls"),
        Paths::of_report(&calls),
        "{flags:?}"
    );
    for view in ["callers", "callees"] {
        match report(&[&format!("--{view}"), function]) {
            Some(report) => {
                assert_eq!(
                    Paths::of_page(&table, view),
                    Paths::of_report(&report),
                    "{flags:?} {view}"
                );
            }
            None => assert!(table.get(view).is_none(), "{flags:?}: {table}"),
        }
    }
}

#[test]
fn tables_of_waits_are_those_of_the_report() {
    if !needs(&[Need::Tool("node"), Need::Root]) {
        return;
    }
    let session = Session::new();
    let binary = Program::c(&["waiting.c"]).build();
    session.record(&["--wall"], &[binary]);
    // The page gives waits to the functions in which threads waited.
    for event in ["wall-clock", "offcpu-time", "cpu-clock"] {
        for native in [&["--native"][..], &[]] {
            let flags = [&["--event", event], native].concat();
            check_tables(&session, &flags, "^sleeps$");
        }
    }
}

#[test]
fn lines_of_the_page_are_those_of_annotate() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    record(&session, "prof.data", 300);
    let page = write_page(&session, &["report"]);
    let lines = |rows: &Value, own: &str| -> Vec<String> {
        let rows = rows.as_array().unwrap().iter();
        sorted(rows.map(|row| json!([row["line"], row[own], row["total"]])))
    };
    for function in ["burn_sixty", "work"] {
        let pattern = format!("^{function}$");
        let annotated = session.run(["annotate", "--json", "-", &pattern]);
        let annotated: Value = serde_json::from_str(&annotated.stdout).unwrap();
        let mut expected = annotated["listings"][0]["lines"].clone();
        for row in expected.as_array_mut().unwrap() {
            row["self"] = row["self"]["value"].take();
            row["total"] = row["total"]["value"].take();
        }
        let expected: Value = (expected.as_array().unwrap().iter())
            .filter(|row| row["total"] != 0)
            .cloned()
            .collect();
        assert!(!expected.as_array().unwrap().is_empty(), "{annotated}");
        let found = tables(&page, &pattern);
        assert_eq!(lines(&found["lines"], "own"), lines(&expected, "self"));
    }
}

/// The program's file has been removed.
#[test]
fn sources_are_found_beside_the_recording() {
    if !needs(&[Need::Tool("node"), Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    let script = "def work():\n    return sum(range(1000))\nfor i in range(20000):\n    work()\n";
    std::fs::create_dir_all(session.path("moved/src")).unwrap();
    std::fs::create_dir(session.path("src")).unwrap();
    session.write("src/app.py", script.as_bytes());
    let program = session.path("src/app.py");
    session.record(USER_CODE, &["python3".as_ref(), program.as_os_str()]);
    for name in ["prof.data", "src/app.py"] {
        let to = session.path("moved").join(name);
        std::fs::rename(session.path(name), to).unwrap();
    }
    let moved = ["-i", "moved/prof.data"];
    let annotated = session.run([&["annotate", "^work$"][..], &moved].concat());
    annotated.assert_code(0);
    assert!(annotated.stdout.contains("return sum("), "{annotated}");
    let page = write_page(&session, &[&["report"][..], &moved].concat());
    let found = tables(&page, "")["sources"].to_string();
    assert!(found.contains("return sum("), "{found}");
}

#[test]
fn the_page_works_in_a_browser() {
    if !needs(&[Need::Tool("chromedriver"), Need::Tool("chromium")]) {
        return;
    }
    let session = Session::new();
    record(&session, "prof.data", 300);
    let page = write_page(&session, &["report"]);
    let browser = Browser::start(session.directory());
    browser.open(&page, "");
    browser.assert_shows("verdict");

    // A box of the flamegraph: a click zooms, the fragment has the position, Escape goes back.
    let sixty =
        || browser.script("return prof.boxes().find(box => prof.name(box.id) === 'burn_sixty')");
    let narrow = sixty();
    browser.click_box("main canvas", &narrow);
    let fragment = browser.script("return location.hash");
    assert!(fragment.as_str().unwrap().contains("zoom="), "{fragment}");
    let width = |found: &Value| found["width"].as_f64().unwrap();
    assert!(width(&sixty()) > width(&narrow), "{narrow}");
    let zoomed = width(&sixty());
    browser.keys("main canvas", ESCAPE);
    assert!(width(&sixty()) < zoomed, "{narrow}");
    browser.click_text("button", "Reset");
    assert_eq!(sixty(), narrow);

    // Frames are drawn with colours, and names in front of them.
    let colours = browser.script(
        "const c = document.querySelector('main canvas');
         const d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
         const s = new Set();
         for (let i = 0; i < d.length; i += 4) s.add(d[i] << 16 | d[i + 1] << 8 | d[i + 2]);
         return s.size",
    );
    assert!(colours.as_u64().unwrap() > 5, "{colours}");

    // The verdict stays in sight, however far the page scrolls.
    let top = browser.script(
        "document.body.style.minHeight = '5000px';
         scrollTo(0, 4000);
         const top = document.querySelector('.verdict').getBoundingClientRect().top;
         const scrolled = scrollY;
         scrollTo(0, 0);
         document.body.style.minHeight = '';
         return scrolled > 3000 ? top : -1",
    );
    assert!((0.0..50.0).contains(&top.as_f64().unwrap()), "{top}");

    // Callers and callees begin with the hottest function.
    let view = || {
        browser
            .script("return document.querySelector('[role=tab][aria-selected=true]').textContent")
    };
    browser.keys("body", "5");
    assert_eq!(view(), "Callers and callees");
    browser.assert_shows("Callers: who calls it");
    browser.keys("body", "1");

    // Search, by the key for it.
    browser.keys("body", "/");
    browser.keys("input[type=search]", "burn_sixty");
    browser.assert_shows("1 function, ");
    browser.keys("input[type=search]", ESCAPE);

    // Tables by key; a row leads to callers and callees.
    browser.keys("body", "3");
    browser.assert_shows("burn_thirty");
    browser.click_text(".rows .row", "burn_thirty");
    browser.assert_shows("Callers: who calls it");
    for key in ["2", "4", "6", "7", "1"] {
        browser.keys("body", key);
        browser.assert_shows("cpu-clock");
    }
    // The browser's Back leads to the view before.
    browser.keys("body", "2");
    browser.script("const back = new Promise(done => addEventListener('popstate', () => done(true))); history.back(); return back");
    assert_eq!(view(), "Flamegraph");
    browser.keys("body", "?");
    browser.assert_shows("1 … 7");
    browser.click_text("dialog button", "Close");

    // A range of time, chosen in the timeline by key: fewer samples are left.
    let samples = || browser.script("return document.querySelector('.status').textContent");
    let all = samples();
    browser.keys(".timeline canvas", "+");
    assert_ne!(samples(), all);
    browser.keys(".timeline canvas", ESCAPE);
    assert_eq!(samples(), all);

    // The flame chart, by key.
    browser.open(&page, "#view=chart");
    browser.keys(".chart canvas", DOWN);
    browser.keys(".chart canvas", DOWN);
    let spoken = browser.script("return document.querySelector('.chart .spoken').textContent");
    assert!(spoken.as_str().unwrap().contains(", about "), "{spoken}");
    browser.keys(".chart canvas", ENTER);
    browser.assert_shows("Callers: who calls it");

    // A view that this page does not have.
    browser.open(&page, "#view=diff");
    browser.assert_shows("cpu-clock");

    // A link says "look here".
    browser.open(&page, "#view=functions&range=0-100000000&search=burn_sixty");
    browser.assert_shows("from 0 ns to 100 ms");
    browser.assert_shows("1 function, self");
    assert_eq!(browser.errors(), Vec::<String>::new());
}

const ESCAPE: &str = "\u{e00c}";
const ENTER: &str = "\u{e007}";
const DOWN: &str = "\u{e015}";

#[test]
fn callers_of_a_deep_recursion_leave_their_function_in_sight() {
    if !needs(&[Need::Tool("chromedriver"), Need::Tool("chromium")]) {
        return;
    }
    let session = Session::new();
    let stack = format!("main;{}hot 1000\n", "recurse;".repeat(700));
    session.write("deep", stack.as_bytes());
    let page = write_page(&session, &["report", "-i", "deep"]);
    let browser = Browser::start(session.directory());
    browser.open(&page, "#view=sandwich");
    let seen = browser.script(
        "const callers = document.querySelector('.sandwich .flame');
         const below = document.querySelector('.sandwich h3:nth-of-type(2)');
         const end = callers.scrollHeight - callers.clientHeight - callers.scrollTop;
         return [callers.scrollHeight > 5000, Math.abs(end) < 2,
             below.getBoundingClientRect().top < innerHeight]",
    );
    assert_eq!(seen, serde_json::json!([true, true, true]));
}

#[test]
fn every_event_has_its_lane() {
    if !needs(&[Need::Tool("chromedriver"), Need::Tool("chromium")]) {
        return;
    }
    let session = Session::new();
    let events = [
        "cpu-clock:u",
        "page-faults:u",
        "minor-faults:u",
        "task-clock:u",
    ];
    let shares = SHARES.build();
    let options = ["-e", &events.join(",")];
    session.record(&options, &[shares.as_os_str(), "100".as_ref()]);
    let page = write_page(&session, &["report"]);
    let browser = Browser::start(session.directory());
    browser.open(&page, "");
    let lanes = browser.script(
        "return [...document.querySelectorAll('.lanes span')].map(lane => lane.textContent)",
    );
    let lanes = lanes.as_array().unwrap();
    for event in events {
        assert!(lanes.iter().any(|lane| lane == event), "{event}: {lanes:?}");
    }
    // The first lane of the main thread keeps its height; each other one has a strip.
    let rows = "return document.querySelector('.timeline canvas').clientHeight - 18";
    let rows = browser.script(rows).as_u64().unwrap();
    assert_eq!(rows % (20 + 5 * (lanes.len() as u64 - 1)), 0, "{rows}");
}

#[test]
fn differences_have_the_same_colours_on_the_page_and_as_svg() {
    if !needs(&[Need::Tool("chromedriver"), Need::Tool("chromium")]) {
        return;
    }
    let session = Session::new();
    session.write(
        "before",
        b"main;grew 20\nmain;same 30\nmain;shrank;inner 50\n",
    );
    session.write(
        "after",
        b"main;grew 45\nmain;same 30\nmain;shrank;inner 25\n",
    );
    let diff = ["diff", "before", "after"];
    let svg = [&diff[..], &["--flamegraph", "diff.svg"]].concat();
    session.run(svg).assert_code(0);
    let svg = std::fs::read_to_string(session.path("diff.svg")).unwrap();
    let page = write_page(&session, &diff);
    let browser = Browser::start(session.directory());
    browser.open(&page, "");
    for name in ["main", "grew", "same", "inner"] {
        let frame = svg.split(&format!("<title>{name} (")).nth(1).unwrap();
        let fill = frame.split("fill=\"rgb(").nth(1).unwrap();
        let fill: Vec<u8> = fill
            .split(')')
            .next()
            .unwrap()
            .split(',')
            .map(|channel| channel.parse().unwrap())
            .collect();
        // The upper left corner of the box, left of its name.
        let color = browser.script(&format!(
            "const box = prof.boxes().find(box => prof.name(box.id) === '{name}');
             const canvas = document.querySelector('main canvas');
             const scale = canvas.width / canvas.clientWidth;
             const [x, y] = [(box.x + 2) * scale, (box.row * 18 + 3) * scale];
             return [...canvas.getContext('2d').getImageData(x, y, 1, 1).data].slice(0, 3)"
        ));
        let near =
            |(found, fill): (&Value, &u8)| found.as_u64().unwrap().abs_diff((*fill).into()) <= 20;
        let colors = color.as_array().unwrap();
        assert!(
            colors.iter().zip(&fill).all(near),
            "{name}: {color} {fill:?}"
        );
    }
}

#[test]
fn changes_on_the_page_are_those_of_the_diff() {
    if !needs(&[Need::Tool("node")]) {
        return;
    }
    let session = Session::new();
    record(&session, "a.data", 100);
    record(&session, "b.data", 300);
    check_changes(&session, ["a.data", "b.data"]);
    // The samples of these weigh more and less.
    let threads = THREADS.build();
    for (file, time) in [("a.data", "50"), ("b.data", "150")] {
        let options = ["-e", "page-faults", "-F", "50", "-o", file];
        session.record(&options, &[threads.as_os_str(), time.as_ref()]);
    }
    check_changes(&session, ["a.data", "b.data"]);
}

fn check_changes(session: &Session, [before, after]: [&str; 2]) {
    let page = write_page(session, &["diff", before, after]);
    let diff = session.run(["diff", before, after, "--json", "-"]);
    let diff: Value = serde_json::from_str(&diff.stdout).unwrap();
    let share = |share: &Value| format!("{:.9}", share.as_f64().unwrap());
    let expected = diff["functions"].as_array().unwrap().iter().map(|row| {
        let sides = [&row["before"], &row["after"]];
        let own = sides.map(|side| share(&side["self_share"]));
        let total = sides.map(|side| share(&side["total_share"]));
        json!([
            row["name"],
            row["module"],
            own,
            total,
            row["self_certainty"]
        ])
    });
    let table = tables(&page, "");
    let found = table["changes"].as_array().unwrap().iter().map(|row| {
        let pair = |name: &str| [share(&row[name][0]), share(&row[name][1])];
        json!([
            row["name"],
            row["module"],
            pair("own"),
            pair("total"),
            row["certainty"]
        ])
    });
    assert_eq!(sorted(found), sorted(expected));
}

#[test]
fn pages_of_recordings_as_they_are_made() {
    let session = Session::new();
    let shares = SHARES.build();
    let options = [USER_CODE, &["--html", "made.html"]].concat();
    session.record(&options, &[shares.as_os_str(), "50".as_ref()]);
    let made = std::fs::read_to_string(session.path("made.html")).unwrap();
    session.run(["view", "--no-open"]).assert_code(0);
    let viewed = std::fs::read_to_string(session.path("prof.html")).unwrap();
    assert!(made == viewed && made.starts_with("<!DOCTYPE html>"));
}
