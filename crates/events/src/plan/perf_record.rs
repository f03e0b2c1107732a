//! Compares our requests for sampling with those that `perf record -vv` prints for the same names
//! and flags. perf prints them whether or not the kernel accepts them.

use std::collections::BTreeMap;
use std::process::Command;

use perf_event_open_sys::bindings as sys;

use super::*;
use crate::parsing::Catalog;
use crate::request::event::{CallGraph, EventRequest, GroupRequest};

/// The fields of the first attribute that perf opens, as it prints them.
fn perfs(name: &str, flags: &[&str]) -> Option<BTreeMap<String, String>> {
    let mut perf = Command::new("perf");
    perf.args(["record", "-vv", "-o", "/dev/null", "-e", name]);
    let output = perf.args(flags).arg("true").output().ok()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let lines = text
        .lines()
        .skip_while(|line| !line.starts_with("perf_event_attr:"));
    let fields = lines.skip(1).take_while(|line| !line.starts_with("---"));
    let fields: BTreeMap<_, _> = fields
        .filter_map(|line| line.trim().rsplit_once("  "))
        .map(|(key, value)| (key.trim().to_owned(), value.trim().to_owned()))
        .collect();
    (!fields.is_empty()).then_some(fields)
}

fn ours(name: &str, rate: Rate, call_graph: CallGraph) -> sys::perf_event_attr {
    let mut groups = Catalog::system().parse(name).expect("an event");
    let spec = groups.remove(0).events.remove(0);
    let request = Request {
        threads: Threads::UntilExec(1),
        groups: vec![GroupRequest::alone(EventRequest::named(
            spec,
            Some(rate),
            call_graph,
        ))],
        user_chains: false,
        toggling: crate::request::Toggling::Never,
        ring_bytes: None,
    };
    let system = System {
        paranoid: -1,
        max_rate: 100_000,
        max_stack: 127,
        cpus: vec![0],
        virtual_machine: false,
    };
    let sizes = buffer_request(&request, &system, 1).sizes();
    events(&request, &system, sizes).remove(0).setup.attr()
}

/// Both must be equal; perf omits zeros.
fn check(name: &str, flags: &[&str], rate: Rate, call_graph: CallGraph) -> bool {
    let Some(theirs) = perfs(name, flags) else {
        return false;
    };
    let attr = ours(name, rate, call_graph);
    let field = |key: &str| theirs.get(key).map_or("0", String::as_str);
    let number = |key: &str| {
        let value = field(key);
        let hex = value.strip_prefix("0x");
        hex.map_or_else(|| value.parse(), |hex| u64::from_str_radix(hex, 16))
    };
    // SAFETY: each field of these unions is a number, of which all bits are one.
    let (period, kind) = unsafe { (attr.__bindgen_anon_1.sample_period, attr.__bindgen_anon_2) };
    // SAFETY: as above.
    let kind = unsafe { kind.wakeup_watermark };
    assert!(kind > 0, "{name}: the reader is woken");
    for (key, ours) in [
        ("type", attr.type_.into()),
        ("config", attr.config),
        ("{ sample_period, sample_freq }", period),
        ("freq", attr.freq()),
        ("inherit", attr.inherit()),
        ("disabled", attr.disabled()),
        ("enable_on_exec", attr.enable_on_exec()),
        ("exclude_user", attr.exclude_user()),
        ("exclude_kernel", attr.exclude_kernel()),
        ("exclude_hv", attr.exclude_hv()),
        ("exclude_idle", attr.exclude_idle()),
        ("exclude_host", attr.exclude_host()),
        ("pinned", attr.pinned()),
        ("exclusive", attr.exclusive()),
        ("precise_ip", attr.precise_ip()),
        ("exclude_callchain_user", attr.exclude_callchain_user()),
        ("sample_regs_user", attr.sample_regs_user),
        ("sample_stack_user", attr.sample_stack_user.into()),
    ] {
        assert_eq!(number(key), Ok(ours), "{name} {flags:?}: {key}");
    }
    let types: Vec<&str> = field("sample_type").split('|').collect();
    for (bit, word) in [
        (sys::PERF_SAMPLE_CALLCHAIN, "CALLCHAIN"),
        (sys::PERF_SAMPLE_BRANCH_STACK, "BRANCH_STACK"),
        (sys::PERF_SAMPLE_REGS_USER, "REGS_USER"),
        (sys::PERF_SAMPLE_STACK_USER, "STACK_USER"),
    ] {
        let requested = attr.sample_type & u64::from(bit) != 0;
        assert_eq!(requested, types.contains(&word), "{name} {flags:?}: {word}");
    }
    let branches: Vec<&str> = field("branch_sample_type").split('|').collect();
    for (bit, word) in [
        (sys::PERF_SAMPLE_BRANCH_USER, "USER"),
        (sys::PERF_SAMPLE_BRANCH_CALL_STACK, "CALL_STACK"),
        (sys::PERF_SAMPLE_BRANCH_NO_FLAGS, "NO_FLAGS"),
        (sys::PERF_SAMPLE_BRANCH_NO_CYCLES, "NO_CYCLES"),
        (sys::PERF_SAMPLE_BRANCH_HW_INDEX, "HW_INDEX"),
    ] {
        let requested = attr.branch_sample_type & u64::from(bit) != 0;
        assert_eq!(
            requested,
            branches.contains(&word),
            "{name} {flags:?}: {word}"
        );
    }
    true
}

#[test]
fn sampling_events_request_the_fields_of_perf_record() {
    if Command::new("perf").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "perf is not installed");
        return;
    }
    let fp = CallGraph::FramePointers;
    let lbr = CallGraph::LastBranches;
    let dwarf = CallGraph::Dwarf { dump: Some(8192) };
    let hertz = Rate::Hertz(99);
    let at_99_hertz = ["-F", "99", "--call-graph"];
    let dumps = [&at_99_hertz[..], &["dwarf,8192"]].concat();
    let calls = [&at_99_hertz[..], &["lbr"]].concat();
    let frequency = [&at_99_hertz[..], &["fp"]].concat();
    let period = ["-c", "10007", "--call-graph", "fp"];
    let names = [
        "cycles",
        "cycles:u",
        "cycles:k",
        "cycles:uk",
        "cycles:pp",
        "cycles:D",
        "instructions:I",
        "branch-misses:e",
        "L1-dcache-load-misses",
        "LLC-loads:u",
        "r01c2",
        "cpu-clock",
        "task-clock:u",
        "page-faults",
    ];
    let mut cases: Vec<(&str, &[&str], Rate, CallGraph)> = Vec::new();
    for name in names {
        cases.push((name, &frequency, hertz, fp));
        cases.push((name, &period, Rate::Period(10_007), fp));
    }
    // (Of user code alone perf asks for a chain without the user's part: an empty one. We do not.)
    cases.push(("cycles", &dumps, hertz, dwarf));
    cases.push(("cycles", &calls, hertz, lbr));
    cases.push(("cycles:u", &calls, hertz, lbr));
    cases.push(("mem:0x1000:x", &["-g"], Rate::Period(1), fp));
    // perf mostly waits for the kernel, which takes its time to close an event.
    let compared = std::thread::scope(|scope| {
        let start =
            |(name, flags, rate, graph)| scope.spawn(move || check(name, flags, rate, graph));
        let started: Vec<_> = cases.into_iter().map(start).collect();
        let done = started
            .into_iter()
            .map(|case| case.join().expect("the same of both"));
        done.filter(|&compared| compared).count()
    });
    assert!(compared > 20, "perf printed {compared} attributes only");
}
