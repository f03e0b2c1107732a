//! Commands, once and repeatedly.

use super::{perf_is_here, prof, run, stderr};

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
    // Arguments after the command belong to it, whatever they look like.
    let own = prof(&["stat", "-efaults:u", "echo", "-x,", "--json", "-p", "1"]);
    assert_eq!(String::from_utf8(own.stdout).unwrap(), "-x, --json -p 1\n");
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
