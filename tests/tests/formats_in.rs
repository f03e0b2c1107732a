//! `prof report` and `prof diff` read folded stacks and pprof profiles as they read recordings.

use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use prof_tests::{Outcome, Program, Session, Stacks};

const SHARES: Program = Program::c(&["shares.c"]);

/// Makes `whole.folded`, `whole.pprof` and the recording that they are of; returns the latter's
/// name.
fn samples(session: &Session) -> String {
    recorded(session, &[])
}

fn recorded(session: &Session, options: &[&str]) -> String {
    let recorded = session.record(options, &[SHARES.build().to_str().unwrap(), "500"]);
    let file = recorded.file.to_str().unwrap().to_owned();
    for format in ["folded", "pprof"] {
        let to = session.path(&format!("whole.{format}"));
        let flag = format!("--{format}");
        session
            .run(["report", "-i", &file, &flag, to.to_str().unwrap()])
            .assert_code(0);
    }
    file
}

fn folded(session: &Session, input: &str) -> String {
    let outcome = session.run(["report", "-i", input, "--folded", "-"]);
    outcome.assert_code(0);
    outcome.stdout
}

/// The total weight of a function in the folded stacks of a profile.
fn weight(session: &Session, inputs: &[&str], function: &str) -> f64 {
    let inputs = inputs.iter().flat_map(|input| ["-i", input]);
    let outcome = session.run(["report", "--folded", "-"].into_iter().chain(inputs));
    outcome.assert_code(0);
    let with = outcome
        .stdout
        .lines()
        .filter(|line| line.contains(function));
    let weights = with.filter_map(|line| line.rsplit_once(' ')?.1.parse::<f64>().ok());
    weights.sum()
}

#[test]
fn each_format_gives_the_same_stacks_again() {
    let session = Session::new();
    let file = samples(&session);
    let expected = folded(&session, &file);
    Stacks::from_folded(&expected).assert_hottest(&["main", "work", "burn_sixty", "burn"]);
    for input in ["whole.folded", "whole.pprof"] {
        assert_eq!(folded(&session, input), expected, "{input}");
    }
    let same = session.run(["diff", &file, "whole.pprof", "--fail-above", "0"]);
    same.assert_code(0);
    assert!(same.stdout.contains("no function changed"), "{same}");
    for (first, second) in [
        (file.as_str(), "whole.folded"),
        ("whole.folded", file.as_str()),
    ] {
        let shares = session.run(["diff", first, second, "--min-change", "0.001"]);
        shares.assert_code(0);
        assert!(!shares.stdout.contains("burn_sixty"), "{shares}");
    }
}

#[test]
fn the_text_of_samples_has_the_same_stacks() {
    let session = Session::new();
    let file = samples(&session);
    let text = session.run(["script", "-i", &file]);
    text.assert_code(0);
    session.write("samples.txt", text.stdout.as_bytes());
    let read = Stacks::from_folded(&folded(&session, "samples.txt"));
    assert_eq!(read, Stacks::from_folded(&folded(&session, &file)));
}

#[test]
fn profiles_of_other_tools_are_named() {
    let session = Session::new();
    session.write("a.bz2", b"BZh91AY&SY");
    let outcome = session.run(["report", "-i", "a.bz2"]);
    outcome.assert_refused(&["it is packed by bzip2; unpack it first (bunzip2)"]);
}

#[test]
fn several_inputs_are_one_profile() {
    let session = Session::new();
    // An event that has its name in all formats: pprof calls every clock `cpu`.
    let file = recorded(&session, &["-e", "page-faults", "-c", "1"]);
    let once = weight(&session, &[&file], "_start");
    assert!(once > 0.0);
    for inputs in [&[&*file, &*file][..], &[&file, "whole.pprof"]] {
        assert_eq!(weight(&session, inputs, "_start"), 2.0 * once);
    }
}

