//! Trees under filters and splits, written as folded stacks.

use super::{CallTree, Split};
use crate::error::{Error, NoSamples};
use crate::filter::Filter;
use crate::format::folded;
use crate::pattern::Pattern;
use crate::symbolize::SymbolizedProfile;
use crate::testing::{TestProfile, demo};

fn pattern(text: &str) -> Option<Pattern> {
    Some(text.parse().unwrap())
}

/// The folded stacks of the demo profile, weights in ms.
fn folded(symbolized: &SymbolizedProfile, filter: &Filter, split: Split) -> Vec<String> {
    lines(&CallTree::new(symbolized, filter, split).unwrap())
}

fn check(filter: Filter, expected: &[&str]) {
    assert_eq!(folded(&demo(), &filter, Split::Nothing), expected);
}

#[test]
fn filters_on_samples() {
    check(
        Filter {
            comm: pattern("^worker$"),
            ..Filter::default()
        },
        &[
            "clone3;worker_main;Interpreter 20",
            "clone3;worker_main;[jit] 10",
        ],
    );
    check(
        Filter {
            tids: vec![3],
            ..Filter::default()
        },
        &["clone3;worker_main;[jit] 10"],
    );
    check(
        Filter {
            pids: vec![9],
            cpus: vec![1],
            ..Filter::default()
        },
        &["ret_from_fork;kthread 35"],
    );
    check(
        Filter {
            since: Some(std::time::Duration::from_millis(1)),
            until: Some(std::time::Duration::from_millis(3)),
            ..Filter::default()
        },
        &[
            "_start;main;compute;ns::inner;ns::innermost 250",
            "_start;main;fib;fib;fib 100",
        ],
    );
}

#[test]
fn filters_on_stacks() {
    check(
        Filter {
            module: pattern("libc"),
            function: pattern("write"),
            ..Filter::default()
        },
        &["_start;main;write;entry_SYSCALL_64;vfs_write 30"],
    );
    check(
        Filter {
            function: pattern("inner$"),
            ..Filter::default()
        },
        &["_start;main;compute;ns::inner;ns::innermost 250"],
    );
    check(
        Filter {
            ignore: pattern("main|kthread"),
            ..Filter::default()
        },
        &["[truncated: the code has no unwind information];libz.so.1+0x1380 40"],
    );
}

#[test]
fn hidden_frames_give_their_weight_to_callers() {
    let main_only = || pattern("^(main|kthread)$");
    check(
        Filter {
            function: main_only(),
            hide: pattern("fib|left out"),
            no_kernel: true,
            no_inline: true,
            ..Filter::default()
        },
        &[
            "_start;main 115",
            "_start;main;compute 750",
            "_start;main;write 30",
        ],
    );
}

#[test]
fn splits() {
    let symbolized = demo();
    let parts = |split| {
        let mut parts: Vec<String> = folded(&symbolized, &Filter::default(), split)
            .iter()
            .map(|line| line.split(';').next().unwrap().to_owned())
            .collect();
        parts.dedup();
        parts
    };
    assert_eq!(parts(Split::Name), ["child", "demo", "kworker", "worker"]);
    assert_eq!(parts(Split::Process), ["child 7", "demo 1", "kworker 9"]);
    assert_eq!(parts(Split::Cpu), ["CPU 0", "CPU 1"]);
    assert_eq!(
        parts(Split::Thread),
        [
            "child 7/7",
            "demo 1/1",
            "kworker 9/9",
            "worker 1/2",
            "worker 1/3"
        ]
    );
}

#[test]
fn threads_are_merged_by_name() {
    let symbolized = TestProfile::of(&[
        "main/1/1 main 1",
        "worker-1/1/2 main 2",
        "worker-12/1/3 main 3",
        "worker-3/9/9 main 4",
    ]);
    let check = |split, comm: Option<&str>, expected: &[&str]| {
        let filter = Filter {
            merge_threads: pattern("[0-9]+"),
            comm: comm.and_then(pattern),
            ..Filter::default()
        };
        assert_eq!(folded(&symbolized, &filter, split), expected);
    };
    check(Split::Name, None, &["main;main 1", "worker-*;main 9"]);
    check(
        Split::Thread,
        None,
        &["main 1;main 1", "worker-* 1;main 5", "worker-* 9;main 4"],
    );
    check(
        Split::Process,
        None,
        &["main 1;main 6", "worker-3 9;main 4"],
    );
    check(Split::Name, Some("worker-1$"), &["worker-*;main 2"]);
}

