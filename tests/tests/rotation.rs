//! Recordings in several files, one after the other, and recordings of the last seconds.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prof_tests::{
    Endless, Need, Outcome, PerfSample, Program, Session, needs, perf_script, starts_at_root,
    wait_until,
};

const PERF: &[Need] = &[Need::Tool("perf")];
const ROOT: &[Need] = &[Need::Root, Need::Tool("perf")];
const THREADS: Program = Program::c(&["threads.c"]);
const CALLS: Program = Program::c(&["calls.c"]);

/// The complete files of a recording, the oldest first.
fn files(session: &Session) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(session.directory()).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.to_string_lossy().contains("prof.data."));
    files.sort();
    files
}

/// Runs `prof record OPTIONS -- COMMAND`, which must succeed; returns its messages.
fn record(session: &Session, options: &[&str], command: &[&str]) -> String {
    let arguments = [&["record"], options, &["--"], command].concat();
    let outcome = session.run(arguments);
    outcome.assert_code(0);
    assert!(!session.path("prof.data").exists(), "{outcome}");
    outcome.stderr
}

/// All samples as perf reads them; those of each file are younger than those of the one before.
#[track_caller]
fn samples_of(files: &[PathBuf]) -> Vec<Vec<PerfSample>> {
    let all: Vec<_> = files.iter().map(|file| perf_script(file)).collect();
    let times = all.iter().flatten().map(|sample| sample.time);
    let times: Vec<u64> = times.collect();
    assert!(times.is_sorted());
    all
}

/// How many samples there are in each file, as perf counts them, without stacks; those of each file
/// are younger than those of the one before.
#[track_caller]
fn counts_of(files: &[PathBuf]) -> Vec<usize> {
    let times = files.iter().map(|file| {
        let mut perf = Command::new("perf");
        perf.args(["script", "-G", "--ns", "-F", "time", "-i"])
            .arg(file);
        let outcome = Outcome::of(perf);
        outcome.assert_code(0);
        let lines = outcome
            .stdout
            .lines()
            .map(|line| line.trim().replace(['.', ':'], ""));
        lines.map(|digits| digits.parse::<u64>().unwrap()).collect()
    });
    let times: Vec<Vec<u64>> = times.collect();
    assert!(times.concat().is_sorted());
    times.iter().map(Vec::len).collect()
}

/// The numbers of files and samples, by prof's messages.
#[track_caller]
fn said(words: &str) -> (usize, usize) {
    let line = words.lines().find(|line| line.contains(" samples, "));
    let mut numbers = line.into_iter().flat_map(|line| {
        let words = line.split(|c: char| !c.is_ascii_digit());
        words.filter_map(|word| word.parse().ok())
    });
    match (numbers.next(), numbers.next()) {
        (Some(files), Some(samples)) => (files, samples),
        _ => panic!("{words}"),
    }
}

/// Checks that the file can be reported alone, and has its own verdict.
#[track_caller]
fn assert_complete(session: &Session, file: &Path, (program, function): (&str, &str)) {
    let outcome = session.run([Path::new("report"), Path::new("-i"), file]);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains(function), "{outcome}");
    let mut header = Command::new("perf");
    header.args(["buildid-list", "-i"]).arg(file);
    let header = Outcome::of(header);
    header.assert_code(0);
    assert!(header.stdout.contains(program), "{header}");
}

#[test]
fn files_follow_each_other_and_nothing_is_lost_between() {
    if !needs(ROOT) {
        return;
    }
    const CALLED: usize = 20_000;
    let calls = CALLS.build();
    let probe = format!("uprobe:{}:hit", calls.display());
    let counted = CALLED.to_string();
    for options in [
        &["--switch-output=200K"][..],
        &["--switch-output=60K", "-z"],
    ] {
        let session = Session::alone();
        let options = [&["-e", &probe, "--call-graph", "none"], options].concat();
        let words = record(&session, &options, &[calls.to_str().unwrap(), &counted]);
        let files = files(&session);
        assert!((3..1000).contains(&files.len()), "{words}");
        assert_eq!(said(&words), (files.len(), CALLED), "{words}");
        assert_eq!(counts_of(&files).iter().sum::<usize>(), CALLED, "{words}");
    }
}

#[test]
fn each_file_is_complete_by_itself() {
    if !needs(PERF) {
        return;
    }
    for how in [&["-z"][..], &[], &["--no-unwind"]] {
        let session = Session::new();
        let options = ["-e", "cpu-clock:u", "-F", "999", "--switch-output=150ms"];
        let program = THREADS.build();
        let words = record(
            &session,
            &[&options, how].concat(),
            &[program.to_str().unwrap(), "300"],
        );
        let files = files(&session);
        assert!(files.len() > 1, "{words}");
        let counts = counts_of(&files);
        assert_eq!(said(&words), (files.len(), counts.iter().sum()), "{words}");
        // A file may have come to its end just when it had begun.
        let long = files.iter().zip(counts).filter(|(_, count)| *count > 10);
        for (file, _) in long.take(3) {
            assert_complete(&session, file, ("threads", "busy"));
            assert_no_coverage(&session, file);
            if how != ["--no-unwind"] {
                let samples = perf_script(file);
                let has_root = |sample: &&PerfSample| starts_at_root(&outermost_first(sample));
                let whole = samples.iter().filter(has_root).count();
                assert!(whole * 10 > samples.len() * 9, "{whole}: {words}");
            }
        }
    }
}

