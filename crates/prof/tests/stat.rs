//! `prof stat` and `prof list` as people run them, beside perf, as root and as a plain user.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::io::{Read, Write};
use std::process::{Command, Output, Stdio};

/// Runs a program and its arguments, written as one would type them without quotes.
fn run(program: &str, arguments: &[&str]) -> Output {
    Command::new(program)
        .args(arguments)
        .env("LC_ALL", "C")
        .output()
        .unwrap()
}

fn prof(arguments: &[&str]) -> Output {
    run(env!("CARGO_BIN_EXE_prof"), arguments)
}

/// As uid 65534; `None` if we are not root and so cannot become somebody else.
fn prof_as_user(arguments: &[&str]) -> Option<Output> {
    if !rustix::process::geteuid().is_root() {
        return Some(prof(arguments));
    }
    // The build folder may be closed to others: the program goes where they can read it.
    let folder = tempfile::Builder::new()
        .prefix("prof-stat")
        .tempdir_in("/tmp")
        .unwrap();
    let copy = folder.path().join("prof");
    run("chmod", &["755", folder.path().to_str().unwrap()]);
    // By another process: what other tests start meanwhile would inherit our descriptor, and a file
    // that is open for writing cannot be run.
    let to = copy.to_str().unwrap();
    run("install", &["-m", "755", env!("CARGO_BIN_EXE_prof"), to]);
    let user = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        copy.to_str().unwrap(),
    ];
    let output = Command::new("setpriv")
        .args(user)
        .args(arguments)
        .current_dir("/")
        .output();
    match output {
        Ok(output) => Some(output),
        Err(error) => {
            eprintln!("skipped: no setpriv: {error}");
            None
        }
    }
}

