//! Targets other than a command and a process id.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use prof_tests::{
    Endless, Need, Outcome, Program, Session, copy_executable, needs, signal, spawn_ready,
    wait_until,
};

/// A program under a name of its own, which says that it is ready and ends when we let it.
fn start(session: &Session, name: &str) -> Child {
    let program = session.install(&Program::c(&["short_threads.c"]).build());
    let renamed = session.path(name);
    std::fs::rename(program, &renamed).unwrap();
    spawn_ready(session.command(&renamed, ["300", "1000", "1", "wait"]))
}

fn spawn(session: &Session, options: &[&str]) -> Child {
    let arguments = [&["record", "-e", "cpu-clock:u"], options].concat();
    let mut command = session.prof(arguments);
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Lets the target go on as soon as prof samples it; it is recorded to its end.
#[track_caller]
fn check_recorded(session: &Session, mut prof: Child, mut target: Child) {
    let file = session.path("prof.data");
    wait_until(&mut prof, || {
        std::fs::metadata(&file).is_ok_and(|data| data.len() > 0)
    });
    drop(target.stdin.take());
    target.wait().unwrap();
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.contains(" samples,"), "{said}");
    let outcome = session.run(["report"]);
    assert!(outcome.stdout.contains("sixty"), "{outcome}");
}

#[test]
fn processes_by_name() {
    let session = Session::new();
    let target = start(&session, "prof-named-1");
    let prof = spawn(&session, &["--name", "^prof-named-1$"]);
    check_recorded(&session, prof, target);
}

#[test]
fn children_are_not_sampled_if_they_are_not_to_inherit() {
    let session = Session::new();
    let forks = Program::c(&["forks.c"]).build();
    let command = [forks.to_str().unwrap(), "100"];
    let check = |options: &[&str], report: &[&str], children: bool| {
        let recorded = session.record(options, &command);
        let folded = recorded
            .report(&[report, &["--folded", "-"]].concat())
            .stdout;
        assert!(folded.contains("in_parent"), "{options:?}: {folded}");
        for function in ["in_child", "in_grandchild"] {
            let found = folded.contains(function);
            assert_eq!(found, children, "{options:?}: {folded}");
        }
        recorded.report(&["--coverage"]).stdout
    };
    let first = "samples cover ";
    let alone = " of the work of 1 thread\n";
    for options in [
        &["-e", "cpu-clock:u", "-i"][..],
        &["-e", "cpu-clock/no-inherit/u"],
        &["-e", "cpu-clock:u", "--no-inherit", "--delay", "1"],
    ] {
        let coverage = check(options, &[], false);
        assert!(
            coverage.starts_with(first) && coverage.contains(alone),
            "{coverage}"
        );
    }
    // Of two events, one is inherited: the mappings of its children are known.
    let both = ["-e", "cpu-clock/no-inherit/u,page-faults/period=1/u"];
    check(&both, &["--event", "cpu-clock/no-inherit/u"], false);
    check(&both, &["--event", "page-faults/period=1/u"], true);
}

#[test]
fn no_inherit_refuses_repeat_and_ptrace() {
    let session = Session::new();
    let again = ["record", "-i", "--repeat", "2", "--", "true"];
    session.run(again).assert_refused(&["leave out --repeat"]);
    let stopped = ["record", "-i", "--sampler", "ptrace", "--", "true"];
    session.run(stopped).assert_refused(&["leave out -i"]);
}

/// The kernel reports the count of an ending thread only if it inherited its event.
#[test]
fn counts_of_ended_threads_are_their_own() {
    let session = Session::new();
    let script = "read -r go; i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done";
    let mut shell = session.command(Path::new("sh"), ["-c", script]);
    let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
    let mut prof = spawn(&session, &["-p", &shell.id().to_string()]);
    let file = session.path("prof.data");
    wait_until(&mut prof, || {
        std::fs::metadata(&file).is_ok_and(|data| data.len() > 0)
    });
    drop(shell.stdin.take());
    shell.wait().unwrap();
    assert!(prof.wait().unwrap().success());
    let report = session.run(["report", "--json", "-"]).stdout;
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    let coverage = report["quality"]["coverage"].as_array().unwrap();
    let [one] = &coverage[..] else {
        panic!("{coverage:?}");
    };
    assert_eq!(one["thread"], "sh");
    let [used, sampled] = ["used", "sampled"].map(|field| one[field].as_u64().unwrap());
    assert!(used > 0 && sampled > 0, "{coverage:?}");
}

