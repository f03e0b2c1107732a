//! Events with names of their own: hardware, caches, software.

use perf_event_open_sys::bindings as sys;

use super::modifiers::Modifiers;
use super::spec::{Encoding, EventSpec, Family};
use super::terms::Terms;

/// An event with a name of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedEvent {
    /// Its names, the usual one first.
    pub names: Vec<String>,
    /// The kind of event.
    pub family: Family,
    /// The kernel's encoding.
    pub encoding: Encoding,
}

/// (`PERF_COUNT_HW_*`, names)
const HARDWARE: [(u32, &[&str]); 10] = [
    (sys::PERF_COUNT_HW_CPU_CYCLES, &["cycles", "cpu-cycles"]),
    (sys::PERF_COUNT_HW_INSTRUCTIONS, &["instructions"]),
    (sys::PERF_COUNT_HW_CACHE_REFERENCES, &["cache-references"]),
    (sys::PERF_COUNT_HW_CACHE_MISSES, &["cache-misses"]),
    (
        sys::PERF_COUNT_HW_BRANCH_INSTRUCTIONS,
        &["branches", "branch-instructions"],
    ),
    (sys::PERF_COUNT_HW_BRANCH_MISSES, &["branch-misses"]),
    (sys::PERF_COUNT_HW_BUS_CYCLES, &["bus-cycles"]),
    (
        sys::PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
        &["stalled-cycles-frontend", "idle-cycles-frontend"],
    ),
    (
        sys::PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
        &["stalled-cycles-backend", "idle-cycles-backend"],
    ),
    (sys::PERF_COUNT_HW_REF_CPU_CYCLES, &["ref-cycles"]),
];

/// (`PERF_COUNT_SW_*`, names)
const SOFTWARE: [(u32, &[&str]); 12] = [
    (sys::PERF_COUNT_SW_CPU_CLOCK, &["cpu-clock"]),
    (sys::PERF_COUNT_SW_TASK_CLOCK, &["task-clock"]),
    (sys::PERF_COUNT_SW_PAGE_FAULTS, &["page-faults", "faults"]),
    (
        sys::PERF_COUNT_SW_CONTEXT_SWITCHES,
        &["context-switches", "cs"],
    ),
    (
        sys::PERF_COUNT_SW_CPU_MIGRATIONS,
        &["cpu-migrations", "migrations"],
    ),
    (sys::PERF_COUNT_SW_PAGE_FAULTS_MIN, &["minor-faults"]),
    (sys::PERF_COUNT_SW_PAGE_FAULTS_MAJ, &["major-faults"]),
    (sys::PERF_COUNT_SW_ALIGNMENT_FAULTS, &["alignment-faults"]),
    (sys::PERF_COUNT_SW_EMULATION_FAULTS, &["emulation-faults"]),
    (sys::PERF_COUNT_SW_DUMMY, &["dummy"]),
    (sys::PERF_COUNT_SW_BPF_OUTPUT, &["bpf-output"]),
    (sys::PERF_COUNT_SW_CGROUP_SWITCHES, &["cgroup-switches"]),
];

/// A cache: `PERF_COUNT_HW_CACHE_*`, names, and the operations that make sense for it.
const CACHES: [(u32, &[&str], &[Operation]); 7] = [
    (
        sys::PERF_COUNT_HW_CACHE_L1D,
        &["L1-dcache", "l1-d", "l1d", "L1-data"],
        &[READ, WRITE, PREFETCH],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_L1I,
        &["L1-icache", "l1-i", "l1i", "L1-instruction"],
        &[READ, PREFETCH],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_LL,
        &["LLC", "L2"],
        &[READ, WRITE, PREFETCH],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_DTLB,
        &["dTLB", "d-tlb", "Data-TLB"],
        &[READ, WRITE, PREFETCH],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_ITLB,
        &["iTLB", "i-tlb", "Instruction-TLB"],
        &[READ],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_BPU,
        &["branch", "bpu", "btb", "bpc", "branches"],
        &[READ],
    ),
    (
        sys::PERF_COUNT_HW_CACHE_NODE,
        &["node"],
        &[READ, WRITE, PREFETCH],
    ),
];

type Operation = (u32, &'static [&'static str]);

/// The plural comes first: it names all accesses, as in `LLC-loads`; the second names a miss, as
/// in `LLC-load-misses`.
const READ: Operation = (sys::PERF_COUNT_HW_CACHE_OP_READ, &["loads", "load", "read"]);
const WRITE: Operation = (
    sys::PERF_COUNT_HW_CACHE_OP_WRITE,
    &["stores", "store", "write"],
);
const PREFETCH: Operation = (
    sys::PERF_COUNT_HW_CACHE_OP_PREFETCH,
    &[
        "prefetches",
        "prefetch",
        "speculative-read",
        "speculative-load",
    ],
);

