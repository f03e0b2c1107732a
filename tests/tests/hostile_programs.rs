//! Programs that fake the memory of interpreters and run-time compilers, or their files, so that
//! prof keeps too much or reads for too long. What they lose is theirs, and prof says it.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prof_tests::{Need, Outcome, Program, Session, needs};

const PYTHON: Program = Program::c(&["hostile/python3.c"]);
const PHP: Program = Program::c(&["hostile/php8.c"]);
const NODE: Program = Program::c(&["hostile/node.c"]);
const SPARSE: Program = Program::c(&["hostile/sparse.c"]);

/// Runs a command to its end; also returns the most memory that its process has used, in bytes.
fn run_measured(mut command: Command) -> (Outcome, u64) {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        peak = peak.max(peak_of(child.id()).unwrap_or(0));
        std::thread::sleep(Duration::from_millis(10));
    }
    let output = child.wait_with_output().unwrap();
    (Outcome::new(&command, output), peak)
}

/// `None` once it has ended.
fn peak_of(pid: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

/// A shell that runs these programs at the same time, each for so many rounds of 5 ms of CPU time.
fn together(programs: &[(&Path, &str, u32)]) -> [String; 3] {
    let starts = programs
        .iter()
        .map(|(program, kind, rounds)| format!("{} {kind} {rounds} & ", program.display()));
    let script = starts.collect::<String>() + "wait";
    ["sh".into(), "-c".into(), script]
}

/// The stacks of a process with this name.
fn stacks_of(report: &str, process: &str) -> Vec<String> {
    let lines = report
        .lines()
        .filter(|line| line.split(';').next() == Some(process));
    lines.map(str::to_owned).collect()
}

/// Two processes with thousands of functions, each of which takes 2 KiB of memory and 5 KiB of the
/// file, beside one with eight.
#[test]
fn a_neighbour_keeps_its_names() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::alone();
    let python = PYTHON.build();
    let greedy = (&*python, "greedy", 200);
    let command = together(&[greedy, greedy, (&*python, "modest", 200)]);
    let words = ["record", "-e", "cpu-clock", "-F", "999", "--"].map(String::from);
    let (recorded, peak) = run_measured(session.prof(words.iter().chain(&command)));
    recorded.assert_code(0);
    recorded.assert_says(&["some functions of greedy have no names"]);
    let mut lacking = recorded
        .stderr
        .lines()
        .filter(|it| it.contains("have no names"));
    assert!(!lacking.any(|line| line.contains("modest")), "{recorded}");
    assert!(peak < 640 << 20, "{peak} bytes: {recorded}");
    let size = std::fs::metadata(session.path("prof.data")).unwrap().len();
    assert!(size < 288 << 20, "{size} bytes: {recorded}");
    let report = session.run(["report", "--folded", "-"]);
    report.assert_code(0);
    let stacks = stacks_of(&report.stdout, "modest");
    let are_named = |stack: &&String| (0..8).all(|it| stack.contains(&format!("modest{it}_")));
    assert!(!stacks.is_empty());
    let (named, others): (Vec<_>, Vec<_>) = stacks.iter().partition(are_named);
    assert!(!named.is_empty());
    // Functions are whole or, where they could not be read in time, missing.
    assert!(
        !others.iter().any(|stack| stack.contains("too many names")),
        "{others:#?}"
    );
    assert!(
        stacks_of(&report.stdout, "greedy")
            .iter()
            .any(|it| it.contains("too many names"))
    );
}

/// `prof collect` beside two greedy processes of each language.
#[test]
fn collecting_takes_little_memory_whatever_runs() {
    if !needs(&[Need::Root]) {
        return;
    }
    // Without a budget it takes four times as much.
    const MOST: u64 = 256 << 20;
    let session = Session::alone();
    let programs = [PYTHON, PHP, NODE].map(|program| program.build());
    let mut greedy: Vec<Child> = programs
        .iter()
        .chain(&programs)
        .map(|program| {
            Command::new(program)
                .args(["greedy", "1000000"])
                .spawn()
                .unwrap()
        })
        .collect();
    let pids: Vec<_> = greedy.iter().map(|it| it.id().to_string()).collect();
    let words = "collect --service x -F 499 -d 6s --every 3s --spool spool out -p".split(' ');
    let pids = pids.join(",");
    let (collected, peak) = run_measured(session.prof(words.chain([&*pids])));
    for process in &mut greedy {
        process.kill().unwrap();
        process.wait().unwrap();
    }
    collected.assert_code(0);
    assert!(peak < MOST, "{peak} bytes: {collected}");
}

/// Thirty files with 800 MB of tables each, in which code runs, beside a neighbour.
#[test]
fn files_with_huge_tables_are_not_read() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::alone();
    let (python, sparse) = (PYTHON.build(), SPARSE.build());
    let files = format!("{} 30 100 & ", sparse.display());
    let [shell, flag, script] = together(&[(&*python, "modest", 100)]);
    let command = [shell, flag, files + &script];
    let words = ["record", "-e", "cpu-clock", "-F", "999", "--"].map(String::from);
    let (recorded, peak) = run_measured(session.prof(words.iter().chain(&command)));
    recorded.assert_code(0);
    recorded.assert_says(&["python3.0, ", " and others were not read for stacks"]);
    assert!(peak < 320 << 20, "{peak} bytes: {recorded}");
    let report = session.run(["report", "--folded", "-"]);
    let stacks = stacks_of(&report.stdout, "modest");
    assert!(
        stacks.iter().any(|it| it.contains("modest7_")),
        "{stacks:#?}"
    );
}
