//! Every filter means the same in every output: the same content with the same weights.

use std::collections::BTreeSet;

use prof_tests::{Program, Recorded, Session, USER_CODE};
use serde_json::Value;

const SHARES: Program = Program::c(&["shares.c"]);
const THREADS: Program = Program::c(&["threads.c"]);
const INLINING: Program = Program::cpp(&["inlining.cpp"]);

/// The content of an output, as far as its format has it.
#[derive(Debug, Default)]
struct Shown {
    /// In nanoseconds.
    weight: Option<u64>,
    samples: Option<u64>,
    functions: Option<BTreeSet<String>>,
}

fn record(session: &Session) -> Recorded<'_> {
    let programs = [SHARES, THREADS, INLINING].map(|program| program.build());
    let runs = programs.map(|program| format!("{} 150", program.display()));
    let script = runs.join("; ");
    session.record(USER_CODE, &["sh", "-c", &script])
}

#[test]
fn filters_mean_the_same_in_all_outputs() {
    let session = Session::new();
    let recorded = record(&session);
    let all = check(&session, &recorded, &[]);
    let script = script_of(&session, &recorded, &[]);
    let headlines = |comm: &'static str| script.lines().filter(move |line| line.starts_with(comm));
    let mut threads = headlines("threads ").map(thread);
    let (pid, tid, cpu) = threads.find(|(pid, tid, _)| pid != tid).unwrap();
    // In the middle of the time of `shares`, counted from the first sample.
    let times: Vec<f64> = headlines("shares ").map(seconds).collect();
    let first = script.lines().next().map(seconds).unwrap();
    let middle = format!("{:.6}", times[times.len() / 2] - first);
    let conditions: [&[&str]; 20] = [
        &["--event", "cpu-clock"],
        &["--comm", "^thr"],
        &["--pid", pid],
        &["--tid", tid],
        &["--cpu", cpu],
        &["--since", &middle],
        &["--until", &middle],
        &["--since", "1ms", "--until", &middle],
        &["--module", "threads"],
        &["--function", "burn_thirty"],
        &["--focus", "^busy$"],
        &["--language", "cpp"],
        &["--language", "c,rust", "--no-kernel"],
        &["--ignore", "burn_thirty"],
        &["--hide", "burn"],
        &["--no-kernel"],
        &["--no-inline"],
        &["--fold-async"],
        &["--merge-threads"],
        &[
            "--comm",
            "shares",
            "--ignore",
            "burn_ten",
            "--hide",
            "^work$",
            "--no-inline",
        ],
    ];
    for condition in conditions {
        let some = check(&session, &recorded, condition);
        assert!(some.weight <= all.weight, "{condition:?}: {some:?}");
        let shows = |name: &str| some.functions.as_ref().is_some_and(|f| f.contains(name));
        match condition {
            ["--ignore" | "--hide", ..] => assert!(!shows("burn_thirty"), "{some:?}"),
            ["--language", "cpp"] => {
                let innermost = "shapes::innermost(unsigned long)";
                assert!(shows(innermost) && !shows("burn_ten"), "{some:?}");
            }
            ["--function", ..] => assert!(shows("burn_thirty") && !shows("burn_ten"), "{some:?}"),
            ["--comm" | "--pid" | "--tid" | "--module", _] => {
                assert!(shows("thread_main") && !shows("burn_ten"), "{some:?}");
            }
            _ => {}
        }
    }
}

/// Process, thread and CPU of a sample of `prof script`.
fn thread(headline: &str) -> (&str, &str, &str) {
    let mut words = headline.split_whitespace().skip(1);
    let (pid, tid) = words.next().unwrap().split_once('/').unwrap();
    let cpu = words.next().unwrap().trim_matches(['[', ']']);
    (pid, tid, cpu)
}

