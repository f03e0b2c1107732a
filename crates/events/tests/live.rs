//! Real events on this machine's kernel.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::process::{Command, Stdio};

use prof_events::parsing::EventSpec;
use prof_events::{
    CallGraph, EventRequest, GroupRequest, HeldCommand, Program, Rate, Request, Sampler, Signals,
    Stacks, Threads, Toggling,
};
use prof_model::Fallback;

const RECORD_SAMPLE: u32 = 9;
const RECORD_MMAP2: u32 = 10;
const RECORD_COMM: u32 = 3;

fn request(threads: Threads, call_graph: CallGraph) -> Request {
    Request {
        threads,
        groups: vec![GroupRequest::alone(EventRequest::named(
            EventSpec::cpu_clock(),
            Some(Rate::Hertz(999)),
            call_graph,
        ))],
        user_chains: false,
        ring_bytes: None,
        toggling: Toggling::Never,
    }
}

/// Runs a shell command to its end; returns the numbers of its records by type, and the sampler.
fn sample(script: &str, call_graph: CallGraph) -> (BTreeMap<u32, usize>, Sampler) {
    let signals = Signals::block().unwrap();
    let argv = ["sh", "-c", script].map(OsString::from);
    let held = HeldCommand::fork(&Program::new(argv), &signals).unwrap();
    let mut sampler = Sampler::open(&request(Threads::UntilExec(held.pid()), call_graph)).unwrap();
    let mut command = held.release().unwrap();
    let mut counts = BTreeMap::new();
    let mut ended = false;
    while !ended {
        ended = sampler.wait(None).unwrap().all_ended;
        let drained = sampler.drain(|_, record| {
            let kind = u32::from_ne_bytes(record[..4].try_into().unwrap());
            *counts.entry(kind).or_default() += 1;
        });
        assert!(!drained.corrupt);
    }
    assert!(command.wait().unwrap().success());
    (counts, sampler)
}

const BUSY: &str = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done";

#[test]
fn a_command_is_sampled_from_exec_to_its_end() {
    for call_graph in [
        CallGraph::Dwarf { dump: None },
        CallGraph::FramePointers,
        CallGraph::None,
    ] {
        let (counts, sampler) = sample(BUSY, call_graph);
        let count = |kind| counts.get(&kind).copied().unwrap_or(0);
        assert!(count(RECORD_SAMPLE) > 10, "{call_graph:?}: {counts:?}");
        assert!(count(RECORD_MMAP2) > 3, "{call_graph:?}: {counts:?}");
        assert!(count(RECORD_COMM) > 0, "{call_graph:?}: {counts:?}");
        assert_eq!(sampler.opened().events[0].ids.len(), sampler.rings());
    }
}

#[test]
fn children_that_outlive_the_command_are_sampled_too() {
    let (counts, _) = sample(&format!("({BUSY}) & ({BUSY}) & exit 0"), CallGraph::None);
    assert!(counts.get(&RECORD_SAMPLE) > Some(&20), "{counts:?}");
}

#[test]
fn all_threads_of_a_running_process_are_sampled_until_it_ends() {
    let mut target = Command::new("sh")
        .args(["-c", &format!("read line; {BUSY}")])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let threads = Threads::Of(vec![target.id() as i32]);
    let mut sampler = Sampler::open(&request(threads, CallGraph::None)).unwrap();
    sampler.enable().unwrap();
    drop(target.stdin.take());
    let mut samples = 0;
    loop {
        let wake = sampler.wait(None).unwrap();
        sampler.drain(|_, record| samples += usize::from(record[0] == RECORD_SAMPLE as u8));
        if wake.all_ended {
            break;
        }
    }
    assert!(samples > 10, "{samples}");
    target.wait().unwrap();
}

#[test]
fn failures_to_open_have_clear_messages() {
    let no_process = Sampler::open(&request(Threads::Of(vec![i32::MAX]), CallGraph::None));
    let message = no_process.err().map(|error| error.to_string());
    assert_eq!(message.as_deref(), Some("there is no process 2147483647"));
}

#[test]
fn a_small_ring_gets_small_dumps() {
    let signals = Signals::block().unwrap();
    let held = HeldCommand::fork(&Program::new(["true"]), &signals).unwrap();
    let request = Request {
        user_chains: false,
        ring_bytes: Some(65_536),
        ..request(
            Threads::UntilExec(held.pid()),
            CallGraph::Dwarf { dump: Some(65_528) },
        )
    };
    let sampler = Sampler::open(&request).unwrap();
    assert_eq!(
        sampler.opened().events[0].setup.stacks,
        Stacks::Dump(32_256)
    );
    let said = Fallback::StackDump {
        asked: 65_528,
        used: 32_256,
    };
    assert!(sampler.opened().fallbacks.contains(&said));
}