/// The work of threads is known for all files together only, so that no file is corrected by it.
fn assert_no_coverage(session: &Session, file: &Path) {
    let file = file.to_str().unwrap();
    let reported = session.run(["report", "--coverage", "-i", file]).stdout;
    assert!(
        reported.contains("does not say how much work"),
        "{reported}"
    );
}

fn outermost_first(sample: &PerfSample) -> Vec<String> {
    sample.frames.iter().rev().cloned().collect()
}

fn signal(child: &Child, name: &str) {
    prof_tests::signal(name, child.id());
}

fn spawn(session: &Session, arguments: &[&str]) -> (Command, Child) {
    let mut command = session.prof(arguments);
    command.stderr(Stdio::piped()).stdout(Stdio::piped());
    let child = command.spawn().unwrap();
    (command, child)
}

#[test]
fn a_running_process_is_recorded_to_the_next_file_on_request() {
    if !needs(PERF) {
        return;
    }
    let session = Session::new();
    let target = Endless::install(&session, "endless");
    let target = Endless::start(session.command(&target, ["60"]));
    let pid = target.pid().to_string();
    let options = ["record", "-e", "cpu-clock:u", "-F", "1999", "-p", &pid];
    let (command, mut prof) = spawn(&session, &[&options[..], &["--switch-output"]].concat());
    let size = || std::fs::metadata(session.path("prof.data")).map_or(0, |found| found.len());
    for number in 1..=2 {
        wait_until(&mut prof, || size() > 100 << 10);
        signal(&prof, "-USR2");
        wait_until(&mut prof, || files(&session).len() == number);
    }
    wait_until(&mut prof, || size() > 100 << 10);
    signal(&prof, "-INT");
    let outcome = Outcome::new(&command, prof.wait_with_output().unwrap());
    outcome.assert_code(0);
    target.end();
    let files = files(&session);
    assert_eq!(files.len(), 3, "{outcome}");
    for (file, samples) in files.iter().zip(samples_of(&files)) {
        outcome.assert_says(&[&file.file_name().unwrap().to_string_lossy()]);
        assert_complete(&session, file, ("endless", "helping"));
        assert_deep(&samples);
    }
}

/// The busy thread of `endless 60` was sampled, and with all its stack.
#[track_caller]
fn assert_deep(samples: &[PerfSample]) {
    let calls = |sample: &PerfSample, name: &str| {
        let frames = sample.frames.iter().filter(|frame| *frame == name);
        frames.count()
    };
    let leading: Vec<_> = samples
        .iter()
        .filter(|it| calls(it, "leading") > 0)
        .collect();
    let whole = leading
        .iter()
        .filter(|it| calls(it, "descend") == 61)
        .count();
    assert!(
        whole > 0 && whole * 10 >= leading.len() * 9,
        "{whole} of {}",
        leading.len()
    );
}

#[test]
fn all_cpus_are_recorded_to_several_files() {
    if !needs(ROOT) {
        return;
    }
    let session = Session::alone();
    let stranger = Endless::install(&session, "stranger");
    let stranger = Endless::start(session.command(&stranger, ["60"]));
    let program = THREADS.build();
    let options = ["-a", "-e", "cpu-clock:u", "--switch-output=300ms"];
    let words = record(&session, &options, &[program.to_str().unwrap(), "400"]);
    stranger.end();
    let files = files(&session);
    assert!(files.len() > 1, "{words}");
    let some = &files[..files.len().min(3)];
    for file in some {
        let outcome = session.run([Path::new("report"), Path::new("-i"), file]);
        outcome.assert_code(0);
    }
    // Processes from before the recording are known in later files, too.
    assert_deep(&samples_of(some)[1..].concat());
}

