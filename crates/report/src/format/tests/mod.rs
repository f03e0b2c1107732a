//! Files for other tools, read by these tools: the results are compared with our own folded stacks.

mod firefox;
mod golden;
mod hostile;
mod pprof;
mod readers;
mod script;
mod speedscope;

use std::collections::BTreeMap;

use crate::calltree::{CallTree, Split};
use crate::error::Error;
use crate::filter::Filter;
use crate::profile::{Event, Unit};
use crate::symbolize::{Language, SymbolizedProfile};
use crate::testing::{TestProfile, demo, everything};

use super::folded;

/// Weights by stack: names from the outermost inwards, separated by `;`.
type Stacks = BTreeMap<String, u64>;

/// Filters that every format has to obey.
#[expect(clippy::too_many_lines, reason = "a table")]
fn filters() -> Vec<(&'static str, Filter)> {
    let pattern = |text: &str| Some(text.parse().unwrap());
    let all = everything();
    vec![
        ("everything", all.clone()),
        (
            "no_inline",
            Filter {
                no_inline: true,
                ..all.clone()
            },
        ),
        (
            "no_kernel",
            Filter {
                no_kernel: true,
                ..all.clone()
            },
        ),
        (
            "hide",
            Filter {
                hide: pattern("^(main|ns::inner)$"),
                ..all.clone()
            },
        ),
        (
            "ignore",
            Filter {
                ignore: pattern("fib"),
                ..all.clone()
            },
        ),
        (
            "function",
            Filter {
                function: pattern("innermost"),
                ..all.clone()
            },
        ),
        (
            "module",
            Filter {
                module: pattern("libc"),
                ..all.clone()
            },
        ),
        (
            "language",
            Filter {
                languages: vec![Language::Cpp],
                ..all.clone()
            },
        ),
        (
            "comm",
            Filter {
                comm: pattern("worker"),
                ..all.clone()
            },
        ),
        (
            "tids",
            Filter {
                tids: vec![2, 9],
                ..all.clone()
            },
        ),
        (
            "pids",
            Filter {
                pids: vec![1],
                ..all.clone()
            },
        ),
        (
            "cpus",
            Filter {
                cpus: vec![0],
                ..all
            },
        ),
    ]
}

/// The result of our own folded writer.
fn expected(symbolized: &SymbolizedProfile, filter: &Filter, split: Split) -> Stacks {
    let tree = CallTree::new(symbolized, filter, split).unwrap();
    let mut text = Vec::new();
    folded::write(&tree, &mut text).unwrap();
    parse_folded(&String::from_utf8(text).unwrap())
}

fn parse_folded(text: &str) -> Stacks {
    let mut stacks = Stacks::new();
    for line in text.lines() {
        let (stack, weight) = line.rsplit_once(' ').unwrap();
        *stacks.entry(stack.to_owned()).or_default() += weight.parse::<u64>().unwrap();
    }
    stacks
}

/// A format as bytes.
fn written(write: impl FnOnce(&mut Vec<u8>) -> Result<(), Error>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

#[test]
fn the_same_profile_gives_the_same_bytes() {
    let write = |symbolized: &SymbolizedProfile| {
        let all = everything();
        [
            written(|out| super::pprof::write(symbolized, &all, out)),
            written(|out| super::firefox::write(symbolized, &all, out)),
            written(|out| super::speedscope::write(symbolized, &all, out)),
            written(|out| super::script::write(symbolized, &all, out)),
        ]
    };
    assert!(write(&demo()) == write(&demo()));
}

#[test]
fn units_are_those_that_a_format_knows() {
    let check = |event: &str, speedscope: &str, firefox: &str| {
        let mut test = TestProfile::new();
        test.profile.events[0] = Event {
            name: event.into(),
            unit: Unit::of_event(event),
        };
        test.line("demo _start;main 5");
        let symbolized = test.finish();
        let all = everything();
        let file = written(|out| super::speedscope::write(&symbolized, &all, out));
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        assert_eq!(file["profiles"][0]["unit"], speedscope, "{event}");
        let file = written(|out| super::firefox::write(&symbolized, &all, out));
        let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
        let samples = &file["threads"][0]["samples"];
        assert_eq!(samples["weightType"], firefox, "{event}");
    };
    check("cpu-clock", "nanoseconds", "tracing-ms");
    check("offcpu-time", "nanoseconds", "tracing-ms");
    check("alloc-bytes", "bytes", "bytes");
    check("alloc-calls", "none", "samples");
    check("cycles", "none", "samples");
}

#[test]
fn nothing_left_is_an_error_and_not_an_empty_file() {
    let symbolized = demo();
    let nobody = Filter {
        pids: vec![12345],
        ..everything()
    };
    let mut out = Vec::new();
    let results = [
        super::pprof::write(&symbolized, &nobody, &mut out),
        super::firefox::write(&symbolized, &nobody, &mut out),
        super::speedscope::write(&symbolized, &nobody, &mut out),
        super::script::write(&symbolized, &nobody, &mut out),
    ];
    assert!(
        results
            .iter()
            .all(|result| matches!(result, Err(Error::NoSamples(_))))
    );
    assert!(out.is_empty());
}
