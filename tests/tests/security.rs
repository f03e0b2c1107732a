//! The promises of docs/security.md that need real users and real files.

use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use std::process::Command;

use prof_tests::{Compiler, Need, Outcome, Program, Session, needs};

const SHARES: Program = Program::c(&["shares.c"]);

#[test]
fn a_recording_is_for_its_owner_only() {
    let session = Session::new();
    let binary = SHARES.build();
    // With any umask.
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
    // Like /tmp: everybody may write, but remove only their own files.
    let session = Session::new();
    let shared = session.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let precious = session.write("precious", b"precious");
    let link = shared.join("prof.data");
    symlink(&precious, &link).unwrap();
    lchown(&link, Some(65534), Some(65534)).unwrap();
    let words = ["record", "-o", link.to_str().unwrap(), "--", "true"];
    session.run(words).assert_code(0);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    let made = fs::symlink_metadata(&link).unwrap();
    assert!(made.is_file() && made.uid() == 0 && made.mode() & 0o777 == 0o600);
}

/// Root's own file behind another user's link is neither written nor changed in owner.
#[test]
fn an_archive_does_not_go_through_a_link() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    session.record(&[], &[&*SHARES.build(), Path::new("50")]);
    let data = session.path("prof.data");
    lchown(&data, Some(65534), Some(65534)).unwrap();
    let shared = session.path("shared");
    fs::create_dir(&shared).unwrap();
    fs::set_permissions(&shared, Permissions::from_mode(0o1777)).unwrap();
    let precious = session.write("precious", b"precious");
    let link = shared.join("out.data");
    symlink(&precious, &link).unwrap();
    lchown(&link, Some(65534), Some(65534)).unwrap();
    let words = ["archive", "prof.data", "-o", link.to_str().unwrap()];
    session.run(words).assert_code(0);
    assert_eq!(fs::read(&precious).unwrap(), b"precious");
    let made = fs::symlink_metadata(&link).unwrap();
    assert!(made.is_file() && made.uid() == 0 && made.mode() & 0o777 == 0o600);
}

/// With any umask: a profile is private.
#[test]
fn all_that_is_written_is_for_its_owner_only() {
    let session = Session::new();
    session.record(&[], &[&*SHARES.build(), Path::new("50")]);
    const OUTPUTS: &[&str] = &[
        "report --flamegraph=f.svg",
        "report --folded=f.txt",
        "report --pprof=p.gz",
        "report --json=r.json",
        "report --firefox=f.json",
        "report --speedscope=s.json",
        "report --timeline=t.svg",
        "archive -o a.data",
        "stat -o s.txt -- true",
    ];
    let outputs = OUTPUTS.iter().map(|words| format!("\"$0\" {words}"));
    let script = format!(
        "umask 000; set -e; {}",
        outputs.collect::<Vec<_>>().join("; ")
    );
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &script])
        .arg(prof_tests::prof())
        .current_dir(session.directory());
    Outcome::of(shell).assert_code(0);
    let names = [
        "f.svg", "f.txt", "p.gz", "r.json", "f.json", "s.json", "t.svg", "a.data", "s.txt",
    ];
    for name in names {
        let mode = fs::metadata(session.path(name)).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

/// The lines of strace about prof with these arguments, as root.
fn system_calls(session: &Session, which: &str, arguments: &[&str]) -> Vec<String> {
    let trace = session.path("trace");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-e", &format!("trace={which}"), "-o"]);
    strace.arg(&trace).arg(prof_tests::prof()).args(arguments);
    strace.current_dir(session.directory());
    Outcome::of(strace).assert_code(0);
    let text = fs::read_to_string(&trace).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn succeeded(lines: &[String]) -> usize {
    lines.iter().filter(|line| line.ends_with("= 0")).count()
}

const AS_USER: [&str; 4] = [
    "setpriv",
    "--reuid=65534",
    "--regid=65534",
    "--clear-groups",
];

const EXECUTE: &str = "execve,execveat";

/// Root records another user's program, whose files would give themselves away if they ran, and
/// reports on it.
#[test]
fn nothing_of_the_target_is_executed() {
    if !needs(&[Need::Root, Need::Tool("strace"), Need::Tool("setpriv")]) {
        return;
    }
    let session = Session::plain_user();
    let flags = &["-shared", "-fPIC", "-DNAME=plugin"];
    let library = session.install(&Program::new(&["plugin.c"], Compiler::Gcc, flags).build());
    let loader = Program::new(&["loader.c"], Compiler::Gcc, &["-ldl"]).build();
    let loader = session.install(&loader);
    let (loader, library) = (loader.to_str().unwrap(), library.to_str().unwrap());
    let record = ["record", "-e", "cpu-clock", "-o", "root.data", "--"];
    let target = [loader, library, library, "100"];
    let words = [&record[..], &AS_USER, &target].concat();
    let started = system_calls(&session, EXECUTE, &words);
    assert_eq!(
        succeeded(&started),
        3,
        "prof, setpriv and the program: {started:#?}"
    );
    let report = ["report", "-i", "root.data", "--folded", "-"];
    let started = system_calls(&session, EXECUTE, &report);
    assert_eq!(succeeded(&started), 1, "prof alone: {started:#?}");
}

/// prof opens a user's files for reading only, and does not create files through links.
#[test]
fn files_of_the_target_are_only_read() {
    if !needs(&[Need::Root, Need::Tool("strace"), Need::Tool("setpriv")]) {
        return;
    }
    let session = Session::plain_user();
    let binary = session.install(&SHARES.build());
    let record = ["record", "-e", "cpu-clock", "-o", "root.data", "--"];
    let words = [&record[..], &AS_USER, &[binary.to_str().unwrap(), "200"]].concat();
    let opened = system_calls(&session, "open,openat,openat2,creat", &words);
    // Also as a path below the process's root directory.
    let below_root = binary.strip_prefix("/").unwrap().to_str().unwrap();
    let of_target = |line: &&String| line.contains(below_root);
    assert!(opened.iter().any(|line| of_target(&line)), "{opened:#?}");
    for line in &opened {
        let writes = ["O_WRONLY", "O_RDWR", "O_CREAT"]
            .iter()
            .any(|how| line.contains(how));
        let own = ["root.data", "\"/dev/"];
        let own = own.iter().any(|place| line.contains(place));
        assert!(!writes || own, "{line}");
        let made = line.contains("O_CREAT");
        assert!(
            !made || line.contains("O_EXCL") || line.contains("O_NOFOLLOW"),
            "{line}"
        );
    }
}

/// A library without a build id that is replaced by a pipe while the program runs: opening it would
/// wait for ever.
#[test]
fn special_files_are_not_read_as_libraries() {
    let session = Session::new();
    let flags = &["-shared", "-fPIC", "-DNAME=plugin", "-Wl,--build-id=none"];
    let built = Program::new(&["plugin.c"], Compiler::Gcc, flags).build();
    let library = session.path("library.so");
    let loader = Program::new(&["loader.c"], Compiler::Gcc, &["-ldl"]).build();
    for how in [&[][..], &["--no-unwind"]] {
        fs::copy(&built, &library).unwrap();
        let words = [
            loader.clone(),
            library.clone(),
            library.clone(),
            "20".into(),
        ];
        let recorded = session.record(how, &words);
        fs::remove_file(&library).unwrap();
        let status = Command::new("mkfifo").arg(&library).status().unwrap();
        assert!(status.success());
        // It ends, and says that symbols are missing.
        recorded.report(&[]);
        fs::remove_file(&library).unwrap();
    }
}
