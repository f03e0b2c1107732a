//! Rare machines, directories, outputs and names: prof says what is wrong, or works anyway.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use prof_tests::{Need, Outcome, Program, Session, USER_CODE, copy_executable, needs};

const SHARES: Program = Program::c(&["shares.c"]);

/// A shell in a mount namespace of its own, with prof's path as `$0` and the program's as `$1`.
fn in_own_namespace(session: &Session, script: &str) -> Outcome {
    let mut command = session.command(Path::new("unshare"), ["--mount", "sh", "-c", script]);
    command.arg(prof_tests::prof()).arg(SHARES.build());
    Outcome::of(command)
}

#[test]
fn without_proc_or_sys_the_advice_is_to_mount_them() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    for (verb, missing) in [
        ("record -- \"$1\" 20", "proc"),
        ("record --sampler ptrace -- \"$1\" 20", "proc"),
        ("stat -- \"$1\" 20", "proc"),
        ("doctor", "proc"),
        ("record -- \"$1\" 20", "sys"),
        ("doctor", "sys"),
        ("list", "sys"),
    ] {
        let script = format!("umount --lazy /{missing} && exec \"$0\" {verb}");
        let outcome = in_own_namespace(&session, &script);
        outcome.assert_refused(&[&format!("/{missing}"), "mount"]);
    }
}

#[test]
fn the_processes_of_another_namespace_are_not_taken_for_others() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    for verb in ["record -- \"$1\" 20", "stat -- \"$1\" 20"] {
        let unshare = |options| format!("unshare --pid --fork {options} \"$0\" {verb}");
        let outcome = in_own_namespace(&session, &unshare(""));
        outcome.assert_refused(&["another PID namespace", "--mount-proc"]);
        in_own_namespace(&session, &unshare("--mount-proc")).assert_code(0);
    }
}

#[test]
fn unwritable_outputs_are_reported_before_the_command_runs() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    std::fs::create_dir(session.path("small")).unwrap();
    let script =
        "mount -t tmpfs -o ro none small && cd small && exec \"$0\" record -- echo started";
    let outcome = in_own_namespace(&session, script);
    outcome.assert_refused(&["prof.data", "read-only"]);
    assert_eq!(outcome.stdout, "");
}

#[test]
fn a_directory_that_is_gone() {
    let session = Session::new();
    let script = "mkdir gone && cd gone && rmdir ../gone && { \"$0\" record -- \"$1\" 20; \
                  \"$0\" record -o \"$2\" -- \"$1\" 20 && exec \"$0\" report -i \"$2\"; }";
    let mut shell = session.command(Path::new("sh"), ["-c", script]);
    shell.arg(prof_tests::prof()).arg(SHARES.build());
    shell.arg(session.path("elsewhere.data"));
    let outcome = Outcome::of(shell);
    outcome
        .assert_code(0)
        .assert_says(&["cannot write prof.data: no such file"]);
    assert!(outcome.stdout.contains("burn_sixty"), "{outcome}");
}

/// Closed and full outputs: prof's messages are lost, but not its work.
#[test]
fn outputs_that_take_nothing() {
    let session = Session::new();
    let run = |script: &str| {
        let mut shell = session.command(Path::new("sh"), ["-c", script]);
        shell.arg(prof_tests::prof()).arg(SHARES.build());
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        shell.status().unwrap().code()
    };
    for (script, code) in [
        ("\"$0\" record -- \"$1\" 20 2>/dev/full", 0),
        ("\"$0\" record -- \"$1\" 20 2>&-", 0),
        ("\"$0\" record -- \"$1\" 20 <&- >&- 2>&-", 0),
        ("\"$0\" report 2>/dev/full", 0),
        ("\"$0\" report >/dev/full", 1),
        ("\"$0\" report -i gone 2>/dev/full", 1),
        ("\"$0\" script >/dev/full", 1),
        ("\"$0\" list >/dev/full", 1),
        ("set -o pipefail; \"$0\" script | true", 0),
        ("set -o pipefail; \"$0\" report --folded - | true", 0),
    ] {
        let script = match script.starts_with("set") {
            true => format!("exec bash -c '{script}' \"$0\" \"$1\""),
            false => script.to_owned(),
        };
        assert_eq!(run(&script), Some(code), "{script}");
    }
    session.run(["report"]).assert_code(0);
}

#[test]
fn no_environment_at_all() {
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[SHARES.build().to_str().unwrap(), "50"]);
    let variables = [&[][..], &[("LC_ALL", "zz_ZZ.none"), ("TERM", "dumb")]];
    for (variables, view) in variables
        .iter()
        .flat_map(|v| [(v, "--tree"), (v, "--timeline")])
    {
        let mut report = Command::new(prof_tests::prof());
        report.args(["report", view, "-i"]).arg(&recorded.file);
        report.env_clear().envs(variables.iter().copied());
        let outcome = Outcome::of(report);
        outcome.assert_code(0);
        assert!(outcome.stdout.contains("shares"), "{outcome}");
    }
}

