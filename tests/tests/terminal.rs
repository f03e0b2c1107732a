//! The recorded command has the terminal, as if prof were not there.

use std::path::Path;

use prof_tests::{Need, Outcome, Session, needs};

/// Runs the rest of its arguments as a session leader with a terminal of its own, types Ctrl-C when
/// it reads `ready`, closes the terminal when it reads `hang up`, and prints all that it reads;
/// ends as the program does.
const TERMINAL: &str = r#"
import os, pty, sys
pid, master = pty.fork()
if pid == 0:
    os.execvp(sys.argv[1], sys.argv[1:])
said = b""
while True:
    try:
        piece = os.read(master, 4096)
    except OSError:
        break
    if not piece:
        break
    if b"ready" in piece and b"ready" not in said:
        os.write(master, b"\x03")
    said += piece
    if b"hang up" in said:
        os.close(master)
        break
sys.stdout.buffer.write(said)
_, status = os.waitpid(pid, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"#;

/// The output of `prof record` of a shell script on a terminal.
fn on_a_terminal(session: &Session, script: &str) -> Outcome {
    let python = session.write("terminal.py", TERMINAL.as_bytes());
    let prof = prof_tests::prof();
    let arguments = [python.as_path(), prof].map(|path| path.as_os_str());
    let mut command = session.command(Path::new("python3"), arguments);
    command.args(["record", "-e", "cpu-clock:u", "--", "sh", "-c", script]);
    Outcome::of(command)
}

#[test]
fn the_command_is_in_the_foreground_and_nothing_else_is_changed() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    // A background process that reads from a terminal is stopped.
    let script = r#"test -t 0 && test -t 1 && test -t 2 || exit 11
        set -- $(sed 's/.*) //' /proc/$$/stat)
        test "$3" = "$6" || exit 12
        test "$(pwd -P)" = "$PLACE" || exit 13
        test "$MARK" = "as it was" || exit 14
        echo fine"#;
    let place = session.directory().canonicalize().unwrap();
    let script = format!(
        "MARK='as it was' PLACE='{}'; export MARK PLACE; {script}",
        place.display()
    );
    let outcome = on_a_terminal(&session, &script);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("fine"), "{outcome}");
    assert!(outcome.stdout.contains("verdict"), "{outcome}");
}

#[test]
fn ctrl_c_goes_to_the_command_once_and_the_recording_is_whole() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    let script = "n=0; trap 'n=$((n+1))' INT; echo ready; \
                  while test $n = 0; do :; done; i=0; while test $i -lt 20000; do i=$((i+1)); done; exit $((40+n))";
    let outcome = on_a_terminal(&session, script);
    // It was interrupted once, and went on until it ended by itself.
    outcome.assert_code(41);
    assert!(outcome.stdout.contains("verdict"), "{outcome}");
    session.run(["report"]).assert_code(0);
}

/// The terminal signals only the session's leader. (As with `ssh -t HOST prof record ...`.)
#[test]
fn a_terminal_that_is_gone_ends_the_command_and_the_recording_is_whole() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    // It works until it is told to end, but at most for some minutes.
    let script = "work() { i=0; while test $i -lt $1; do i=$((i+1)); done; }; \
                  trap 'exit 42' HUP; work 50000; echo hang up; work 300000000; exit 43";
    on_a_terminal(&session, script).assert_code(42);
    session.run(["report"]).assert_code(0);
}