/// The time of a sample of `prof script`.
fn seconds(headline: &str) -> f64 {
    let before = headline.split(": ").next().unwrap();
    before.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Asserts that all outputs agree; returns their content.
fn check(session: &Session, recorded: &Recorded<'_>, condition: &[&str]) -> Shown {
    let outputs = outputs(session, recorded, condition);
    let (_, first) = &outputs[0];
    for (name, output) in &outputs {
        let reported = [
            output
                .weight
                .is_none_or(|weight| Some(weight) == first.weight),
            output
                .samples
                .is_none_or(|samples| Some(samples) == first.samples),
            output.functions.is_none() || output.functions == first.functions,
        ];
        assert_eq!(
            reported, [true; 3],
            "{condition:?}: {name} shows {output:?}, JSON {first:?}"
        );
    }
    outputs.into_iter().next().unwrap().1
}

fn outputs(
    session: &Session,
    recorded: &Recorded<'_>,
    condition: &[&str],
) -> Vec<(&'static str, Shown)> {
    const FILES: [&str; 8] = [
        "json",
        "csv",
        "folded",
        "firefox",
        "speedscope",
        "pprof",
        "flamegraph",
        "flamechart",
    ];
    let path = |name: &str| session.path(name).to_str().unwrap().to_owned();
    let flags = FILES
        .iter()
        .flat_map(|name| [format!("--{name}"), path(name)]);
    let flags: Vec<String> = flags.collect();
    // By default, pictures leave out hardly visible frames.
    let all = ["--min-percent", "0.0000001"];
    let arguments: Vec<&str> = flags
        .iter()
        .map(String::as_str)
        .chain(all)
        .chain(condition.iter().copied())
        .collect();
    recorded.report(&arguments);
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    let run = |start: &[&str]| {
        let input = ["-i", recorded.file.to_str().unwrap()];
        let outcome = session.run(start.iter().chain(&input).chain(condition));
        outcome.assert_code(0);
        outcome.stdout
    };
    let again = session.run(["report", "--json", "-", "-i", &path("pprof")]);
    vec![
        ("JSON", of_json(&parse(&read("json")))),
        ("CSV", of_csv(&read("csv"))),
        ("folded", of_folded(&read("folded"))),
        ("Firefox", of_firefox(&parse(&read("firefox")))),
        ("speedscope", of_speedscope(&parse(&read("speedscope")))),
        ("pprof", of_json(&parse(&again.stdout))),
        ("flamegraph", of_flamegraph(&read("flamegraph"))),
        ("flame chart", of_flamechart(&read("flamechart"))),
        (
            "script",
            of_script(&script_of(session, recorded, condition)),
        ),
        (
            "timeline",
            of_timeline(&parse(&run(&["report", "--timeline", "--json", "-"]))),
        ),
        (
            "annotate",
            of_total(&parse(&run(&[
                "annotate",
                "burn|busy|main|work",
                "--json",
                "-",
            ]))),
        ),
    ]
}

fn script_of(session: &Session, recorded: &Recorded<'_>, condition: &[&str]) -> String {
    let file = recorded.file.to_str().unwrap();
    let arguments = ["script", "-i", file];
    let outcome = session.run(arguments.iter().chain(condition));
    outcome.assert_code(0);
    outcome.stdout
}

fn of_total(report: &Value) -> Shown {
    Shown {
        weight: report["total"]["value"].as_u64(),
        samples: report["total"]["samples"].as_u64(),
        functions: None,
    }
}

fn texts<'v>(list: &'v Value, name: impl Fn(&'v Value) -> &'v Value) -> Option<BTreeSet<String>> {
    let list = list.as_array().unwrap().iter();
    Some(
        list.map(|item| name(item).as_str().unwrap().to_owned())
            .collect(),
    )
}

fn of_json(report: &Value) -> Shown {
    Shown {
        functions: texts(&report["functions"], |function| &function["name"]),
        ..of_total(report)
    }
}

fn of_csv(text: &str) -> Shown {
    let mut lines = text.lines();
    let columns = lines.next().unwrap().split(',').count();
    // From the right: names are quoted that have commas in them.
    let row = |line: &'_ str| {
        let mut row: Vec<String> = line.rsplitn(columns, ',').map(str::to_owned).collect();
        row.reverse();
        row
    };
    let rows: Vec<Vec<String>> = lines.map(row).collect();
    let sum = |column: usize| {
        Some(
            rows.iter()
                .map(|row| row[column].parse::<u64>().unwrap())
                .sum(),
        )
    };
    Shown {
        weight: sum(3),
        samples: sum(5),
        functions: Some(
            rows.iter()
                .map(|row| row[0].trim_matches('"').to_owned())
                .collect(),
        ),
    }
}

