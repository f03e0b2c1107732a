//! How results are laid out.

use std::process::Output;

use super::{line_of, perf_is_here, prof, run, stderr};

#[test]
fn the_table_is_laid_out_as_perfs() {
    let output = prof(&["stat", "--", "true"]);
    let text = stderr(&output);
    assert!(
        text.contains("\n Performance counter stats for 'true':\n\n"),
        "{text}"
    );
    let clock = line_of(&text, "task-clock");
    assert_eq!(clock.find(" msec task-clock"), Some(18), "{clock}");
    assert!(clock.contains("CPUs utilized"), "{clock}");
    assert!(text.contains("context-switches"), "{text}");
    for end in ["seconds time elapsed", "seconds user", "seconds sys"] {
        let line = text.lines().find(|line| line.ends_with(end)).unwrap();
        let seconds: f64 = line.trim().trim_end_matches(end).trim().parse().unwrap();
        assert!((0.0..60.0).contains(&seconds), "{line}");
    }
    let columns: Vec<usize> = text.lines().filter_map(|line| line.find(" # ")).collect();
    assert!(
        columns.len() >= 3 && columns.iter().all(|column| *column == columns[0]),
        "{text}"
    );
}

#[test]
fn fields_are_perfs() {
    let events = "task-clock:u,page-faults:u,minor-faults:u";
    let fields = |output: &Output| -> Vec<Vec<String>> {
        let text = stderr(output);
        let lines = text.lines().filter(|line| line.contains(','));
        lines
            .map(|line| line.split(',').map(str::to_owned).collect())
            .collect()
    };
    let ours = fields(&prof(&["stat", "-x,", "-e", events, "ls", "/"]));
    assert_eq!(ours.len(), 3);
    assert_eq!(ours[0][1..3], ["msec", "task-clock:u"]);
    assert_eq!(ours[1][1..3], ["", "page-faults:u"]);
    assert_eq!(ours[0][6], "CPUs utilized");
    if !perf_is_here() {
        return;
    }
    let theirs = fields(&run("perf", &["stat", "-x,", "-e", events, "ls", "/"]));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.len(), theirs.len(), "{ours:?} {theirs:?}");
        assert_eq!((&ours[1..3], &ours[4]), (&theirs[1..3], &theirs[4]));
    }
    let faults = |rows: &[Vec<String>]| rows[1][0].parse::<f64>().unwrap();
    let ratio = faults(&ours) / faults(&theirs);
    assert!((0.8..1.25).contains(&ratio), "{ours:?} {theirs:?}");
    let repeated = fields(&prof(&["stat", "-x,", "-r2", "-e", events, "true"]));
    assert!(
        repeated[0][3].ends_with('%') && repeated[0].len() == 8,
        "{repeated:?}"
    );
}

#[test]
fn json_has_perfs_keys() {
    let objects = |output: &Output| -> Vec<serde_json::Map<String, serde_json::Value>> {
        stderr(output)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect()
    };
    let ours = objects(&prof(&[
        "stat",
        "--json",
        "-e",
        "task-clock:u,faults:u",
        "true",
    ]));
    assert_eq!(ours.len(), 3);
    assert_eq!(ours[0]["event"], "task-clock:u");
    assert!(
        ours[1]["counter-value"]
            .as_str()
            .unwrap()
            .parse::<f64>()
            .unwrap()
            > 10.0
    );
    assert!(ours[2]["seconds-elapsed"].as_f64().unwrap() > 0.0);
    if perf_is_here() {
        let output = run(
            "perf",
            &["stat", "-j", "-e", "task-clock:u,faults:u", "true"],
        );
        // Some versions print an empty line first.
        let text = stderr(&output);
        let first = text.lines().find(|line| line.starts_with('{')).unwrap();
        let theirs: serde_json::Map<String, serde_json::Value> =
            serde_json::from_str(first).unwrap();
        let keys = |object: &serde_json::Map<String, serde_json::Value>| {
            object.keys().cloned().collect::<Vec<_>>()
        };
        assert_eq!(keys(&ours[0]), keys(&theirs));
    }
}

#[test]
fn output_goes_to_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("out.csv");
    let output = prof(&[
        "stat",
        "-x,",
        "-e",
        "faults:u",
        "-o",
        file.to_str().unwrap(),
        "true",
    ]);
    assert_eq!(stderr(&output), "");
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains(",faults:u,")
    );
    let refused = prof(&[
        "stat",
        "-o",
        "/nonexistent/out",
        "touch",
        folder.path().join("ran").to_str().unwrap(),
    ]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(
        stderr(&refused).contains("cannot write /nonexistent/out"),
        "{refused:?}"
    );
    assert!(!folder.path().join("ran").exists());
}
