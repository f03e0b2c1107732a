//! Ruby functions are in the stacks of samples, as callers of native ones.

use prof_tests::{Need, Session, Stacks, USER_CODE, needs, starts_at_root};

use crate::annotate::total_at_line;
use crate::pairs::Language;

pub(crate) const NEEDS: &[Need] = &[Need::Tool("gcc"), Need::Ruby];

pub(crate) const RUBY: Language = Language {
    name: "Ruby",
    command: "ruby",
    program: "ruby_pairs.rb",
    rounds: "30000",
    function: "method_missing",
    evaluation: "rb_vm_exec",
};

#[test]
fn natives_have_the_callers_that_they_had() {
    if needs(NEEDS) {
        RUBY.check(&Session::new(), &["-F", "1999"], &["0"], 0.95);
    }
}

/// They take turns on all CPUs: native functions of `fiddle` run without the interpreter's lock.
#[test]
fn threads_have_stacks_of_their_own() {
    if needs(NEEDS) {
        RUBY.check(&Session::new(), &["-F", "999"], &["2"], 0.95);
    }
}

/// Threads have their stack of values, a megabyte of which little is used, in the frame of their
/// first function.
#[test]
fn threads_have_whole_stacks() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let program = session.write("threads.rb", THREADS.as_bytes());
    let recorded = session.record(USER_CODE, &["ruby".as_ref(), program.as_path()]);
    let stacks = recorded.physical_stacks();
    let works = |frames: &[String]| frames.last().is_some_and(|frame| frame == "work");
    let work = stacks.share(works);
    let whole = stacks.share(|frames| works(frames) && starts_at_root(frames));
    assert!(
        work > 0.5 && whole > 0.8 * work,
        "{whole} of {work}\n{stacks}"
    );
}

const THREADS: &str = "
def work
  i = 0
  while i < 1_000_000
    i += 1
  end
end
def busy
  work while Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID) < 1
end
2.times.map { Thread.new { busy } }.each(&:join)
";

/// The frames of a stopped thread are exact.
#[test]
fn stopped_threads_have_exact_stacks() {
    if needs(NEEDS) {
        let options = ["-F", "999", "--sampler", "ptrace"];
        RUBY.check(&Session::new(), &options, &["2"], 0.97);
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
        // From 3.3 on, this is a function in Ruby, too.
        let frames = frames.iter().filter(|frame| *frame != "times");
        let frames: Vec<&str> = frames.map(String::as_str).collect();
        frames.ends_with(&["<main>", "call", "block in call", "work"])
    });
    assert!(whole > 0.95 * in_main && whole > 0.5, "{whole}\n{stacks}");
    let listing = session.run(["annotate", "lines.rb"]);
    let total = |number| total_at_line(&listing.stdout, number);
    for number in ["10", "13"] {
        assert!(total(number) > Some(60.0), "{number}: {listing}");
    }
    let of_loop = total("4").unwrap_or(0.0) + total("5").unwrap_or(0.0);
    assert!(of_loop > 60.0, "{of_loop}: {listing}");
}
