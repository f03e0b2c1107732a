//! Programs whose files are not visible to us: deleted ones, memfds, those in containers.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use prof_tests::{Need, Program, Session, USER_CODE, Variant, allowed, copy_executable, needs};

const VANISH: Program = Program::c(&["vanish.c"]);
const JIT: Program = Program::c(&["jit.c"]);

#[track_caller]
fn check_vanishing(session: &Session, cases: &[(&str, Variant)]) {
    for &(how, variant) in cases {
        let program = session.install(&VANISH.build_as(variant));
        let recorded = session.record(USER_CODE, &[program.to_str().unwrap(), how]);
        let outcome = recorded.report(&["--folded", "-"]);
        let folded = &outcome.stdout;
        assert_named(folded, "outer_of_the_vanished;inner_of_the_vanished");
    }
}

#[test]
fn deleted_programs_and_memfds_have_whole_stacks_and_names() {
    let cases = [
        ("unlink", Variant::PLAIN),
        ("memfd", Variant::PLAIN),
        ("memfd", Variant::STATIC),
    ];
    check_vanishing(&Session::new(), &cases);
}

#[test]
fn deleted_programs_and_memfds_of_plain_users_as_well() {
    if needs(&[Need::Root, Need::PlainSampling]) {
        let cases = [("unlink", Variant::PLAIN), ("memfd", Variant::PLAIN)];
        check_vanishing(&Session::plain_user(), &cases);
    }
}

/// Nearly all of the weight is in stacks that begin at the root and hold these callers in a row.
#[track_caller]
fn assert_named(folded: &str, callers: &str) {
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let good = |line: &&str| line.contains("_start;") && line.contains(callers);
    let all: u64 = folded.lines().map(weight).sum();
    let good: u64 = folded.lines().filter(good).map(weight).sum();
    assert!(good * 10 > all * 9, "{good} of {all} in:\n{folded}");
}

/// A root directory with nothing in it but a program in `/app` and an empty `/tmp`.
struct Container<'a> {
    session: &'a Session,
    program: String,
}

impl<'a> Container<'a> {
    fn new(session: &'a Session, program: &Path) -> Self {
        for directory in ["root", "root/app", "root/tmp", "root/old"] {
            std::fs::create_dir(session.path(directory)).unwrap();
        }
        let name = program.file_name().unwrap().to_str().unwrap();
        copy_executable(program, &session.path("root/app").join(name));
        Self {
            session,
            program: format!("/app/{name}"),
        }
    }

    /// The command that runs the program inside, as the first process of its own PID namespace,
    /// with its own file system at `/tmp`.
    fn command(&self, arguments: &[&str]) -> Vec<String> {
        self.command_in(&["--mount", "--pid", "--fork"], arguments)
    }

    /// Like [`command`](Self::command), in these namespaces.
    fn command_in(&self, namespaces: &[&str], arguments: &[&str]) -> Vec<String> {
        let enter = "mount --bind root root && cd root && mount -t tmpfs tmp tmp \
                     && pivot_root . old && exec \"$@\"";
        let shell = ["sh", "-c", enter, "sh", &self.program];
        let words = [&["unshare"], namespaces, &shell, arguments].concat();
        words.into_iter().map(str::to_owned).collect()
    }