fn paranoid() -> i32 {
    let level = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    level.trim().parse().unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

fn perf_is_here() -> bool {
    let here = Command::new("perf")
        .arg("--version")
        .output()
        .is_ok_and(|output| output.status.success());
    if !here {
        eprintln!("skipped: perf is not installed");
    }
    here
}

#[test]
fn the_commands_exit_status_and_output_pass_through() {
    let check = |command: &[&str], status: i32, stdout: &str| {
        let output = prof(&[&["stat", "-e", "task-clock:u", "--"], command].concat());
        assert_eq!(output.status.code(), Some(status), "{command:?}");
        assert_eq!(
            String::from_utf8(output.stdout).unwrap(),
            stdout,
            "{command:?}"
        );
    };
    check(&["true"], 0, "");
    check(&["sh", "-c", "echo hello; exit 7"], 7, "hello\n");
    check(&["sh", "-c", "kill -9 $$"], 137, "");
    check(&["sh", "-c", "kill -TERM $$"], 143, "");
    check(&["no-such-command"], 127, "");
    check(&["/etc/passwd"], 126, "");
    let repeated = prof(&[
        "stat",
        "-r",
        "3",
        "-e",
        "faults:u",
        "sh",
        "-c",
        "echo x; exit 2",
    ]);
    assert_eq!(
        (repeated.status.code(), &repeated.stdout[..]),
        (Some(2), &b"x\nx\nx\n"[..])
    );
    // What follows the command is its own, however it looks.
    let own = prof(&["stat", "-efaults:u", "echo", "-x,", "--json", "-p", "1"]);
    assert_eq!(String::from_utf8(own.stdout).unwrap(), "-x, --json -p 1\n");
}

#[test]
fn the_table_is_laid_out_as_perfs() {
    let output = prof(&["stat", "--", "true"]);
    let text = stderr(&output);
    assert!(
        text.contains("\n Performance counter stats for 'true':\n\n"),
        "{text}"
    );
    let line = |name: &str| {
        text.lines()
            .find(|line| line.split_whitespace().any(|word| word == name))
    };
    let clock = line("task-clock").unwrap();
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
fn repeated_runs_have_a_mean_and_a_spread() {
    let text = stderr(&prof(&["stat", "-r", "4", "-e", "page-faults:u", "true"]));
    assert!(text.contains("'true' (4 runs):"), "{text}");
    let faults = text
        .lines()
        .find(|line| line.contains("page-faults:u"))
        .unwrap();
    assert!(
        faults.contains("( +-") && faults.ends_with("% )"),
        "{faults}"
    );
    let elapsed = text
        .lines()
        .find(|line| line.contains("seconds time elapsed"))
        .unwrap();
    assert!(
        elapsed.contains(" +- ") && elapsed.contains("( +-"),
        "{elapsed}"
    );
}

#[test]
fn intervals_add_up_to_the_whole() {
    // Processes without end make page faults without end; the last one ends the command.
    let script = "i=0; while [ $i -lt 300 ]; do /bin/true; i=$((i+1)); done";
    let faults = |arguments: &[&str]| -> Vec<(f64, f64)> {
        let output = prof(
            &[
                &["stat", "-x,", "-e", "page-faults:u"],
                arguments,
                &["sh", "-c", script],
            ]
            .concat(),
        );
        let text = stderr(&output);
        let number = |field: Option<&str>| field.unwrap().trim().parse::<f64>().unwrap();
        let lines = text.lines().map(|line| {
            let mut fields = line.split(',');
            match arguments.is_empty() {
                true => (0.0, number(fields.next())),
                false => (number(fields.next()), number(fields.next())),
            }
        });
        lines.collect()
    };
    let whole = faults(&[])[0].1;
    let intervals = faults(&["-I", "20"]);
    assert!(intervals.len() > 2, "{intervals:?}");
    assert!(
        intervals.windows(2).all(|pair| pair[0].0 < pair[1].0),
        "{intervals:?}"
    );
    let sum: f64 = intervals.iter().map(|(_, count)| count).sum();
    assert!((0.9..1.1).contains(&(sum / whole)), "{sum} {whole}");
}

#[test]
fn running_processes_are_counted_until_they_end() {
    let mut target = Command::new("sh")
        .args(["-c", "read x; ls / >/dev/null; read x; :"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = target.id().to_string();
    let mut stat = Command::new(env!("CARGO_BIN_EXE_prof"))
        .args(["stat", "-I", "10", "-x,", "-e", "page-faults:u", "-p", &pid])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = stat.stderr.take().unwrap();
    // Once it prints, it counts.
    printed.read_exact(&mut [0]).unwrap();
    let mut input = target.stdin.take().unwrap();
    input.write_all(b"go\nend\n").unwrap();
    drop(input);
    target.wait().unwrap();
    let mut text = String::new();
    printed.read_to_string(&mut text).unwrap();
    assert!(stat.wait().unwrap().success());
    let counts = text
        .lines()
        .filter_map(|line| line.split(',').nth(1)?.parse::<u64>().ok());
    assert!(counts.sum::<u64>() > 50, "{text}");
    let gone = prof(&["stat", "-e", "faults:u", "-p", &pid]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("there is no process"), "{gone:?}");
}

#[test]
fn threads_are_told_apart() {
    let own = std::process::id().to_string();
    let output = prof(&[
        "stat",
        "--per-thread",
        "-x,",
        "-e",
        "task-clock:u",
        "-d",
        "20ms",
        "-p",
        &own,
    ]);
    let text = stderr(&output);
    let places: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split(',').next())
        .collect();
    assert!(
        places.len() > 1
            && places
                .iter()
                .any(|place| place.ends_with(&format!("-{own}"))),
        "{text}"
    );
}

#[test]
fn the_threads_of_a_command_are_told_apart() {
    let script = "ls / >/dev/null; cat /dev/null; exit 5";
    let check = |output: &Output| {
        let text = stderr(output);
        assert_eq!(output.status.code(), Some(5), "{text}");
        for name in ["sh-", "ls-", "cat-"] {
            let line = text
                .lines()
                .find(|line| line.trim().starts_with(name) && line.contains("page-faults:u"));
            let faults = line
                .unwrap_or_else(|| panic!("{name} {text}"))
                .split_whitespace()
                .nth(1)
                .unwrap();
            assert!(
                faults.replace(',', "").parse::<u64>().unwrap() > 20,
                "{text}"
            );
        }
        assert!(text.contains("seconds time elapsed"), "{text}");
    };
    let arguments = [
        "stat",
        "--per-thread",
        "-e",
        "task-clock:u,page-faults:u",
        "--",
        "sh",
        "-c",
        script,
    ];
    check(&prof(&arguments));
    if let Some(output) = prof_as_user(&arguments) {
        check(&output);
    }
    let missing = prof(&["stat", "--per-thread", "no-such-command"]);
    assert_eq!(missing.status.code(), Some(127));
    let both = prof(&["stat", "--per-thread", "-r2", "true"]);
    assert_eq!(both.status.code(), Some(1));
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

#[test]
fn mistakes_are_said_before_anything_runs() {
    let check = |arguments: &[&str], expected: &str| {
        let output = prof(&[&["stat"], arguments, &["echo", "it ran"]].concat());
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(
            stderr(&output).contains(expected),
            "{arguments:?}: {}",
            stderr(&output)
        );
    };
    check(
        &["-e", "instructions,cycels"],
        "did you mean cycles?\n  instructions,cycels\n               ^^^^^^",
    );
    check(&["-e", "nopmu/event=1/"], "no PMU \"nopmu\"");
    check(
        &["-e", "uprobe:/bin/sh:no_such_function"],
        "has no function",
    );
    check(&["-e", "99:0"], "no PMU has that type");
    check(&["-e", ""], "an event's name is missing");
}

#[test]
fn a_plain_user_gets_what_there_is() {
    let Some(output) = prof_as_user(&["stat", "--", "sh", "-c", "ls / >/dev/null"]) else {
        return;
    };
    let text = stderr(&output);
    assert!(output.status.success(), "{text}");
    let value = |name: &str| -> f64 {
        let line = text
            .lines()
            .find(|line| line.split_whitespace().any(|word| word == name))
            .unwrap();
        line.split_whitespace()
            .next()
            .unwrap()
            .replace(',', "")
            .parse()
            .unwrap()
    };
    assert!(value("task-clock") > 0.0, "{text}");
    // The shell waits for ls: that is a switch, which no counter of this user sees.
    assert!(value("context-switches") > 0.0, "{text}");
    if paranoid() >= 2 {
        assert!(value("page-faults:u") > 0.0, "{text}");
        assert!(text.contains("getrusage"), "{text}");
        assert!(
            !text.contains("cycles ") || text.contains("cycles:u "),
            "{text}"
        );
        let refused = prof_as_user(&["stat", "-e", "cpu-migrations", "true"]).unwrap();
        assert_eq!(refused.status.code(), Some(1));
        assert!(
            stderr(&refused).contains("happens in the kernel"),
            "{refused:?}"
        );
        let refused = prof_as_user(&["stat", "-a", "true"]).unwrap();
        assert!(
            stderr(&refused).contains("perf_event_paranoid=0"),
            "{refused:?}"
        );
        let zero = prof_as_user(&["stat", "-e", "cs:u", "true"]).unwrap();
        assert!(stderr(&zero).contains("cs:u is always 0"), "{zero:?}");
    }
}

#[test]
fn hardware_counts_are_perfs() {
    let count = |program: &str, arguments: &[&str]| -> Option<f64> {
        let output = run(
            program,
            &[
                &["stat", "-x,"],
                arguments,
                &["-e", "instructions:u", "/bin/true"],
            ]
            .concat(),
        );
        stderr(&output)
            .lines()
            .find(|line| line.contains("instructions:u"))?
            .split(',')
            .next()?
            .parse()
            .ok()
    };
    let Some(ours) = count(env!("CARGO_BIN_EXE_prof"), &[]) else {
        eprintln!("skipped: no hardware counters here");
        return;
    };
    if perf_is_here() {
        let theirs = count("perf", &[]).unwrap();
        assert!((0.98..1.02).contains(&(ours / theirs)), "{ours} {theirs}");
    }
}

#[test]
fn the_list_is_what_perf_can_count() {
    let output = prof(&["list", "--json"]);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut compared = 0;
    for line in text.lines() {
        let object: serde_json::Value = serde_json::from_str(line).unwrap();
        let kind = object["kind"].as_str().unwrap();
        if !["Hardware", "Software", "Caches"].contains(&kind) || !perf_is_here() {
            continue;
        }
        let name = object["event"].as_str().unwrap();
        if object["reason"]
            .as_str()
            .is_some_and(|reason| reason.contains("happens in the kernel"))
        {
            // perf opens it in user code only, and counts 0.
            continue;
        }
        let theirs = stderr(&run("perf", &["stat", "-x,", "-e", name, "true"]));
        let can = object["count"] != "no";
        assert_eq!(
            can,
            !theirs.contains("<not supported>"),
            "{object} {theirs}"
        );
        assert_eq!(
            object.get("reason").is_none(),
            can && object["sample"] != "no",
            "{object}"
        );
        compared += 1;
    }
    assert!(compared > 40 || !perf_is_here(), "{compared}");
    let none = prof(&["list", "nothing-like-it"]);
    assert_eq!(none.status.code(), Some(1));
}

#[test]
fn a_plain_users_list_has_reasons() {
    let Some(output) = prof_as_user(&["list"]) else {
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        text.lines()
            .find(|line| line.trim().starts_with(name))
            .unwrap()
    };
    assert!(
        line("task-clock").contains("user code") || paranoid() < 2,
        "{text}"
    );
    if paranoid() >= 2 {
        assert!(
            line("context-switches").contains("happens in the kernel"),
            "{text}"
        );
        assert!(line("uprobe:").contains("root only"), "{text}");
    }
}
