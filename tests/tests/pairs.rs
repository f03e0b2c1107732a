//! Programs that call the native functions n0 to n9 from interpreted ones: n0 from f0 only, and so
//! on.

use prof_tests::Stacks;

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
