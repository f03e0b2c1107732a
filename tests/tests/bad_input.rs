//! Whatever is wrong with the input: a clear message, exit status 1 or 2, no panic.

use std::path::Path;
use std::sync::OnceLock;

use prof_tests::{Outcome, Program, Session, Stacks, Variant};

const SHARES: Program = Program::c(&["shares.c"]);

/// The bytes of a good recording.
fn good_recording() -> &'static [u8] {
    static BYTES: OnceLock<Vec<u8>> = OnceLock::new();
    BYTES.get_or_init(|| {
        let session = Session::new();
        let recorded = session.record(&[], &[SHARES.build().to_str().unwrap(), "500"]);
        std::fs::read(&recorded.file).unwrap()
    })
}

fn report(session: &Session, file: &Path) -> Outcome {
    session.run(["report", "-i", file.to_str().unwrap(), "--folded", "-"])
}

#[test]
fn no_file() {
    let session = Session::new();
    session
        .run(["report", "-i", "gone.data"])
        .assert_refused(&["gone.data", "no such file"]);
    session
        .run(["report"])
        .assert_refused(&["prof.data", "prof record"]);
}

#[test]
fn a_directory_given_as_a_file() {
    let session = Session::new();
    std::fs::create_dir(session.path("folder")).unwrap();
    session
        .run(["report", "-i", "folder"])
        .assert_refused(&["folder", "directory"]);
    let outcome = session.run(["record", "-o", "folder", "--", "echo", "started"]);
    outcome.assert_refused(&["folder", "directory"]);
    assert_eq!(outcome.stdout, "", "the command must not have run");
}

#[test]
fn an_empty_file() {
    let session = Session::new();
    let file = session.write("empty.data", b"");
    report(&session, &file).assert_refused(&["empty.data", "empty"]);
}

#[test]
fn files_of_another_kind() {
    let session = Session::new();
    for (name, bytes) in [
        ("text.data", &b"this is a text, not a recording\n"[..]),
        ("short.data", b"PERFILE"),
        ("zeros.data", &[0; 4096]),
        ("elf.data", &std::fs::read("/bin/sh").unwrap()),
    ] {
        let file = session.write(name, bytes);
        let outcome = report(&session, &file);
        outcome.assert_refused(&[name]);
        assert_eq!(outcome.stdout, "", "{outcome}");
    }
}

#[test]
fn the_good_part_of_a_truncated_recording_is_reported_with_a_warning() {
    // It needs a session of its own.
    let bytes = good_recording();
    let session = Session::new();
    let whole = session.write("whole.data", bytes);
    let all = Stacks::from_folded(&report(&session, &whole).stdout).total();
    let mut last = 0;
    for percent in [30, 60, 90] {
        let file = session.write("cut.data", &bytes[..bytes.len() * percent / 100]);
        let outcome = report(&session, &file);
        outcome.assert_code(0).assert_says(&["ends early"]);
        let part = Stacks::from_folded(&outcome.stdout).total();
        assert!(part > last && part <= all, "{part} of {all} at {percent} %");
        last = part;
    }
    for length in [1, 8, 50, 103, 104, 105, 200, 300] {
        let file = session.write("cut.data", &bytes[..length]);
        let code = report(&session, &file).status.code();
        assert!(matches!(code, Some(0..=2)), "{code:?} at {length} bytes");
    }
}

#[test]
fn corrupt_recordings_never_cause_a_panic_or_a_hang() {
    // It needs a session of its own.
    let good = good_recording();
    let session = Session::new();
    let mut random = Random(2024);
    for round in 0..60 {
        let mut bytes = good.to_vec();
        // The header and the tables at both ends matter most.
        let from = match round % 3 {
            0 => 0..104.min(bytes.len()),
            1 => 0..bytes.len(),
            _ => bytes.len() - 2000.min(bytes.len())..bytes.len(),
        };
        for _ in 0..1 + round % 20 {
            let position = from.start + random.below(from.len());
            bytes[position] = random.below(256) as u8;
        }
        let file = session.write("corrupt.data", &bytes);
        let mut limited = session.command(Path::new("timeout"), ["20"]);
        limited
            .arg(prof_tests::prof())
            .args(["report", "-i"])
            .arg(file);
        let outcome = Outcome::of(limited);
        let code = outcome.status.code();
        assert!(matches!(code, Some(0..=2)), "round {round}: {outcome}");
        assert!(
            code == Some(0) || outcome.stderr.len() > 10,
            "round {round}: {outcome}"
        );
    }
}

struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.0 >> 33) as usize % limit
    }
}

#[test]
fn a_missing_binary_is_named_and_its_frames_keep_module_and_offset() {
    let session = Session::new();
    let binary = session.install(&SHARES.build());
    let recorded = session.record(&[], &[binary.to_str().unwrap(), "300"]);
    std::fs::remove_file(&binary).unwrap();
    let outcome = recorded.report(&["--folded", "-"]);
    outcome.assert_says(&["shares"]);
    let stacks = Stacks::from_folded(&outcome.stdout);
    let hottest = stacks.hottest().join(";");
    assert!(
        hottest.contains("shares+0x") && !hottest.contains("[unknown]"),
        "{hottest}"
    );
    assert!(hottest.contains("__libc_start_main"), "{hottest}");
}

