//! Files are written whole or not at all, whatever happens meanwhile.

use std::path::Path;

use prof_tests::{Need, Outcome, Program, Session, needs};

/// All commands that make files from recordings: `in` is the recording, `out` the file.
const WRITING: &[&[&str]] = &[
    &["report", "-i", "in", "--flamegraph", "out"],
    &["report", "-i", "in", "--flamechart", "out"],
    &["report", "-i", "in", "--timeline=out"],
    &["report", "-i", "in", "--folded", "out"],
    &["report", "-i", "in", "--pprof", "out"],
    &["report", "-i", "in", "--firefox", "out"],
    &["report", "-i", "in", "--speedscope", "out"],
    &["report", "-i", "in", "--json", "out"],
    &["report", "-i", "in", "--csv", "out"],
    &["annotate", "-i", "in", "--json", "out"],
    &["diff", "in", "in", "--flamegraph", "out"],
    &["diff", "in", "in", "--flamegraph-before", "out"],
    &["diff", "in", "in", "--json", "out"],
    &["archive", "in", "-o", "out"],
];

/// The previous content of the file.
const OLD: &str = "what was there before";

/// A recording at `in`.
fn recorded() -> Session {
    let session = Session::new();
    let program = Program::c(&["shares.c"]).build();
    session.record(&["-o", "in"], &[program.to_str().unwrap(), "100"]);
    session
}

/// Runs `script` with prof's command line as `"$@"`.
fn shell(session: &Session, shell: &[&str], script: &str, arguments: &[&str]) -> Outcome {
    let mut command = session.command(Path::new(shell[0]), &shell[1..]);
    command.args(["sh", "-c", script, "sh"]);
    command.arg(prof_tests::prof()).args(arguments);
    Outcome::of(command)
}

#[test]
fn on_a_full_disk_nothing_changes() {
    if !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = recorded();
    std::fs::create_dir(session.path("small")).unwrap();
    for writing in WRITING {
        // Space for one block, which the previous file uses. Then for one more.
        for size in ["4k", "8k"] {
            let script = format!(
                "mount -t tmpfs -o size={size} none small && \
                 cd small && ln -s ../in in && printf '{OLD}' >out && \
                 \"$@\" >&2; code=$?; ls -A; wc -c <out; head -c 30 out; exit $code"
            );
            let outcome = shell(&session, &["unshare", "--mount"], &script, writing);
            let old = format!("in\nout\n{}\n{OLD}", OLD.len());
            if size == "8k" && outcome.status.success() {
                // It was short enough.
                assert!(outcome.stdout.starts_with("in\nout\n"), "{outcome}");
                assert!(!outcome.stdout.contains(OLD), "{outcome}");
            } else {
                outcome.assert_refused(&["cannot write out", "no space left"]);
                assert_eq!(outcome.stdout, old, "{outcome}");
            }
        }
    }
}

/// Killed in the last moment, after all is written and before the rename.
#[test]
fn killed_before_the_end_nothing_changes() {
    if !needs(&[Need::Tool("strace")]) {
        return;
    }
    let session = recorded();
    for writing in WRITING {
        session.write("out", OLD.as_bytes());
        let kill = "strace -f -o /dev/null -e trace=/^rename -e inject=/^rename:signal=KILL \"$@\"; \
                    code=$?; cat out; exit $code";
        let outcome = shell(&session, &["env"], kill, writing);
        assert_eq!(outcome.status.code(), Some(128 + 9), "{outcome}");
        assert!(outcome.stdout.ends_with(OLD), "{outcome}");
        let outcome = shell(&session, &["env"], "\"$@\" >&2 && cat out", writing);
        outcome.assert_code(0);
        assert!(!outcome.stdout.contains(OLD), "{outcome}");
    }
}
