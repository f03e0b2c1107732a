//! The promises of docs/security.md that take real users and real files.
#![forbid(unsafe_code)]

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::process::Command;

use prof_tests::{Compiler, Need, Outcome, Program, Session, needs};

const SHARES: Program = Program::c(&["shares.c"]);

#[test]
fn a_recording_is_for_its_owner_only() {
    let session = Session::new();
    let binary = SHARES.build();
    // Whatever the mask of the user.
    let script = format!("umask 000; exec \"$0\" record -- {} 50", binary.display());
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .arg(prof_tests::prof())
        .current_dir(session.directory());
    Outcome::of(shell).assert_code(0);
    let mode = fs::metadata(session.path("prof.data")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
}

#[test]
fn links_of_others_are_not_followed() {
    if !needs(&[Need::Root, Need::Tool("setpriv")]) {
        return;
    }
    // As /tmp is: everybody may write, nobody may remove what is another's.
    let session = Session::new();
    let shared = session.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let precious = session.write("precious", b"precious");
    let link = shared.join("prof.data");
    symlink(&precious, &link).unwrap();
    std::os::unix::fs::lchown(&link, Some(65534), Some(65534)).unwrap();
    let words = ["record", "-o", link.to_str().unwrap(), "--", "true"];
    session.run(words).assert_code(0);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    let made = fs::symlink_metadata(&link).unwrap();
    assert!(made.is_file() && made.uid() == 0 && made.mode() & 0o777 == 0o600);
}

/// Root records a program of another user, whose files would give themselves away if they ran.
#[test]
fn nothing_of_the_target_is_executed() {
    if !needs(&[Need::Root, Need::Tool("strace")]) {
        return;
    }
    let session = Session::new();
    let binary = session.install(&SHARES.build());
    let trace = session.path("trace");
    let mut record = Command::new("strace");
    record
        .args(["-f", "-e", "trace=execve,execveat", "-o"])
        .arg(&trace);
    record
        .arg(prof_tests::prof())
        .args(["record", "--"])
        .arg(&binary)
        .arg("50");
    record.current_dir(session.directory());
    Outcome::of(record).assert_code(0);
    let started = fs::read_to_string(&trace).unwrap();
    let succeeded = |text: &str| text.lines().filter(|line| line.ends_with("= 0")).count();
    assert_eq!(succeeded(&started), 2, "prof and the program:\n{started}");
    let mut report = Command::new("strace");
    report
        .args(["-f", "-e", "trace=execve,execveat", "-o"])
        .arg(&trace);
    report
        .arg(prof_tests::prof())
        .args(["report", "--folded", "-"]);
    report.current_dir(session.directory());
    Outcome::of(report).assert_code(0);
    let started = fs::read_to_string(&trace).unwrap();
    assert_eq!(succeeded(&started), 1, "prof alone:\n{started}");
}

/// A library that is replaced by a pipe while the program runs: opening it would wait for ever.
#[test]
fn what_is_no_file_is_not_read_as_a_library() {
    let session = Session::new();
    let flags = &["-shared", "-fPIC", "-DNAME=plugin"];
    let built = Program::new(&["plugin.c"], Compiler::Gcc, flags).build();
    let library = session.path("library.so");
    fs::copy(&built, &library).unwrap();
    let loader = Program::new(&["loader.c"], Compiler::Gcc, &["-ldl"]).build();
    let words = [loader, library.clone(), library.clone(), "20".into()];
    let recorded = session.record(&[], &words);
    fs::remove_file(&library).unwrap();
    let status = Command::new("mkfifo").arg(&library).status().unwrap();
    assert!(status.success());
    // It ends, and says that something has no names.
    recorded.report(&[]);
}
