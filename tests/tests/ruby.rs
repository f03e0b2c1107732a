//! Ruby functions are in the stacks of samples, as callers of native ones.

use std::path::Path;

use prof_tests::{Compiler, Need, Program, Session, Stacks, USER_CODE, copy_executable, needs};
use serde_json::Value;

use crate::pairs::{assert_folded, known_callers};

pub(crate) const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Ruby];

/// Records the program of pairs; `at_least` is the share of the native functions' samples whose
/// Ruby callers are known.
pub(crate) fn check(session: &Session, options: &[&str], threads: &str, at_least: f64) {
    let library = Program::new(&["natives.c"], Compiler::Gcc, &["-O1", "-shared", "-fPIC"]);
    let path = session.path("natives.so");
    copy_executable(&library.build(), &path);
    // A copy: plain users may not be allowed to enter the checkout.
    let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
    let text = std::fs::read(programs.join("ruby_pairs.rb")).expect("the program");
    let program = session.write("ruby_pairs.rb", &text);
    let options = [&["-e", "cpu-clock:u"], options].concat();
    let words = ["ruby".as_ref(), program.as_path(), &path];
    let numbers = ["30000", threads].map(Path::new);
    let recorded = session.record(&options, &[&words[..], &numbers].concat());
    let stacks = recorded.stacks();
    let known = known_callers(&stacks, "Ruby", "pairs");
    assert!(known >= at_least, "{known}\n{stacks}");
    let json = recorded.report(&["--json", "-"]).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let functions = json["functions"].as_array().expect("functions");
    let kind = functions.iter().find(|it| it["name"] == "method_missing");
    assert_eq!(kind.map(|it| &it["kind"]), Some(&Value::from("ruby")));
    assert_folded(&stacks, "Ruby", "rb_vm_exec");
}

#[test]
fn natives_have_the_callers_that_they_had() {
    if needs(NEEDS) {
        check(&Session::new(), &["-F", "1999"], "0", 0.95);
    }
}

/// They take turns on all CPUs: native functions of `fiddle` run without the interpreter's lock.
#[test]
fn threads_have_stacks_of_their_own() {
    if needs(NEEDS) {
        check(&Session::new(), &["-F", "999"], "2", 0.95);
    }
}

/// The frames of a stopped thread are exact.
#[test]
fn stopped_threads_have_exact_stacks() {
    if needs(NEEDS) {
        let options = ["-F", "999", "--sampler", "ptrace"];
        check(&Session::new(), &options, "2", 0.97);
    }
}

const LINES: &str = "
def work
  i = 0
  while i < 20_000_000
    i += 1
  end
end
def call
  1.times do
    work
  end
end
call
";

/// Behind a shell, without a flag; lines are those of the calls, and of what runs now.
#[test]
fn scripts_behind_a_shell_have_functions_and_lines() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let program = session.write("lines.rb", LINES.as_bytes());
    let script = format!("ruby {}; exit 3", program.display());
    let arguments = [&["record"], USER_CODE, &["--", "sh", "-c", &script]].concat();
    let outcome = session.run(arguments);
    outcome.assert_code(3);
    let stacks = Stacks::from_folded(&session.run(["report", "--folded", "-"]).stdout);
    let in_main = stacks.share(|frames| frames.iter().any(|frame| frame == "<main>"));
    let whole = stacks.share(|frames| {
        frames.ends_with(&["<main>", "call", "block in call", "work"].map(String::from))
    });
    assert!(whole > 0.95 * in_main && whole > 0.5, "{whole}\n{stacks}");
    let listing = session.run(["annotate", "lines.rb"]);
    // Before the line are the total in percent and in time.
    let total = |number: &str| {
        let mut rows = listing.stdout.lines();
        rows.find_map(|row| {
            let words: Vec<_> = row.split_whitespace().take(5).collect();
            let at = words.iter().rposition(|&word| word == number)?;
            words.get(at.checked_sub(2)?)?.parse::<f64>().ok()
        })
    };
    for number in ["10", "13"] {
        assert!(total(number) > Some(60.0), "{number}: {listing}");
    }
    let of_loop = total("4").unwrap_or(0.0) + total("5").unwrap_or(0.0);
    assert!(of_loop > 60.0, "{of_loop}: {listing}");
}
