//! PHP functions are in the stacks of samples, as callers of native ones.

use std::path::Path;

use prof_tests::{Need, Session, Stacks, USER_CODE, needs};

use crate::annotate::total_at_line;
use crate::pairs::Language;

pub(crate) const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Php];

pub(crate) const PHP: Language = Language {
    name: "PHP",
    command: "php",
    program: "php_pairs.php",
    rounds: "60000",
    function: "Caller::make",
    evaluation: "execute_ex",
};

#[test]
fn natives_have_the_callers_that_they_had() {
    if needs(NEEDS) {
        PHP.check(&Session::new(), &["-F", "1999"], &[], 0.95);
    }
}

/// The frames of a stopped thread are exact.
#[test]
fn stopped_threads_have_exact_stacks() {
    if needs(NEEDS) {
        let options = ["-F", "999", "--sampler", "ptrace"];
        PHP.check(&Session::new(), &options, &[], 0.97);
    }
}

#[test]
fn scripts_behind_a_shell_have_their_functions_without_a_flag() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let program = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs/hot.php");
    let script = format!("php {}; exit 3", program.display());
    let arguments = [&["record"], USER_CODE, &["--", "sh", "-c", &script]].concat();
    let outcome = session.run(arguments);
    outcome.assert_code(3);
    let stacks = Stacks::from_folded(&session.run(["report", "--folded", "-"]).stdout);
    let in_main = stacks.share(|frames| frames.iter().any(|frame| frame == "<main>"));
    let named = ["light", "heavy"].map(|name| stacks.self_share(name));
    assert!(named[0] + named[1] > 0.95 * in_main, "{named:?}\n{stacks}");
    // Twice as many rounds; how fast each is differs from run to run, by PHP's own clock, too.
    assert!(named[1] > named[0], "{named:?}\n{stacks}");
}

/// They are not among PHP's frames while another generator runs for them.
#[test]
fn generators_that_delegate_are_callers() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let text = "<?php
function inner() {
    for ($round = 0; $round < 20000; $round++) {
        for ($i = 0, $sum = 0; $i < 1000; $i++) $sum += $i;
        yield $sum;
    }
}
function middle() { yield from inner(); }
function outer() { yield from middle(); }
function consume() { foreach (outer() as $sum); }
consume();
";
    let program = session.write("generators.php", text.as_bytes());
    let recorded = session.record(USER_CODE, &["php".as_ref(), program.as_path()]);
    let stacks = recorded.stacks();
    let shares = [&["inner"][..], &["consume", "outer", "middle", "inner"]].map(|names| {
        stacks.share(|frames| frames.windows(names.len()).any(|frames| frames == names))
    });
    assert!(shares[0] > 0.5 && shares[1] > 0.99 * shares[0], "{stacks}");
}

/// Lines are those of the calls, and of what runs now.
#[test]
fn frames_have_lines() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let lines = "<?php
function work() {
    $sum = 0;
    for ($i = 0; $i < 20000000; $i++) $sum += $i;
    return $sum;
}
function call() {
    return
        work();
}
call();
";
    let program = session.write("lines.php", lines.as_bytes());
    session.record(USER_CODE, &["php".as_ref(), program.as_path()]);
    let listing = session.run(["annotate", "lines.php"]);
    let total = |number| total_at_line(&listing.stdout, number);
    for number in ["4", "9", "11"] {
        assert!(total(number) > Some(75.0), "{number}: {listing}");
    }
}

/// A script may have any name.
#[test]
fn a_script_does_not_pass_for_the_kernel() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    session.write("[kernel]", include_bytes!("../programs/hot.php"));
    let recorded = session.record(USER_CODE, &["php", "[kernel]"]);
    let report = recorded.report(&["--sort", "module"]);
    let mut modules = report
        .stdout
        .lines()
        .filter_map(|line| line.split_whitespace().last());
    assert!(
        modules.clone().any(|module| module == "/[kernel]"),
        "{report}"
    );
    assert!(modules.all(|module| module != "[kernel]"), "{report}");
}
