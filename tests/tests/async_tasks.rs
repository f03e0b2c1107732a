//! A program with futures reads as people wrote it.

use std::path::PathBuf;
use std::process::Command;

use prof_tests::{Outcome, Session, USER_CODE, prof};

/// Builds tests/tasks, which needs tokio and so cargo.
fn build() -> PathBuf {
    let target = prof()
        .ancestors()
        .nth(2)
        .unwrap()
        .join("test-programs/tasks");
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/tasks/Cargo.toml");
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--release",
        "--manifest-path",
        manifest,
    ]);
    cargo.arg("--target-dir").arg(&target);
    Outcome::of(cargo).assert_code(0);
    target.join("release/tasks")
}

/// The weight of all stacks, and of those that hold these callers in a row.
fn weights(folded: &str, callers: &str) -> (u64, u64) {
    let weight = |line: &str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
    let all = folded.lines().map(weight).sum();
    let with = folded.lines().filter(|line| line.contains(callers));
    (all, with.map(weight).sum())
}

#[test]
fn tasks_read_as_they_were_written_and_executors_fold_away() {
    let session = Session::new();
    let recorded = session.record(USER_CODE, &[build().to_str().unwrap(), "700"]);
    let whole = recorded.report(&["--folded", "-"]).stdout;
    let folded = recorded.report(&["--fold-async", "--folded", "-"]).stdout;

    assert!(whole.contains("tokio::runtime::"), "{whole}");
    // Awaiting a task, or dropping its handle, leaves no runtime frames between tasks.
    let tasks = || folded.lines().filter(|line| line.contains("{async fn}"));
    let is_plumbing = |line: &str| line.contains("tokio::") || line.contains(";core::future::");
    assert!(!tasks().any(is_plumbing), "{folded}");
    let by_hand = "tasks::outer::{async fn};tasks::inner::{async fn};\
                   <tasks::ByHand as core::future::future::Future>::poll;";
    let (all, with) = weights(&folded, by_hand);
    assert_eq!(weights(&whole, "").0, all, "nothing gets lost by folding");
    // Half of the work is done there, half in the block.
    assert!(
        with * 5 > all * 2 && with * 5 < all * 3,
        "{with} of {all} in:\n{folded}"
    );
    let (_, in_block) = weights(
        &folded,
        "tasks::outer::{async fn};tasks::outer::{closure}::{async block};",
    );
    assert!(in_block * 5 > all * 2, "{in_block} of {all} in:\n{folded}");
    let function = "tasks::apply;<tasks::ByHand as core::future::future::Future>::poll::{closure};\
                    <tasks::Polygon<T> as tasks::Shape>::area;tasks::burn";
    assert!(folded.contains(function), "no {function} in:\n{folded}");
    let compiler_words = ["{closure_env", "{async_", "{{closure}}", "{impl#0}"];
    assert!(
        !compiler_words.iter().any(|word| whole.contains(word)),
        "{whole}"
    );
}
