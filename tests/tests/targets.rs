//! What can be recorded besides a command and a process id.
#![forbid(unsafe_code)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use prof_tests::{Program, Session, wait_until};

/// A program under a name of its own, which says that it is ready and ends when we let it.
fn start(session: &Session, name: &str) -> Child {
    let program = session.install(&Program::c(&["lives.c"]).build());
    let renamed = session.path(name);
    std::fs::rename(program, &renamed).unwrap();
    let mut command = session.command(&renamed, ["300", "1000", "1", "wait"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut ready = String::new();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    output.read_line(&mut ready).unwrap();
    assert_eq!(ready, "ready\n");
    child
}

#[test]
fn processes_by_name() {
    let session = Session::new();
    let mut target = start(&session, "prof-named-1");
    let mut prof = session
        .prof(["record", "-e", "cpu-clock:u", "--name", "^prof-named-1$"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
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
}

#[test]
fn nobody_of_that_name_is_said_and_how_to_wait() {
    let session = Session::new();
    let outcome = session.run(["record", "--name", "^no-such-name$"]);
    outcome.assert_refused(&["no-such-name", "--wait"]);
    assert!(!session.path("prof.data").exists());
}