#[test]
fn the_standard_input_and_pipes_will_do() {
    let session = Session::new();
    let file = samples(&session);
    let expected = folded(&session, &file);
    for input in [file.as_str(), "whole.pprof", "whole.folded"] {
        let bytes = std::fs::read(session.path(input)).unwrap();
        let mut prof = session.command(prof_tests::prof(), ["report", "-i", "-", "--folded", "-"]);
        prof.stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut prof = prof.spawn().unwrap();
        prof.stdin.take().unwrap().write_all(&bytes).unwrap();
        let output = prof.wait_with_output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), expected, "{input}");
    }
}

#[test]
fn growth_beyond_a_limit_has_a_status_of_its_own() {
    let session = Session::new();
    session.write("before", b"main;parse 100\nmain;draw 900\n");
    session.write("after", b"main;parse 300\nmain;draw 900\n");
    let check = |flags: &[&str], code, says: &[&str]| {
        let arguments = ["diff", "before", "after"].iter().chain(flags).copied();
        let outcome: Outcome = session.run(arguments);
        outcome.assert_code(code);
        outcome.assert_says(says);
    };
    check(
        &["--fail-above", "14"],
        3,
        &["parse grew from 10.00 % to 25.00 %"],
    );
    check(&["--fail-above", "16"], 0, &[]);
    check(&["--fail-above", "14:draw"], 0, &[]);
    check(&["--fail-above", "14:^par"], 3, &["parse grew"]);
    check(
        &["--fail-above", "16", "--normalize", "run"],
        3,
        &["all grew from 100.00 % to 120.00 %"],
    );
    check(&["--fail-above", "20", "--normalize", "run"], 0, &[]);
    check(&["--normalize", "rate"], 1, &["no times"]);
    // Changes that can be chance: from ten to thirteen of a hundred, or one of three.
    session.write("before", b"main;parse 10\nmain;draw 90\n");
    session.write("after", b"main;parse 13\nmain;draw 87\n");
    check(&["--fail-above", "1"], 0, &[]);
    session.write("before", b"main;draw 23\n");
    session.write("after", b"main;draw 2\nmain;parse 1\n");
    check(&["--fail-above", "2"], 0, &[]);
}

#[test]
fn missing_data_of_a_format_is_reported() {
    let session = Session::new();
    samples(&session);
    for (flags, says) in [
        (&["--since", "1"][..], "no times"),
        (&["--tid", "1"], "no threads"),
        (&["--by", "thread"], "no threads"),
    ] {
        let arguments = ["report", "-i", "whole.folded"]
            .iter()
            .chain(flags)
            .copied();
        session.run(arguments).assert_refused(&[says]);
    }
    let outcome = session.run(["report", "-i", "whole.folded"]);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("no verdict"), "{outcome}");
    // pprof has labels for these.
    for by in ["thread", "process"] {
        session
            .run(["report", "-i", "whole.pprof", "--by", by])
            .assert_code(0);
    }
}

#[test]
fn damaged_files_are_refused() {
    let session = Session::new();
    samples(&session);
    let whole = std::fs::read(session.path("whole.pprof")).unwrap();
    for length in [2, 10, whole.len() / 2, whole.len() - 1] {
        let cut = session.write("cut.pprof", &whole[..length]);
        let cut = cut.to_str().unwrap();
        session
            .run(["report", "-i", cut])
            .assert_refused(&["cut.pprof", "gzip"]);
    }
    let pprof = File::open(session.path("whole.pprof")).unwrap();
    let unpacked = Command::new("gzip").arg("-dc").stdin(pprof).output();
    let raw = unpacked.unwrap().stdout;
    for length in [raw.len() / 3, raw.len() / 2, raw.len() - 1] {
        session.write("cut.pb", &raw[..length]);
        session.run(["report", "-i", "cut.pb"]).assert_refused(&[
            "cut.pb",
            "looks like a pprof profile",
            "cut off",
        ]);
    }
    let bad = session.write("bad.folded", b"main;a 3\nno number\n");
    let bad: &Path = &bad;
    let outcome = session.run(["report", "--strict", "-i", bad.to_str().unwrap()]);
    outcome.assert_code(3);
    assert!(outcome.stdout.contains("1 sample is invalid"), "{outcome}");
}
