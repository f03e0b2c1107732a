//! Programs that run their own code from anonymous memory.

use std::process::Stdio;

use prof_tests::{Program, Session, Stacks, USER_CODE, spawn_ready, wait_until};

fn check(stacks: &Stacks) {
    stacks.assert_hottest(&["main", "outer", "hot"]);
    assert!(stacks.self_share("hot") > 0.9, "{stacks}");
    stacks.assert_whole(0.95);
}

#[test]
fn code_that_was_copied_over_itself_is_that_of_its_file() {
    let session = Session::new();
    let program = Program::c(&["moved_text.c"]).build();
    for way in ["copy", "mremap"] {
        let recorded = session.record(USER_CODE, &[program.to_str().unwrap(), way]);
        check(&recorded.physical_stacks());
    }
}

#[test]
fn code_that_has_moved_before_is_that_of_its_file() {
    let session = Session::new();
    let program = Program::c(&["moved_text.c"]).build();
    for way in ["copy", "mremap"] {
        let mut target = spawn_ready(session.command(&program, [way, "wait"]));
        let pid = target.id().to_string();
        let options = [&["record", "-o", way][..], USER_CODE, &["-p", &pid]].concat();
        let mut prof = session.prof(options);
        let mut prof = prof.stderr(Stdio::piped()).spawn().unwrap();
        let file = session.path(way);
        wait_until(&mut prof, || {
            std::fs::metadata(&file).is_ok_and(|data| data.len() > 0)
        });
        drop(target.stdin.take());
        target.wait().unwrap();
        let output = prof.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let folded = session.run(["report", "-i", way, "--no-inline", "--folded", "-"]);
        check(&Stacks::from_folded(&folded.stdout));
    }
}