/// A program of two threads, and a shell that starts another program as soon as there is a
/// recording, which is a moment before anything is sampled.
#[track_caller]
fn check_several(session: &Session, options: &[&str]) {
    let busy = Endless::install(session, "endless");
    let threads = Endless::start(session.command(&busy, ["5"]));
    let later = session.install(&Program::c(&["shares.c"]).build());
    let script = "read -r go; ./later 300; exit $?";
    std::fs::rename(later, session.path("later")).unwrap();
    let mut shell = session.command(Path::new("sh"), ["-c", script]);
    let mut shell = shell.stdin(Stdio::piped()).spawn().unwrap();
    let pids = format!("{},{}", threads.pid(), shell.id());
    let arguments = [&["record", "-p", &pids], options].concat();
    let mut prof = session.prof(arguments);
    let mut prof = prof.stderr(Stdio::piped()).spawn().unwrap();
    let file = session.path("prof.data");
    let status = format!("/proc/{}/status", shell.id());
    wait_until(&mut prof, || {
        let status = std::fs::read_to_string(&status).unwrap();
        let is_traced = !status.contains("TracerPid:\t0\n");
        let begins = std::fs::metadata(&file).is_ok_and(|data| data.len() > 0);
        begins && (is_traced || !options.contains(&"ptrace"))
    });
    shell.stdin.take().unwrap().write_all(b"go\n").unwrap();
    assert!(shell.wait().unwrap().success());
    threads.end();
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    let outcome = session.run(["report", "--no-inline", "--folded", "-"]);
    for function in ["leading", "helping", "burn_sixty"] {
        assert!(outcome.stdout.contains(function), "{function}: {outcome}");
    }
}

#[test]
fn several_processes_with_their_threads_and_later_children() {
    // Reading the kernel's symbols takes a while.
    check_several(&Session::new(), &["-e", "cpu-clock"]);
    check_several(&Session::new(), &["-e", "cpu-clock:u"]);
    check_several(&Session::new(), &["--sampler", "ptrace"]);
}

/// Starts a `prof` that has found no process of this name, and waits for one.
fn waiting(session: &Session, pattern: &str) -> Child {
    let mut prof = spawn(session, &["--name", pattern, "--wait"]);
    let status = format!("/proc/{}/status", prof.id());
    let field = |name: &str| {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find(|line| line.starts_with(name));
        line.and_then(|line| line.split_whitespace().nth(1).map(str::to_owned))
    };
    // It blocks signals (the second one is SIGINT) before it looks, and then sleeps between looks.
    let blocks = || {
        let blocked = field("SigBlk:").and_then(|mask| u64::from_str_radix(&mask, 16).ok());
        blocked.is_some_and(|mask| mask & 2 != 0)
    };
    let slept = || field("voluntary_ctxt").and_then(|count| count.parse::<u64>().ok());
    wait_until(&mut prof, blocks);
    let before = slept();
    wait_until(&mut prof, || slept() > before.map(|before| before + 1));
    prof
}

#[test]
fn a_process_that_comes_later_is_waited_for() {
    let session = Session::new();
    let prof = waiting(&session, "^prof-later-1$");
    let target = start(&session, "prof-later-1");
    check_recorded(&session, prof, target);
}

#[test]
fn a_process_that_ends_at_once_is_followed_by_the_next_one() {
    let session = Session::new();
    copy_executable(Path::new("/bin/sleep"), &session.path("prof-brief"));
    let prof = waiting(&session, "^prof-brief$");
    let script = "for i in $(seq 50); do ./prof-brief 0; done; exec ./prof-brief 1";
    let shell = session.command(Path::new("/bin/sh"), ["-c", script]);
    Outcome::of(shell).assert_code(0);
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
}

#[test]
fn waiting_for_a_process_ends_with_a_signal() {
    let session = Session::new();
    let prof = waiting(&session, "^no-such-name$");
    signal("-INT", prof.id());
    let output = prof.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(
        said.contains("no process that matches '^no-such-name$' started"),
        "{said}"
    );
    assert!(!session.path("prof.data").exists());
}

#[test]
fn a_name_without_processes_is_refused_with_advice() {
    let session = Session::new();
    let outcome = session.run(["record", "--name", "^no-such-name$"]);
    outcome.assert_refused(&["no-such-name", "--wait"]);
    assert!(!session.path("prof.data").exists());
}

/// What prof says about a command that leaves a process running.
fn left_running(session: &Session, flags: &[&str]) -> Outcome {
    // The process ends when the pipe that it reads from does, which is ours.
    let script = "exec 3<&0; cat <&3 >/dev/null 2>&1 & exec true";
    let arguments = [&["record"], flags, &["--", "sh", "-c", script]].concat();
    let mut command = session.prof(arguments);
    command.stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let held_open = child.stdin.take();
    child.wait().unwrap();
    drop(held_open);
    Outcome::new(&command, child.wait_with_output().unwrap())
}