fn of_folded(text: &str) -> Shown {
    let mut shown = Shown::default();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *shown.weight.get_or_insert(0) += weight.parse::<u64>().unwrap();
        let functions = shown.functions.get_or_insert_default();
        functions.extend(stack.split(';').skip(1).map(str::to_owned));
    }
    shown
}

fn of_flamegraph(svg: &str) -> Shown {
    // A rectangle's title is `function (12.3 ms, 6.78%)`.
    let rectangles = svg.split("<title>").skip(1).map(|rest| {
        let title = rest.split("</title>").next().unwrap();
        title.rsplit_once(" (").unwrap()
    });
    let mut shown = Shown::default();
    let (_, frames) = svg.split_once(" total_samples=\"").unwrap();
    shown.weight = frames.split('"').next().unwrap().parse().ok();
    for (name, _) in rectangles {
        if name != "all" && !is_thread(name) {
            let name = name.replace("&lt;", "<").replace("&gt;", ">");
            let functions = shown.functions.get_or_insert_default();
            functions.insert(name.replace("&amp;", "&"));
        }
    }
    let (before, _) = svg.split_once(" samples of ").unwrap();
    let samples = before.rsplit(' ').next().unwrap().replace(',', "");
    shown.samples = samples.parse().ok();
    shown
}

/// Like a flamegraph, but as wide as the elapsed time.
fn of_flamechart(svg: &str) -> Shown {
    Shown {
        weight: None,
        ..of_flamegraph(svg)
    }
}

/// Whether it is the name of a thread of the programs, with or without its numbers (a single one is
/// set off by `_`, as folded stacks have it).
fn is_thread(name: &str) -> bool {
    let plain = name.split([' ', '_']).next().unwrap();
    ["sh", "shares", "threads", "inlining"].contains(&plain)
}

fn of_firefox(profile: &Value) -> Shown {
    let strings = &profile["shared"]["stringArray"];
    let names = profile["shared"]["funcTable"]["name"].as_array().unwrap();
    let name = |index: &Value| {
        strings[index.as_u64().unwrap() as usize]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let mut milliseconds = 0.0;
    let mut samples = 0;
    for thread in profile["threads"].as_array().unwrap() {
        let columns = &thread["samples"];
        let weights = columns["weight"].as_array().unwrap().iter();
        milliseconds += weights.map(|weight| weight.as_f64().unwrap()).sum::<f64>();
        let stacks = columns["stack"].as_array().unwrap().iter();
        samples += stacks.filter(|stack| !stack.is_null()).count() as u64;
    }
    Shown {
        weight: Some((milliseconds * 1e6).round() as u64),
        samples: Some(samples),
        functions: Some(names.iter().map(name).collect()),
    }
}

fn of_speedscope(file: &Value) -> Shown {
    let profiles = file["profiles"].as_array().unwrap().iter();
    let weights = profiles.flat_map(|profile| profile["weights"].as_array().unwrap());
    Shown {
        weight: Some(weights.map(|weight| weight.as_u64().unwrap()).sum()),
        samples: None,
        functions: texts(&file["shared"]["frames"], |frame| &frame["name"]),
    }
}

fn of_script(text: &str) -> Shown {
    let mut shown = Shown::default();
    for line in text.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix('\t') {
            Some(frame) => {
                let name = frame.trim_start().split_once(' ').unwrap().1;
                let (name, _) = name.rsplit_once(" (").unwrap();
                shown
                    .functions
                    .get_or_insert_default()
                    .insert(name.to_owned());
            }
            None => {
                let period = line.split(": ").nth(1).unwrap().split(' ').next().unwrap();
                *shown.weight.get_or_insert(0) += period.parse::<u64>().unwrap();
                *shown.samples.get_or_insert(0) += 1;
            }
        }
    }
    shown
}

fn of_timeline(report: &Value) -> Shown {
    let rows = report["rows"].as_array().unwrap().iter();
    let sum = |member: &str| {
        rows.clone()
            .map(|row| row["total"][member].as_u64().unwrap())
            .sum()
    };
    Shown {
        weight: Some(sum("value")),
        samples: Some(sum("samples")),
        functions: None,
    }
}