#[test]
fn a_thread_without_a_name_takes_none_from_its_group() {
    let symbolized = TestProfile::of(&[
        ":1/1/1 main 1",
        "worker/1/2 main 2",
        ":2/1/2 main 3",
        ":9/9/9 main 4",
    ]);
    let check = |split, expected: &[&str]| {
        assert_eq!(folded(&symbolized, &Filter::default(), split), expected);
    };
    check(
        Split::Thread,
        &[":1 1/1;main 1", ":9 9/9;main 4", "worker 1/2;main 5"],
    );
    check(Split::Process, &[":9 9;main 4", "worker 1;main 6"]);
}

fn lines(tree: &CallTree<'_>) -> Vec<String> {
    let mut text = Vec::new();
    folded::write(tree, &mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    text.lines()
        .map(|line| line.replace("000000", ""))
        .collect()
}

#[test]
fn callers_and_callees_count_recursion_once() {
    let symbolized = TestProfile::of(&["t m;a;f;f;x 4", "t m;b;f;y 2", "t m;b 1"]);
    let tree = CallTree::new(&symbolized, &Filter::default(), Split::Name).unwrap();
    let pattern = "^f$".parse().unwrap();
    let callees = tree.callees_of(&pattern).unwrap();
    assert_eq!(lines(&callees), ["f;f;x 4", "f;y 2"]);
    let callers = tree.callers_of(&pattern).unwrap();
    assert_eq!(lines(&callers), ["f;a;m 4", "f;b;m 2"]);
    let nothing = tree.callers_of(&"^nothing$".parse().unwrap());
    assert!(matches!(nothing, Err(Error::NoSuchFunction { .. })));
    assert!(CallTree::check_pattern(&[&callees, &tree], &"^m$".parse().unwrap()).is_ok());
    let nothing = CallTree::check_pattern(&[&callees], &"^m$".parse().unwrap());
    assert!(matches!(nothing, Err(Error::NoSuchFunction { .. })));
}

#[test]
fn upside_down() {
    let symbolized = TestProfile::of(&["t m;a;x 4", "u/2 m;b;x 2", "t m;b;x 1", "t m 7"]);
    let tree = CallTree::new(&symbolized, &Filter::default(), Split::Name).unwrap();
    let expected = ["t;m 7", "t;x;a;m 4", "t;x;b;m 1", "u;x;b;m 2"];
    assert_eq!(lines(&tree.inverted()), expected);
}

#[test]
fn nothing_left_is_an_error_that_says_why() {
    let no_samples = |symbolized: &SymbolizedProfile, filter: &Filter| match CallTree::new(
        symbolized,
        filter,
        Split::Nothing,
    ) {
        Err(Error::NoSamples(reason)) => reason,
        other => panic!("{other:?}"),
    };
    let filter = Filter {
        pids: vec![12345],
        ..Filter::default()
    };
    assert_eq!(no_samples(&demo(), &filter), NoSamples::Left);
    let empty = TestProfile::of(&[]);
    let recorded = no_samples(&empty, &Filter::default());
    assert!(matches!(recorded, NoSamples::Recorded(_)), "{recorded}");
    assert!(recorded.to_string().ends_with("a higher rate (-F)"));
}

#[test]
fn an_unknown_event_gets_suggestions() {
    let filter = Filter {
        event: Some("cycles".into()),
        ..Filter::default()
    };
    let error = CallTree::new(&demo(), &filter, Split::Nothing).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the profile has no event cycles; it has cpu-clock"
    );
}

#[test]
fn frame_pointer_stacks_that_reach_an_entry_are_whole() {
    let symbolized = TestProfile::of(&["a open;_start;main 1", "a open;main 2"]);
    assert_eq!(
        folded(&symbolized, &Filter::default(), Split::Nothing),
        [
            "[truncated: the frame pointers end early];main 2",
            "_start;main 1"
        ]
    );
    let quality = symbolized.quality();
    assert_eq!((quality.whole_stacks(), quality.user_stacks()), (1, 2));
}
