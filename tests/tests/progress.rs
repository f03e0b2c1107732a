//! Progress messages of long work.

use std::path::Path;

use prof_tests::{Need, Outcome, Session, USER_CODE, needs};

/// Lets `prof report` read a recording from a pipe, once with a terminal for its errors and once
/// without, and writes into both pipes only when the terminal shows something.
const DRIVER: &str = r#"
import os, select, subprocess, sys
prof = sys.argv[1]
for pipe in ("first", "second"):
    os.mkfifo(pipe)
terminal, theirs = os.openpty()
with open("table", "wb") as table, open("errors", "wb") as errors:
    without = subprocess.Popen([prof, "report", "-i", "first"], stdout=table, stderr=errors)
    shown = subprocess.Popen([prof, "report", "-i", "second"], stdout=table, stderr=theirs)
os.close(theirs)
said = b""
def read():
    global said
    if not select.select([terminal], [], [], 60)[0]:
        sys.exit("nothing came: %r" % said)
    said += os.read(terminal, 4096)
while b"loading" not in said:
    read()
recording = open("prof.data", "rb").read()
for pipe in ("first", "second"):
    with open(pipe, "wb") as out:
        out.write(recording)
try:
    while True:
        read()
except OSError:
    pass
assert without.wait() == 0 and shown.wait() == 0
print(repr([said, open("errors", "rb").read()]))
"#;

#[test]
fn long_work_has_a_line_on_terminals_only_that_is_gone_at_the_end() {
    if !needs(&[Need::Tool("python3")]) {
        return;
    }
    let session = Session::new();
    let script = "i=0; while test $i -lt 20000; do i=$((i+1)); done";
    session.record(USER_CODE, &["sh", "-c", script]);
    let driver = session.write("driver.py", DRIVER.as_bytes());
    let mut command = session.command(Path::new("python3"), [driver]);
    command.arg(prof_tests::prof());
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    let said = outcome.stdout.trim();
    assert!(said.starts_with(r"[b'\rloading"), "{outcome}");
    assert!(said.ends_with(r"\r\x1b[K', b'']"), "{outcome}");
}