/// No name of a program or directory breaks a view's lines or controls the terminal.
#[test]
fn names_that_are_no_words() {
    let session = Session::new();
    let names: [&[u8]; 6] = [
        b"two words",
        b"line\nbreak",
        b"\x1b[31mred\x07",
        b"\xff\xfe",
        b"--flag",
        b"a;b 3",
    ];
    for name in names {
        let name = OsStr::from_bytes(name);
        let folder = session.directory().join(name);
        std::fs::create_dir(&folder).unwrap();
        let program = folder.join(name);
        copy_executable(&SHARES.build(), &program);
        let recorded = session.record(USER_CODE, &[program.as_os_str(), OsStr::new("100")]);
        for view in [
            &["--no-inline"][..],
            &["--tree"],
            &["--timeline"],
            &["--folded", "-"],
            &["--coverage"],
            &["--unwind-failures"],
        ] {
            let outcome = recorded.report(view);
            let control = |c: char| c.is_control() && c != '\n';
            assert!(!outcome.stdout.contains(control), "{view:?}: {outcome}");
            assert!(!outcome.stderr.contains(control), "{view:?}: {outcome}");
            // Each line of the program's own is whole: none begins where its name was broken.
            let torn = |line: &str| line.starts_with("break");
            assert!(!outcome.stdout.lines().any(torn), "{view:?}: {outcome}");
        }
        let json = recorded.report(&["--json", "-"]).stdout;
        serde_json::from_str::<serde_json::Value>(&json).unwrap();
        let mut archive = session.prof(["archive"]);
        archive.arg(&recorded.file);
        Outcome::of(archive).assert_code(0);
        std::fs::remove_file(&program).unwrap();
        let stacks = recorded.physical_stacks();
        stacks.assert_hottest(&["main", "work", "burn_sixty"]);
        let mut named = session.prof(["record", "-o"]);
        named.arg(folder.join("out")).args(["--", "true"]);
        Outcome::of(named).assert_code(0);
    }
}

/// The inner one samples its command, the outer one the inner one too.
#[test]
fn a_recording_within_a_recording() {
    let session = Session::new();
    let (prof, shares) = (prof_tests::prof(), SHARES.build());
    let words = ["record", "-o", "inner.data", "--"].map(OsStr::new);
    let inner = [
        &[prof.as_os_str()][..],
        &words,
        &[shares.as_os_str(), OsStr::new("300")],
    ];
    let outer = session.record(&["-e", "cpu-clock:u", "-o", "outer.data"], &inner.concat());
    for file in ["outer.data", "inner.data"] {
        let report = session.run(["report", "-i", file, "--no-inline", "--folded", "-"]);
        report.assert_code(0);
        let stacks = prof_tests::Stacks::from_folded(&report.stdout);
        let share = stacks.self_share("burn_sixty");
        assert!(share > 0.3, "{file}: {share}\n{stacks}");
    }
    outer.outcome.assert_says(&["inner.data", "outer.data"]);
}

/// Limits that a shell may have set for us and the program.
#[test]
fn small_limits_do_no_harm() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let under = |limit: &str, words: &[&str]| {
        let script = format!("ulimit {limit}; exec \"$@\"");
        let launcher = ["sh", "-c", &script, "sh"].map(OsString::from);
        Outcome::of(session.prof_under(&launcher, words))
    };
    // The stack of the first thread has 64 KB. The shell's end comes long before a period's.
    let record = [
        "record",
        "-e",
        "cpu-clock:u",
        "-c",
        "1000000000",
        "--",
        "sh",
        "-c",
        "kill -TERM $$",
    ];
    under("-s 64", &record).assert_code(143);
    under("-s 64", &["report"]).assert_refused(&["no samples"]);
    let refused = under("-n 16", &record);
    refused
        .assert_code(126)
        .assert_says(&["open files", "ulimit -n"]);
}

#[test]
fn a_limit_on_the_size_of_outputs() {
    let session = Session::new();
    session.record(
        &["-e", "cpu-clock"],
        &[SHARES.build().to_str().unwrap(), "300"],
    );
    let prof = prof_tests::prof();
    for verb in [
        "archive -o new.data",
        "report --flamegraph new.svg",
        "report --pprof new.pb",
    ] {
        // One block of 512 bytes (dash) or 1024 (bash).
        let script = format!("ulimit -f 1; '{}' {verb}", prof.display());
        let outcome = Outcome::of(session.command(Path::new("sh"), ["-c", &script]));
        outcome
            .assert_code(1)
            .assert_says(&["cannot write new", "too large"]);
    }
    let left = fs::read_dir(session.path("")).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let left: Vec<_> = left.filter(|name| name.contains("new")).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Code that was moved is in no mapping that the kernel reports.
#[test]
fn kernel_work_of_code_that_is_in_no_known_mapping_has_no_stack_and_is_not_good() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let program = Program::c(&["moved_code.c"]).build();
    for flags in [
        &["-e", "cpu-clock"][..],
        &["-e", "cpu-clock", "--no-unwind"],
    ] {
        let recorded = session.record(flags, &[&program]);
        let reported = recorded.report(&["--limit", "1"]).stdout;
        assert!(
            reported.contains("verdict: BAD")
                && reported.contains("the recording does not say what code the process had mapped"),
            "{reported}"
        );
    }
}
