//! Event names against the attributes that `perf stat -vv` prints for the same names.
//! (`src/plan/perf_record.rs` compares the requests for sampling.)

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::process::Command;

use prof_events::counting::{AttrOptions, Inherit, attr_bytes};
use prof_events::parsing::{Catalog, EventSpec, Family};

fn one(text: &str) -> EventSpec {
    match Catalog::system().parse(text) {
        Ok(mut groups) => groups.remove(0).events.remove(0),
        Err(error) => panic!("{error}"),
    }
}

/// perf's dump of the attributes that it opens for `names`, one map of fields for each.
fn perf_dump(name: &str) -> Option<Vec<BTreeMap<String, u64>>> {
    let output = Command::new("perf")
        .args(["stat", "-vv", "-e", name, "true"])
        .output()
        .ok()?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let mut dumps = Vec::new();
    let mut fields: Option<BTreeMap<String, u64>> = None;
    for line in text.lines() {
        if line.starts_with("perf_event_attr:") {
            fields = Some(BTreeMap::new());
        } else if line.starts_with("---") {
            dumps.extend(fields.take());
        } else if let (Some(fields), Some((key, value))) =
            (&mut fields, line.trim().rsplit_once("  "))
        {
            let value = value.trim();
            let number = match value.strip_prefix("0x") {
                Some(digits) => u64::from_str_radix(digits, 16).ok(),
                None => value.parse().ok(),
            };
            fields.extend(number.map(|number| (key.trim().to_owned(), number)));
        }
    }
    Some(dumps)
}

/// The same fields of ours. perf omits zeros.
fn our_dump(spec: &EventSpec) -> BTreeMap<String, u64> {
    let options = AttrOptions {
        inherit: Inherit::Children,
        enable_on_exec: true,
        group_read: false,
        enabled: false,
    };
    let bytes = attr_bytes(spec, options);
    let word = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().unwrap());
    let long = |at: usize| u64::from_ne_bytes(bytes[at..at + 8].try_into().unwrap());
    let flags = long(40);
    let bit = |bit: u32| flags >> bit & 1;
    let breakpoint = spec.family == Family::Breakpoint;
    let fields = [
        ("type", u64::from(word(0))),
        ("size", u64::from(word(4))),
        ("config", long(8)),
        ("disabled", bit(0)),
        ("inherit", bit(1)),
        ("pinned", bit(2)),
        ("exclusive", bit(3)),
        ("exclude_user", bit(4)),
        ("exclude_kernel", bit(5)),
        ("exclude_hv", bit(6)),
        ("exclude_idle", bit(7)),
        ("enable_on_exec", bit(12)),
        ("precise_ip", flags >> 15 & 3),
        ("exclude_host", bit(19)),
        ("bp_type", if breakpoint { u64::from(word(52)) } else { 0 }),
        ("{ bp_addr, config1 }", long(56)),
        ("{ bp_len, config2 }", long(64)),
    ];
    let set = fields.into_iter().filter(|(_, value)| *value != 0);
    set.map(|(name, value)| (name.to_owned(), value)).collect()
}

/// perf sets exclude_guest in some cases more and in some fewer than we do (it drops it with
/// `:k`), and newer versions differ; sample_type only matters for samples.
const NOT_COMPARED: [&str; 2] = ["exclude_guest", "sample_type"];

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn attributes_are_perfs() {
    if Command::new("perf").arg("--version").output().is_err() {
        eprintln!("skipped: perf is not installed");
        return;
    }
    let mut names: Vec<String> = [
        "cycles:u",
        "cycles:k",
        "cycles:uk",
        "cycles:h",
        "cycles:G",
        "cycles:H",
        "cycles:I",
        "cycles:D",
        "cycles:e",
        "cpu-cycles",
        "idle-cycles-frontend",
        "idle-cycles-backend",
        "branch-instructions",
        "l1d-read-miss",
        "L1-data",
        "L1-dcache-misses",
        "l1i-loads",
        "LLC",
        "L2-speculative-load-refs",
        "d-tlb-write",
        "Instruction-TLB-misses",
        "branches-load-misses",
        "bpu-read",
        "node-store-misses",
        "cs",
        "faults",
        "migrations",
        "r01c2",
        "rc0:u",
        "mem:0x1000",
        "mem:0x1000/8:rw:u",
        "mem:0x1000:x",
        "mem:0x1000/1:w",
        "1:2",
        "0:1:u",
    ]
    .map(str::to_owned)
    .to_vec();
    for event in prof_events::parsing::hardware_events() {
        names.extend(event.names);
    }
    for event in prof_events::parsing::software_events() {
        names.extend(event.names);
    }
    names.extend(
        prof_events::parsing::cache_events()
            .into_iter()
            .flat_map(|event| event.names),
    );
    let catalog = Catalog::system();
    for pmu in catalog.pmus() {
        names.extend(
            pmu.events
                .keys()
                .map(|event| format!("{}/{event}/", pmu.name)),
        );
        if pmu.name == "cpu" {
            names.extend(
                [
                    "cpu/event=0xc0/u",
                    "cpu/event=0xc0,umask=0x1,name=x/",
                    "cpu/config=0x76/k",
                ]
                .map(str::to_owned),
            );
        }
    }
    if catalog.parse("sched:sched_switch").is_ok() {
        names.extend(["sched:sched_switch", "sched:sched_wakeup:k"].map(str::to_owned));
    }
    let mut compared = 0;
    for name in &names {
        // perf opens several times if the kernel refuses; the first one is its request.
        let Some(mut theirs) = perf_dump(name).and_then(|dumps| dumps.into_iter().next()) else {
            continue;
        };
        let spec = one(name);
        let mut ours = our_dump(&spec);
        if spec.cpus.is_some() {
            // perf counts such events on whole CPUs, and begins before the program.
            ours.remove("enable_on_exec");
        }
        for field in NOT_COMPARED {
            theirs.remove(field);
            ours.remove(field);
        }
        assert_eq!(ours, theirs, "{name}");
        compared += 1;
    }
    eprintln!("{compared} of {} names compared", names.len());
    assert!(
        compared > 20,
        "perf printed the attributes of {compared} names only"
    );
}