    /// Checks that it is really gone: neither the program nor its `/tmp` is visible from here.
    #[track_caller]
    fn assert_unseen(&self) {
        assert!(!Path::new(&self.program).exists());
        let left: Vec<PathBuf> = std::fs::read_dir(self.session.path("root/tmp"))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

#[test]
fn a_container_that_is_gone_has_whole_stacks_and_names() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    // Without frame pointers in the C library, theirs don't reach far.
    for stacks in ["dwarf", "fp"] {
        let session = Session::new();
        let container = Container::new(&session, &VANISH.build_as(Variant::STATIC));
        let options = [USER_CODE, &["--call-graph", stacks]].concat();
        let recorded = session.record(&options, &container.command(&["run"]));
        container.assert_unseen();
        let folded = || {
            let outcome = recorded.report(&["--folded", "-", "--module", "vanish"]);
            outcome.stdout
        };
        let before = folded();
        match stacks {
            "dwarf" => assert_named(&before, "outer_of_the_vanished;inner_of_the_vanished"),
            _ => assert!(before.contains("inner_of_the_vanished"), "{before}"),
        }
        std::fs::remove_dir_all(session.path("root")).unwrap();
        assert_eq!(folded(), before);
    }
}

/// In a user namespace of their own, as rootless containers are.
#[test]
fn a_container_of_a_plain_user_that_is_gone_as_well() {
    if !needs(&[Need::Root, Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let namespaces = ["--user", "--map-root-user", "--mount", "--pid", "--fork"];
    let words = [&namespaces[..], &["true"]].concat();
    if !allowed(session.command(Path::new("unshare"), words)) {
        return;
    }
    let container = Container::new(&session, &VANISH.build_as(Variant::STATIC));
    let recorded = session.record(USER_CODE, &container.command_in(&namespaces, &["run"]));
    container.assert_unseen();
    std::fs::remove_dir_all(session.path("root")).unwrap();
    let folded = recorded.report(&["--folded", "-", "--module", "vanish"]);
    assert_named(
        &folded.stdout,
        "outer_of_the_vanished;inner_of_the_vanished",
    );
}

#[test]
fn maps_of_run_time_code_are_read_in_containers() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let container = Container::new(&session, &JIT.build_as(Variant::STATIC));
    let recorded = session.record(USER_CODE, &container.command(&[]));
    container.assert_unseen();
    let folded = recorded
        .report(&["--folded", "-", "--module", "jit"])
        .stdout;
    assert_named(&folded, "calls_generated_code;function_made_at_run_time");
}

#[test]
fn jitdumps_are_read_where_the_recording_says() {
    let session = Session::new();
    let program = JIT.build();
    let directory = session.directory().to_str().unwrap();
    let recorded = session.record(USER_CODE, &[program.to_str().unwrap(), "300", directory]);
    let folded = recorded.report(&["--folded", "-"]).stdout;
    assert_named(&folded, "calls_generated_code;function_in_a_jitdump");
}

#[test]
fn a_running_container_is_seen_from_outside() {
    if !needs(&[Need::MountNamespaces, Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let container = Container::new(&session, &JIT.build_as(Variant::STATIC));
    // perf keeps no files of the container, and ends before it.
    let leave = "mkfifo ran && exec 3<&0 && { \"$@\" <&3 >ran & } && read line <ran";
    let mut perf = session.command(
        Path::new("perf"),
        // Unless it requests build ids, perf 6.1 aborts if another program requests them.
        [
            "record",
            "--quiet",
            "--buildid-mmap",
            "--call-graph",
            "dwarf",
        ],
    );
    perf.args(["-o", "perf.data", "-e", "cpu-clock:u", "--"]);
    perf.args(["sh", "-c", leave, "sh"]);
    perf.args(container.command(&["300", "wait"]));
    let mut perf = perf.stdin(Stdio::piped()).spawn().unwrap();
    // The program ends when this is closed.
    let lifeline = perf.stdin.take().unwrap();
    assert!(perf.wait().unwrap().success());
    container.assert_unseen();

    let report = || {
        let outcome = session.run(["report", "-i", "perf.data", "--tree"]);
        outcome.assert_code(0);
        outcome.stdout
    };
    let names = ["main", "calls_generated_code", "function_made_at_run_time"];
    let tree = report();
    assert!(names.iter().all(|name| tree.contains(name)), "{tree}");

    // A file that another user may have put there is not used.
    let tmp = process_root(&session).join("tmp");
    let map = std::fs::read_dir(&tmp)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    std::os::unix::fs::chown(&map, Some(65534), None).unwrap();
    let tree = report();
    assert!(
        tree.contains("belongs to user 65534") && !tree.contains(names[2]),
        "{tree}"
    );
    std::fs::remove_file(&map).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", &map).unwrap();
    let tree = report();
    assert!(tree.contains("it is a symbolic link"), "{tree}");
    drop(lifeline);
}

/// The root directory, as /proc shows it, of the process in the container.
fn process_root(session: &Session) -> PathBuf {
    let script = session.run(["script", "-i", "perf.data"]).stdout;
    let line = script
        .lines()
        .find(|line| line.starts_with("jit "))
        .unwrap();
    let pid = line.split([' ', '/']).nth(1).unwrap();
    Path::new("/proc").join(pid).join("root")
}
