//! Stacks of real interpreters, which the program reported itself before it waited.

use prof_runtimes::python::{EntryMark, Frame, Interpreter};
use serde_json::{Value, json};

use crate::target::{Target, interpreters};

#[test]
fn frames_are_those_that_the_program_has() {
    for path in interpreters() {
        let target = Target::start(&path);
        let interpreter = target.interpreter();
        let mut memory = target.memory();
        let threads = interpreter.threads(&mut memory).unwrap();
        assert_eq!(threads.len(), target.threads.len(), "{}", path.display());
        for reported in &target.threads {
            let id = reported[0].as_u64().unwrap();
            let thread = threads.iter().find(|thread| thread.id == id).unwrap();
            if let Some(native) = thread.native_id {
                assert_eq!(Some(native), reported[1].as_u64(), "{}", path.display());
            }
            let frames = interpreter.frames(thread, &mut memory).unwrap();
            let found: Vec<Value> = frames.iter().map(as_reported).collect();
            let expected = reported[2].as_array().unwrap();
            assert!(expected.len() > 15, "{expected:?}");
            assert_eq!(&found, expected, "{}", path.display());
            check_entries(&interpreter, &frames);
        }
    }
}

fn as_reported(frame: &Frame) -> Value {
    json!([frame.code.name, frame.code.file, frame.line])
}

/// What C called has an activation of the evaluation loop for itself, and so has each frame where
/// calls between Python functions do not stay in one.
fn check_entries(interpreter: &Interpreter, frames: &[Frame]) {
    let of_each = interpreter.layout().entry_mark == EntryMark::EachFrame;
    assert!(frames.last().unwrap().is_entry, "the outermost one");
    let called_from_c = |frame: &&Frame| frame.code.name.ends_with("<lambda>");
    let mut lambdas = frames.iter().filter(called_from_c);
    assert!(lambdas.clone().count() > 0 && lambdas.all(|frame| frame.is_entry));
    let recursive = |frame: &&Frame| frame.code.name.ends_with("method");
    let mut recursive = frames.iter().filter(recursive);
    assert!(recursive.clone().count() > 10 && recursive.all(|frame| frame.is_entry == of_each));
}