#[test]
fn processes_that_the_command_leaves_running_explain_missing_samples() {
    let session = Session::new();
    let outcome = left_running(&session, &["-e", "cpu-clock", "-c", "9000000000"]);
    outcome.assert_says(&["nothing was sampled: the command ended and left 1 process running"]);
}

#[test]
fn processes_that_the_command_leaves_running_are_reported_beside_samples() {
    let session = Session::new();
    let reported = "  - the command ended and left 1 process running";
    let outcome = left_running(&session, &["-e", "page-faults", "-c", "1"]);
    outcome.assert_says(&[reported]);
    // Of all that runs on the CPUs, most is not the command's.
    if needs(&[Need::Root]) {
        let outcome = left_running(&session, &["-a", "-e", "page-faults", "-c", "1"]);
        assert!(!outcome.stderr.contains("running"), "{}", outcome.stderr);
    }
}

/// A server's parent waits while its children, which `-p` does not sample, do the work.
#[test]
fn children_that_ran_before_explain_missing_samples() {
    let session = Session::new();
    // The child ends when its standard input does, which is ours.
    let mut parent = Command::new("sh")
        .args(["-c", "exec 3<&0; cat <&3 & echo ready; wait"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut ready = String::new();
    let output = parent.stdout.take().unwrap();
    BufReader::new(output).read_line(&mut ready).unwrap();
    let pid = parent.id().to_string();
    let outcome = session.run(["record", "-d", "0.1", "-p", &pid]);
    outcome.assert_says(&[
        "the target has a child that already ran",
        "(--subprocesses)",
    ]);
    drop(parent.stdin.take());
    parent.wait().unwrap();
}

/// As the workers of a server, and what they have started.
#[test]
fn children_that_run_already_are_recorded_if_requested() {
    let session = Session::new();
    let worker = Endless::install(&session, "worker");
    let start = "exec 3<&0; (\"$0\" 120 <&3; true) & wait";
    let mut command = session.command(Path::new("sh"), ["-c", start]);
    command.arg(&worker);
    let grandparent = Endless::start(command);
    let pid = grandparent.pid().to_string();
    let record = "record -e cpu-clock:u -d 1 --subprocesses -p".split(' ');
    let outcome = session.run(record.chain([&*pid]));
    outcome.assert_code(0);
    assert!(!outcome.stderr.contains("already ran"), "{outcome}");
    let report = session.run(["report", "prof.data", "--comm", "^worker$", "--folded", "-"]);
    assert!(report.stdout.contains("leading"), "{report}");
    // The shells only wait.
    let stat = "stat -e task-clock -d 0.5 -x , --subprocesses -p".split(' ');
    let counted = session.run(stat.chain([&*pid]));
    counted.assert_code(0);
    let milliseconds = counted.stderr.split(',').next().unwrap().trim();
    assert!(milliseconds.parse::<f64>().unwrap() > 50.0, "{counted}");
}

/// As `top -H` shows threads: an id after -p means its process, in each verb.
#[test]
fn the_id_of_a_thread_means_its_process() {
    let plain = [Need::Root, Need::Tool("setpriv"), Need::PlainSampling];
    for as_plain_user in [false, true] {
        if as_plain_user && !needs(&plain) {
            continue;
        }
        let session = match as_plain_user {
            false => Session::new(),
            true => Session::plain_user(),
        };
        let program = Endless::install(&session, "endless");
        let program = Endless::start(session.command(&program, ["60"]));
        let (pid, tid) = (program.pid(), program.helper());
        let line = format!("{tid} is a thread of process {pid}");
        let both = format!("{tid},{pid}");
        let record = |target: &str, more: &[&str]| {
            let words = ["record", "-F", "999", "-d", "0.3", "-p", target];
            session.run([&words, more].concat())
        };
        let user = ["-e", "cpu-clock:u"];
        for (target, more) in [
            (tid.to_string(), &user[..]),
            (both, &user),
            (tid.to_string(), &["--wall"]),
        ] {
            let outcome = record(&target, more);
            outcome.assert_code(0).assert_says(&[&line]);
            let report = session.run(["report", "--folded", "-"]);
            for expected in ["leading", "helping", "endless;"] {
                assert!(report.stdout.contains(expected), "{report}");
            }
            let unknown = format!(":{tid}");
            assert!(!report.stdout.contains(&unknown), "{report}");
        }
        let tid = tid.to_string();
        let outcome = session.run(["stat", "-e", "task-clock:u", "-d", "0.1", "-p", &tid]);
        outcome.assert_code(0).assert_says(&[&line]);
        let outcome = session.run(["top", "--stdio", "--iterations", "1", "-p", &tid]);
        outcome.assert_code(0).assert_says(&[&line]);
    }
}