#[test]
fn the_youngest_files_are_kept() {
    if !needs(ROOT) {
        return;
    }
    let session = Session::new();
    let calls = CALLS.build();
    let probe = format!("uprobe:{}:hit", calls.display());
    let options = ["-e", &probe, "--call-graph", "none", "--switch-output=100K"];
    let options = [&options[..], &["--switch-max-files", "2"]].concat();
    let words = record(&session, &options, &[calls.to_str().unwrap(), "5000"]);
    let files = files(&session);
    assert_eq!(files.len(), 2, "{words}");
    assert_eq!(said(&words), (2, 5000), "{words}");
    // All files were reported, and the remaining ones are the last.
    let reported: Vec<&str> = words
        .lines()
        .filter(|line| line.contains("prof.data."))
        .collect();
    assert!(reported.len() > 2, "{words}");
    for (file, line) in files.iter().zip(&reported[reported.len() - 2..]) {
        assert!(
            line.ends_with(&*file.file_name().unwrap().to_string_lossy()),
            "{words}"
        );
    }
    let found: usize = counts_of(&files).iter().sum();
    assert!((100..5000).contains(&found), "{found}: {words}");
}

#[test]
fn the_last_seconds_are_kept_in_memory_until_requested() {
    if !needs(ROOT) {
        return;
    }
    let calls = CALLS.build();
    let probe = format!("uprobe:{}:hit", calls.display());
    let record = |most: &str| {
        let session = Session::new();
        let snapshot = format!("--snapshot={most}");
        let options = ["-e", &probe, "--call-graph", "none", &snapshot];
        let words = record(&session, &options, &[calls.to_str().unwrap(), "5000"]);
        let files = files(&session);
        assert_eq!(files.len(), 1, "{words}");
        let size = std::fs::metadata(&files[0]).unwrap().len();
        let samples = counts_of(&files)[0];
        assert_eq!(said(&words), (1, samples), "{words}");
        (samples, size)
    };
    // An hour is all of it.
    assert_eq!(record("1h").0, 5000);
    let (samples, size) = record("100K");
    assert!((100..4000).contains(&samples), "{samples}");
    // The last chunk has any size, and the rest of a file is small.
    assert!(size < 150 << 10, "{size}");
}

#[test]
fn snapshots_hold_the_time_before_the_request() {
    if !needs(PERF) {
        return;
    }
    let session = Session::new();
    let target = Endless::install(&session, "endless");
    let target = Endless::start(session.command(&target, ["60"]));
    let pid = target.pid().to_string();
    let options = ["record", "-e", "cpu-clock:u", "-F", "1999", "-p", &pid];
    let (command, mut prof) = spawn(&session, &[&options[..], &["--snapshot=400ms"]].concat());
    wait_until(&mut prof, || session.path("prof.data").exists());
    for number in 1..=3 {
        // It works for longer than the kept time.
        let before = cpu_ticks(target.pid());
        wait_until(&mut prof, || cpu_ticks(target.pid()) > before + 120);
        signal(&prof, "-USR2");
        wait_until(&mut prof, || files(&session).len() == number);
    }
    signal(&prof, "-INT");
    let outcome = Outcome::new(&command, prof.wait_with_output().unwrap());
    outcome.assert_code(0);
    target.end();
    let files = files(&session);
    assert_eq!(files.len(), 4, "{outcome}");
    for (number, (file, samples)) in files.iter().zip(samples_of(&files)).enumerate() {
        // Samples are dropped in eighths: one may still be filled, and one is too old in part, or
        // wholly so if the target did not run for a while.
        let last = samples.last().map_or(0, |sample| sample.time);
        let is_old = |sample: &&PerfSample| sample.time + 400_000_000 < last;
        let old: Vec<u64> = samples.iter().filter(is_old).map(|it| it.time).collect();
        let lasts = old.last().zip(old.first()).map_or(0, |(b, a)| b - a);
        assert!(lasts <= 100_000_000, "{lasts}: {outcome}");
        if number < 3 {
            assert_complete(&session, file, ("endless", "leading"));
        }
    }
}

/// Hundredths of a second of CPU time that a process has used.
fn cpu_ticks(pid: i32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields = stat.rsplit(") ").next().unwrap().split(' ');
    fields
        .skip(11)
        .take(2)
        .map(|ticks| ticks.parse::<u64>().unwrap())
        .sum()
}

#[test]
fn flags_that_exclude_several_files_are_refused() {
    let session = Session::new();
    for (options, word) in [
        (&["--switch-output", "-o", "-"][..], "-o -"),
        (&["--snapshot", "-o", "-"], "-o -"),
        (&["--switch-output", "--max-size", "1M"], "--max-size"),
        (&["--snapshot", "--max-size", "1M"], "--max-size"),
        (&["--snapshot", "--flamegraph", "x.svg"], "--flamegraph"),
        (&["--switch-output", "--snapshot"], "--snapshot"),
        (&["--switch-max-files", "3"], "--switch-output"),
        (&["--switch-output=10"], "write a size"),
        (&["--switch-output=0s"], "more than zero"),
        (&["--switch-max-files", "0", "--switch-output"], "0"),
    ] {
        let outcome = session.run([&["record"], options, &["--", "echo", "started"]].concat());
        outcome.assert_refused(&[word]);
        assert_eq!(outcome.stdout, "", "{options:?}");
    }
}
