//! What the verdict advises makes the recording better, and is not advised then.

use prof_tests::{Need, Program, Session, needs};

const DEEP: Program = Program::c(&["deep.c"]);

/// Records with `flags`, and then with what the verdict advises instead of them.
fn check(kept: &[&str], flags: &[&str], advised: &[&str]) {
    if !needs(&[Need::PlainSampling]) {
        return;
    }
    let session = Session::new();
    let deep = DEEP.build();
    let command = [deep.to_str().unwrap(), "300", "1000"];
    let whole = |flags: &[&str]| {
        let recorded = session.record(&[kept, flags].concat(), &command);
        let told = recorded.report(&["--limit", "1"]).stdout;
        (recorded.stacks().whole_share(), told)
    };
    let advice = advised.join(" ");
    let (before, told) = whole(flags);
    assert!(before < 0.5 && told.contains(&advice), "{before}: {told}");
    let (after, told) = whole(advised);
    assert!(after > 0.99 && !told.contains(&advice), "{after}: {told}");
}

#[test]
fn stacks_without_frame_pointers_are_whole_with_unwind_tables() {
    check(&[], &["--call-graph", "fp"], &["--call-graph", "dwarf"]);
}

#[test]
fn stacks_deeper_than_their_copies_are_whole_with_larger_ones() {
    check(
        &["--no-unwind"],
        &["--call-graph", "dwarf,4096"],
        &["--call-graph", "dwarf,65528"],
    );
}
