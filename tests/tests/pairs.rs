//! Programs that call the native functions n0 to n9 from interpreted ones: n0 from f0 only, and so
//! on.

use std::path::Path;

use prof_tests::{Compiler, Program, Session, Stacks, copy_executable};
use serde_json::Value;

/// A language with a program of such pairs, whose native functions are those of natives.c.
pub(crate) struct Language {
    /// As marks have it.
    pub(crate) name: &'static str,
    /// The interpreter, and the kind of functions in JSON.
    pub(crate) command: &'static str,
    pub(crate) program: &'static str,
    pub(crate) rounds: &'static str,
    /// An interpreted function of the program.
    pub(crate) function: &'static str,
    /// The native function that runs the evaluation loop.
    pub(crate) evaluation: &'static str,
}

impl Language {
    /// Records the program with further arguments; `at_least` is the share of the native functions'
    /// samples whose interpreted callers are known.
    pub(crate) fn check(
        &self,
        session: &Session,
        options: &[&str],
        arguments: &[&str],
        at_least: f64,
    ) {
        let library = Program::new(&["natives.c"], Compiler::Gcc, &["-O1", "-shared", "-fPIC"]);
        let path = session.path("natives.so");
        copy_executable(&library.build(), &path);
        // A copy: plain users may not be allowed to enter the checkout.
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("programs");
        let text = std::fs::read(programs.join(self.program)).expect("the program");
        let program = session.write(self.program, &text);
        let mut words = vec![self.command.as_ref(), program.as_path(), &path];
        words.push(self.rounds.as_ref());
        words.extend(arguments.iter().map(Path::new));
        let options = [&["-e", "cpu-clock:u"], options].concat();
        let recorded = session.record(&options, &words);
        let stacks = recorded.stacks();
        let known = known_callers(&stacks, self.name, "pairs");
        assert!(known >= at_least, "{known}\n{stacks}");
        let json = recorded.report(&["--json", "-"]).stdout;
        let json: Value = serde_json::from_str(&json).expect("JSON");
        let functions = json["functions"].as_array().expect("functions");
        let function = functions.iter().find(|it| it["name"] == self.function);
        assert_eq!(function.map(|it| &it["kind"]), Some(&self.command.into()));
        assert_folded(&stacks, self.name, self.evaluation);
    }
}

/// The interpreted function that called the native one, which is a digit: the digit of its name.
fn caller(frames: &[String], native: usize) -> Option<&str> {
    let before = frames[..native].iter().rev();
    before
        .filter_map(|frame| frame.strip_prefix('f'))
        .find(|rest| rest.len() == 1)
}

/// The share of stacks with native functions whose callers in this language are known. Those must
/// be right. `what` says of what they are.
pub(crate) fn known_callers(stacks: &Stacks, language: &str, what: &str) -> f64 {
    let mark = format!("[no {language}");
    let (mut right, mut marked) = (0, 0);
    for (frames, weight) in stacks.iter() {
        let is_native = |frame: &String| frame.len() == 2 && frame.starts_with('n');
        let Some(native) = frames.iter().position(is_native) else {
            continue;
        };
        if frames.iter().any(|frame| frame.starts_with(&mark)) {
            marked += weight;
            continue;
        }
        let called = frames[native].strip_prefix('n');
        assert_eq!(caller(frames, native), called, "{what}: {frames:?}");
        right += weight;
    }
    assert!(right > 0, "{what}: {stacks}");
    right as f64 / (right + marked) as f64
}

/// Asserts that no stack shows the interpreter's evaluation loop beside functions of the language.
/// One that is cut may end there.
pub(crate) fn assert_folded(stacks: &Stacks, language: &str, evaluation: &str) {
    let mark = format!("[no {language}");
    for (frames, _) in stacks.iter() {
        let has = |start: &str| frames.iter().any(|frame| frame.starts_with(start));
        let shows_loop = has(evaluation) && !has(&mark) && !has("[truncated");
        assert!(!shows_loop, "interpreters fold: {frames:?}");
    }
}