const ACCESS: (u32, &[&str]) = (
    sys::PERF_COUNT_HW_CACHE_RESULT_ACCESS,
    &["refs", "Reference", "ops", "access"],
);
const MISS: (u32, &[&str]) = (sys::PERF_COUNT_HW_CACHE_RESULT_MISS, &["misses", "miss"]);

/// The generic hardware events.
pub fn hardware_events() -> Vec<NamedEvent> {
    plain(&HARDWARE, Family::Hardware, sys::PERF_TYPE_HARDWARE)
}

/// The kernel's own events.
pub fn software_events() -> Vec<NamedEvent> {
    plain(&SOFTWARE, Family::Software, sys::PERF_TYPE_SOFTWARE)
}

fn plain(table: &[(u32, &[&str])], family: Family, kind: u32) -> Vec<NamedEvent> {
    table
        .iter()
        .map(|(config, names)| NamedEvent {
            names: names.iter().map(|&name| name.to_owned()).collect(),
            family: family.clone(),
            encoding: encoding(kind, u64::from(*config)),
        })
        .collect()
}

/// The generic events of caches, each under its usual name only.
pub fn cache_events() -> Vec<NamedEvent> {
    let mut events = Vec::new();
    for (cache, names, operations) in CACHES {
        for (operation, words) in operations {
            let usual = |index: usize| words.get(index).copied().unwrap_or_default();
            let name = names.first().copied().unwrap_or_default();
            let all = (format!("{name}-{}", usual(0)), ACCESS.0);
            let missed = (format!("{name}-{}-misses", usual(1)), MISS.0);
            for (name, result) in [all, missed] {
                events.push(NamedEvent {
                    names: vec![name],
                    family: Family::Cache,
                    encoding: cache_encoding(cache, *operation, result),
                });
            }
        }
    }
    events
}

/// Events that prof itself requests.
impl EventSpec {
    /// An event that counts nothing and that everybody may open: to lead a group, or to hold a
    /// ring.
    pub fn dummy() -> Self {
        Self {
            modifiers: Modifiers {
                kernel: false,
                hypervisor: false,
                ..Modifiers::default()
            },
            ..Self::well_known("dummy", Family::Software)
        }
    }

    /// CPU cycles, in all code (`PERF_COUNT_HW_CPU_CYCLES`).
    pub fn cycles() -> Self {
        Self::well_known("cycles", Family::Hardware)
    }

    /// The CPU's clock, in nanoseconds (`PERF_COUNT_SW_CPU_CLOCK`).
    pub fn cpu_clock() -> Self {
        Self::well_known("cpu-clock", Family::Software)
    }

    /// Context switches (`PERF_COUNT_SW_CONTEXT_SWITCHES`), under the name that perf has for the
    /// time that passes until the thread is back.
    pub fn off_cpu() -> Self {
        Self {
            name: "offcpu-time".into(),
            ..Self::well_known("context-switches", Family::Software)
        }
    }

    /// An event that reports when threads leave their CPUs and return, but not their stacks: it
    /// counts nothing, and its ring gets SWITCH records. Everybody may open it for their own
    /// threads.
    pub(crate) fn off_cpu_by_switches() -> Self {
        Self {
            name: "offcpu-time".into(),
            ..Self::dummy()
        }
    }

    fn well_known(name: &str, family: Family) -> Self {
        Self {
            name: name.into(),
            family,
            encoding: encoding_of(name).unwrap_or_default(),
            modifiers: Modifiers::default(),
            terms: Terms::default(),
            scale: None,
            cpus: None,
        }
    }
}

/// The encoding of a name that means the same on all machines, in any of its spellings.
pub fn encoding_of(name: &str) -> Option<Encoding> {
    find(name).map(|(_, encoding)| encoding)
}

/// The event for a name, in any of its spellings.
pub(super) fn find(name: &str) -> Option<(Family, Encoding)> {
    let plain = |table: &[(u32, &[&str])]| {
        let found = table.iter().find(|(_, names)| names.contains(&name));
        found.map(|(config, _)| u64::from(*config))
    };
    if let Some(config) = plain(&HARDWARE) {
        return Some((Family::Hardware, encoding(sys::PERF_TYPE_HARDWARE, config)));
    }
    if let Some(config) = plain(&SOFTWARE) {
        return Some((Family::Software, encoding(sys::PERF_TYPE_SOFTWARE, config)));
    }
    find_cache(name).map(|encoding| (Family::Cache, encoding))
}