#[test]
fn a_binary_rebuilt_since_is_not_believed() {
    let session = Session::new();
    let binary = session.install(&SHARES.build());
    let recorded = session.record(&[], &[binary.to_str().unwrap(), "300"]);
    std::fs::remove_file(&binary).unwrap();
    let other = SHARES.build_as(Variant::new("rebuilt", &["-O1", "-DREBUILT"]));
    std::fs::copy(other, &binary).unwrap();
    let outcome = recorded.report(&["--folded", "-"]);
    outcome.assert_says(&["shares", "build id"]);
    let stacks = Stacks::from_folded(&outcome.stdout);
    let hottest = stacks.hottest().join(";");
    assert!(
        hottest.contains("shares+0x") && !hottest.contains("burn"),
        "{hottest}"
    );
}

#[test]
fn outputs_that_cannot_be_written() {
    let session = Session::new();
    for arguments in [
        &[
            "record",
            "-o",
            "no/such/dir/prof.data",
            "--",
            "echo",
            "started",
        ][..],
        &[
            "record",
            "--flamegraph",
            "no/such/dir/f.svg",
            "--",
            "echo",
            "started",
        ],
    ] {
        let outcome = session.run(arguments);
        outcome.assert_refused(&["no/such/dir", "no such file or directory"]);
        assert_eq!(
            outcome.stdout, "",
            "the command must not have run: {outcome}"
        );
    }
    session.record(&[], &[SHARES.build().to_str().unwrap(), "100"]);
    for flag in ["--flamegraph", "--folded"] {
        let outcome = session.run(["report", flag, "no/such/dir/file"]);
        outcome.assert_refused(&["no/such/dir/file", "no such file or directory"]);
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let session = Session::new();
    session.record(&[], &[SHARES.build().to_str().unwrap(), "100"]);
    for flag in ["--flamegraph", "--folded"] {
        let outcome = session.run(["report", flag, "/dev/full"]);
        outcome.assert_refused(&["/dev/full", "no space left"]);
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_error() {
    let session = Session::new();
    session.record(&[], &[SHARES.build().to_str().unwrap(), "100"]);
    let mut shell = session.command(Path::new("bash"), ["-c"]);
    shell.arg("set -o pipefail; for i in 1 2 3; do \"$0\" report --folded - | true; done");
    shell.arg(prof_tests::prof());
    let outcome = Outcome::of(shell);
    assert!(
        !outcome.stderr.to_lowercase().contains("broken pipe"),
        "{outcome}"
    );
}

#[test]
fn flags_that_make_no_sense() {
    let session = Session::new();
    for (arguments, words) in [
        (
            &["record", "-F", "0", "--", "echo", "started"][..],
            &["frequency", "at least 1"][..],
        ),
        (
            &["record", "-F", "many", "--", "echo", "started"],
            &["many"],
        ),
        (&["record", "-c", "0", "--", "echo", "started"], &["0"]),
        (
            &["record", "-e", "no-such-event", "--", "echo", "started"],
            &["no-such-event", "prof list"],
        ),
        (
            &["record", "-e", "cycles:x", "--", "echo", "started"],
            &["cycles:x"],
        ),
        (
            &["record", "-e", "cycels", "--", "echo", "started"],
            &["did you mean cycles?"],
        ),
        (
            &["record", "-e", "nopmu/event=1/", "--", "echo", "started"],
            &["no PMU \"nopmu\""],
        ),
        (
            &[
                "record",
                "-e",
                "uprobe:libc.so.6:nope",
                "--",
                "echo",
                "started",
            ],
            &["libc.so.6", "no function \"nope\""],
        ),
        (
            &["record", "--call-graph", "magic", "--", "echo", "started"],
            &["magic"],
        ),
        (&["record", "-m", "0", "--", "echo", "started"], &["0"]),
        (&["record", "-d", "-1", "--", "echo", "started"], &["-1"]),
        (&["record", "-p", "x"], &["x"]),
        (&["record"], &["command"]),
        (&["report", "--no-such-flag"], &["--no-such-flag"]),
        (&["no-such-verb"], &["no-such-verb"]),
    ] {
        let outcome = session.run(arguments);
        outcome.assert_refused(words);
        assert_eq!(
            outcome.stdout, "",
            "the command must not have run: {outcome}"
        );
    }
}

#[test]
fn a_pid_that_does_not_exist() {
    let session = Session::new();
    // The largest that the kernel could ever give out is one less.
    let pid = "4194304";
    let stopping = ["record", "--sampler", "ptrace", "-p", pid];
    let checks: [(&[&str], _); 2] = [
        (&["record", "-p", pid], "no process"),
        (&stopping, "it does not exist"),
    ];
    for (arguments, reason) in checks {
        session.run(arguments).assert_refused(&[pid, reason]);
        assert!(
            !session.path("prof.data").exists(),
            "an empty recording is left behind"
        );
    }
}
