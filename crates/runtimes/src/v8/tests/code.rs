//! How the code of a frame leads to its function.

use prof_model::Account;

use super::super::CodePlace::{self, InFile, RunTime};
use super::super::{FileCode, FrameWords, V8};
use super::{
    BASE, CODE, Function, Heap, INTERPRETER, NODE_20, OTHER, SECOND, TAG, name, named,
    small_integer,
};

#[test]
fn frames_of_other_kinds_have_no_function() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let complete = heap.named_function("work").frame();
    let mut check = |words: FrameWords| v8.function(&mut heap, RunTime(1), Some(&words), 0);
    let [context, function, _, bytecodes] = complete;
    assert_eq!(check([34, function, 0, bytecodes]), None, "a kind");
    assert_eq!(
        check([context, 34, 0, bytecodes]),
        None,
        "a stub with a context"
    );
    assert!(check(complete).is_some());
    assert_eq!(v8.function(&mut heap, RunTime(1), None, 0), None);
}

#[test]
fn functions_have_the_bytecodes_of_their_frames() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let [right, other] = ["right", "other"].map(|name| heap.named_function(name));
    // The memory of the function has another one by now.
    let moved = Function {
        closure: other.closure,
        ..right
    };
    assert_eq!(named(&mut heap, &mut v8, moved), None);
    assert_eq!(
        named(&mut heap, &mut v8, right).as_deref(),
        Some("JS:right")
    );
    // The bytecodes are known then.
    assert_eq!(
        named(&mut heap, &mut v8, moved).as_deref(),
        Some("JS:right")
    );
    // Other objects lead to the bytecodes: of a copy of the interpreter, of baseline code.
    let copy = heap.object(OTHER, &[other.bytecodes, 0]);
    heap.set(other.shared - TAG + 8, copy);
    assert_eq!(
        named(&mut heap, &mut v8, other).as_deref(),
        Some("JS:other")
    );
    let [baseline, both] = ["baseline", "both"].map(|name| heap.named_function(name));
    let code = heap.object(CODE, &[0, baseline.bytecodes]);
    heap.set(baseline.shared - TAG + 8, code);
    assert_eq!(
        named(&mut heap, &mut v8, baseline).as_deref(),
        Some("JS:baseline")
    );
    let copy = heap.object(OTHER, &[both.bytecodes, 0]);
    let code = heap.object(CODE, &[0, copy]);
    heap.set(both.shared - TAG + 8, code);
    assert_eq!(named(&mut heap, &mut v8, both).as_deref(), Some("JS:both"));
}

#[test]
fn optimized_code_has_its_function() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let [first, second] = ["first", "second"].map(|name| heap.named_function(name));
    let wrapper = heap.object(OTHER, &[second.shared]);
    let codes = [
        heap.code(Some(first.shared), 9000),
        heap.code(None, 100),
        heap.code(Some(wrapper), 100),
    ];
    let mut check = |heap: &mut Heap, code: u64, now: u64, expected: Option<&str>| {
        // The words of a frame are not needed.
        let address = v8.function(heap, RunTime(code), None, now);
        assert_eq!(name(&v8, address).as_deref(), expected, "{code:#x} {now}");
    };
    let [large, baseline, wrapped] = codes;
    for now in [0, 5 * SECOND] {
        check(&mut heap, large + 8999, now, Some("JS:first"));
        check(&mut heap, large, now, Some("JS:first"));
        check(&mut heap, wrapped + 99, now, Some("JS:second"));
        check(&mut heap, baseline + 50, now, None);
        check(&mut heap, large + 5000, now, Some("JS:first"));
        check(&mut heap, 1, now, None);
    }
    // Other code takes its place.
    let data = [&[small_integer(7)][..], &[0; 6], &[second.shared]].concat();
    let data = heap.object(OTHER, &data);
    let at = (large - 16 - BASE) as usize;
    let code = u64::from_le_bytes(heap.bytes[at + 8..at + 16].try_into().unwrap());
    heap.set(code - TAG + 16, data);
    check(&mut heap, large + 10, 5 * SECOND, Some("JS:first"));
    check(&mut heap, large + 10, 6 * SECOND, Some("JS:second"));
}

#[test]
fn interpreters_without_symbols_are_known_by_their_frames() {
    let constants = NODE_20.map(|(name, value)| (name.to_owned(), value));
    let stripped = V8::new(&constants.into(), FileCode::default(), &Account::default()).unwrap();
    for mut v8 in [Heap::start(&[]).unwrap(), stripped] {
        let mut heap = Heap::default();
        let function = heap.named_function("work");
        let mut check = |place: CodePlace, words: FrameWords, expected: Option<&str>| {
            let address = v8.function(&mut heap, place, Some(&words), 0);
            assert_eq!(name(&v8, address).as_deref(), expected);
        };
        check(INTERPRETER, function.frame(), Some("JS:work"));
        // Other code, which has the function in its frame.
        let [context, closure, ..] = function.frame();
        check(InFile(0x210), [context, closure, 0, closure], None);
    }
    let v8 = Heap::start(&[]).unwrap();
    assert!(v8.is_builtin(0x100) && v8.is_builtin(0x200) && !v8.is_builtin(0x300));
}

#[test]
fn what_was_known_at_its_end_is_right_for_the_last_samples() {
    let (mut heap, mut v8) = (Heap::default(), Heap::start(&[]).unwrap());
    let [known, unknown] = ["known", "unknown"].map(|name| heap.named_function(name));
    let code = heap.code(Some(known.shared), 100);
    let mut address = |heap: &mut Heap, place: CodePlace, function: Function, now: u64| {
        v8.function(heap, place, Some(&function.frame()), now)
    };
    let expected = address(&mut heap, INTERPRETER, known, 0);
    assert!(expected.is_some());
    assert_eq!(address(&mut heap, RunTime(code + 50), known, 0), expected);
    heap.has_ended = true;
    assert_eq!(address(&mut heap, INTERPRETER, known, 9 * SECOND), expected);
    assert_eq!(
        address(&mut heap, RunTime(code + 50), unknown, 9 * SECOND),
        expected
    );
    assert_eq!(address(&mut heap, INTERPRETER, unknown, 9 * SECOND), None);
}