/// `CACHE[-OPERATION][-RESULT]`, in perf's syntax: in any case; by default reads, and all accesses.
fn find_cache(name: &str) -> Option<Encoding> {
    let lower = name.to_lowercase();
    CACHES.iter().find_map(|(cache, names, operations)| {
        names.iter().find_map(|known| {
            let rest = lower.strip_prefix(&known.to_lowercase())?;
            let (operation, result) = operation_and_result(rest, operations)?;
            Some(cache_encoding(*cache, operation, result))
        })
    })
}

fn operation_and_result(rest: &str, operations: &[Operation]) -> Option<(u32, u32)> {
    if rest.is_empty() {
        return Some((READ.0, ACCESS.0));
    }
    let rest = rest.strip_prefix('-')?;
    let result = |word: &str| {
        let known =
            |(_, words): &&(u32, &[&str])| words.iter().any(|w| w.eq_ignore_ascii_case(word));
        [ACCESS, MISS].iter().find(known).map(|(result, _)| *result)
    };
    if let Some(result) = result(rest) {
        return Some((READ.0, result));
    }
    operations.iter().find_map(|(operation, words)| {
        words.iter().find_map(|word| {
            let rest = rest.strip_prefix(word)?;
            match rest.strip_prefix('-') {
                None if rest.is_empty() => Some((*operation, ACCESS.0)),
                Some(word) => Some((*operation, result(word)?)),
                None => None,
            }
        })
    })
}

/// All names that can be suggested for a mistyped one.
pub(super) fn all_names() -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for event in [hardware_events(), software_events(), cache_events()].concat() {
        names.extend(event.names);
    }
    names
}

fn encoding(kind: u32, config: u64) -> Encoding {
    Encoding {
        kind,
        config,
        ..Encoding::default()
    }
}

/// `cache | operation << 8 | result << 16`, as perf_event_open(2) says.
fn cache_encoding(cache: u32, operation: u32, result: u32) -> Encoding {
    let config = cache | operation << 8 | result << 16;
    encoding(sys::PERF_TYPE_HW_CACHE, u64::from(config))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, expected: Option<(u32, u64)>) {
        let found = find(name).map(|(_, encoding)| (encoding.kind, encoding.config));
        assert_eq!(found, expected, "{name}");
    }

    #[test]
    fn caches_in_all_spellings() {
        check("L1-dcache-loads", Some((3, 0)));
        check("L1-dcache-load-misses", Some((3, 0x1_0000)));
        check("l1d-read-miss", Some((3, 0x1_0000)));
        check("L1-data-misses", Some((3, 0x1_0000)));
        check("L1-dcache", Some((3, 0)));
        check("L1-dcache-stores", Some((3, 0x100)));
        check("L1-dcache-prefetch-misses", Some((3, 0x1_0200)));
        check("L1-icache-loads", Some((3, 1)));
        check("LLC-loads", Some((3, 2)));
        check("llc-store-misses", Some((3, 0x1_0102)));
        check("L2-speculative-load-refs", Some((3, 0x202)));
        check("dTLB-load-misses", Some((3, 0x1_0003)));
        check("iTLB-loads", Some((3, 4)));
        check("branch-loads", Some((3, 5)));
        check("bpu-load-misses", Some((3, 0x1_0005)));
        check("node-loads", Some((3, 6)));
        check("node-access", Some((3, 6)));
    }

    #[test]
    fn hardware_goes_before_caches() {
        check("branches", Some((0, 4)));
        check("branch-misses", Some((0, 5)));
        check("branches-loads", Some((3, 5)));
    }

    #[test]
    fn nonsense_is_not_an_event() {
        for name in [
            "L1-icache-stores",
            "iTLB-stores",
            "branch-stores",
            "LLC-",
            "LLC-loads-",
            "LLC-loadsmisses",
            "LLC-loads-hits",
            "L1-dcache-loads-loads",
            "",
            "-loads",
        ] {
            check(name, None);
        }
    }

    #[test]
    fn every_name_finds_its_event() {
        for event in [hardware_events(), software_events(), cache_events()].concat() {
            for name in &event.names {
                let found = find(name);
                assert_eq!(
                    found,
                    Some((event.family.clone(), event.encoding.clone())),
                    "{name}"
                );
            }
        }
    }
}
