//! Two busy threads with 40 KB of stack each: no sample lost, every stack whole; by the clock, for
//! cycles are also sampled while the kernel is being entered.

use prof_tests::{Program, Session};

#[test]
fn nothing_is_lost_and_every_stack_is_whole() {
    let session = Session::alone();
    let binary = Program::c(&["threads.c"]).build();
    let recorded = session.record(
        &["-e", "cpu-clock", "-F", "999"],
        &[binary.to_str().unwrap(), "1000"],
    );
    recorded
        .outcome
        .assert_says(&["verdict: good: 100 % of", "no sample lost"]);
    let stacks = recorded.physical_stacks();
    assert!(
        recorded.samples() > 1000,
        "only {} samples",
        recorded.samples()
    );
    let in_threads = stacks.share(|frames| {
        frames.iter().filter(|frame| *frame == "pile").count() == 11
            && frames.iter().any(|frame| frame == "thread_main")
            && prof_tests::is_root(&frames[0])
    });
    assert!(in_threads > 0.99, "{in_threads}:\n{stacks}");
    stacks.assert_whole(0.999);
}

#[test]
fn recordings_are_small() {
    let session = Session::new();
    let binary = Program::c(&["threads.c"]).build();
    let recorded = session.record(&["-F", "1999"], &[binary.to_str().unwrap(), "500"]);
    let size = std::fs::metadata(&recorded.file).unwrap().len();
    assert!(size < 1 << 20, "{size} bytes");
}
