//! Event names against their encodings: the kernel's documented bits. (`perf_attributes.rs` has
//! perf's encodings of the same names.)

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;

use prof_events::Rate;
use prof_events::counting::{AttrOptions, attr_bytes};
use prof_events::parsing::{CallGraphTerm, Catalog, EventGroup, EventSpec, Family};

fn parse(text: &str) -> Vec<EventGroup> {
    match Catalog::system().parse(text) {
        Ok(groups) => groups,
        Err(error) => panic!("{error}"),
    }
}

fn one(text: &str) -> EventSpec {
    let mut groups = parse(text);
    assert_eq!(groups.len(), 1, "{text}");
    groups.remove(0).events.remove(0)
}

fn error(catalog: &Catalog, text: &str) -> String {
    match catalog.parse(text) {
        Ok(groups) => panic!("{text} is {groups:?}"),
        Err(error) => error.to_string(),
    }
}

/// The flags of an attribute: the 64 bits at offset 40.
fn flags(spec: &EventSpec) -> u64 {
    let bytes = attr_bytes(spec, AttrOptions::default());
    u64::from_ne_bytes(bytes[40..48].try_into().unwrap())
}

/// Bits of the flags, include/uapi/linux/perf_event.h.
const DISABLED: u64 = 1 << 0;
const PINNED: u64 = 1 << 2;
const EXCLUSIVE: u64 = 1 << 3;
const EXCLUDE_USER: u64 = 1 << 4;
const EXCLUDE_KERNEL: u64 = 1 << 5;
const EXCLUDE_HV: u64 = 1 << 6;
const EXCLUDE_IDLE: u64 = 1 << 7;
const PRECISE: u32 = 15;
const EXCLUDE_HOST: u64 = 1 << 19;
const EXCLUDE_GUEST: u64 = 1 << 20;

#[test]
fn modifiers_are_the_kernels_flags() {
    let check = |text: &str, expected: u64| {
        assert_eq!(flags(&one(text)), expected | DISABLED, "{text}");
    };
    check("cycles", EXCLUDE_GUEST);
    check("cycles:u", EXCLUDE_KERNEL | EXCLUDE_HV | EXCLUDE_GUEST);
    check("cycles:k", EXCLUDE_USER | EXCLUDE_HV | EXCLUDE_GUEST);
    check("cycles:h", EXCLUDE_USER | EXCLUDE_KERNEL | EXCLUDE_GUEST);
    check("cycles:uk", EXCLUDE_HV | EXCLUDE_GUEST);
    check("cycles:ukh", EXCLUDE_GUEST);
    check("cycles:G", EXCLUDE_HOST);
    check("cycles:H", EXCLUDE_GUEST);
    check("cycles:GH", 0);
    check("cycles:HG", 0);
    check("cycles:I", EXCLUDE_IDLE | EXCLUDE_GUEST);
    check("cycles:D", PINNED | EXCLUDE_GUEST);
    check("cycles:e", EXCLUSIVE | EXCLUDE_GUEST);
    check("cycles:S", EXCLUDE_GUEST);
    check("cycles:p", 1 << PRECISE | EXCLUDE_GUEST);
    check("cycles:pp", 2 << PRECISE | EXCLUDE_GUEST);
    check("cycles:ppp", 3 << PRECISE | EXCLUDE_GUEST);
    check(
        "cycles:upp",
        2 << PRECISE | EXCLUDE_KERNEL | EXCLUDE_HV | EXCLUDE_GUEST,
    );
}

#[test]
fn names_are_shown_with_their_modifiers() {
    let check = |text: &str, expected: &str| assert_eq!(one(text).to_string(), expected);
    check("cycles", "cycles");
    check("cpu-cycles:ku", "cpu-cycles:uk");
    check("cycles/period=1000/u", "cycles/period=1000/u");
    check("cycles/period=1000/:u", "cycles/period=1000/u");
    check("cycles/name=mine/u", "mine:u");
    check("cycles/name='my own'/", "my own");
    check("r1c2:PI", "r1c2:IP");
    check("mem:0x1000/8:w:u", "mem:0x1000/8:w:u");
    let user_only = |text: &str| one(text).user_only().map(|spec| spec.to_string());
    assert_eq!(user_only("cycles").as_deref(), Some("cycles:u"));
    assert_eq!(user_only("cycles:u"), None);
    assert_eq!(user_only("cycles:k"), None);
}

#[test]
fn lists_and_groups() {
    let shape = |text: &str| -> Vec<(Vec<String>, bool, bool)> {
        let names = |group: &EventGroup| group.events.iter().map(ToString::to_string).collect();
        parse(text)
            .iter()
            .map(|group| (names(group), group.braces, group.leader_sampling))
            .collect()
    };
    let alone = |name: &str| (vec![name.to_owned()], false, false);
    assert_eq!(
        shape("cycles, task-clock"),
        [alone("cycles"), alone("task-clock")]
    );
    let names = |names: &[&str]| {
        names
            .iter()
            .map(|&name| name.to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        shape("{ cycles , instructions:u }"),
        [(names(&["cycles", "instructions:u"]), true, false)]
    );
    assert_eq!(
        shape("faults,{cycles,cs}:Su,r1"),
        [
            alone("faults"),
            (names(&["cycles:uS", "cs:uS"]), true, true),
            alone("r1")
        ]
    );
    let pinned = parse("{cycles,instructions}:D").remove(0);
    let flags: Vec<bool> = pinned
        .events
        .iter()
        .map(|event| event.modifiers.pinned)
        .collect();
    assert_eq!(flags, [true, false]);
}

#[test]
fn terms_between_slashes() {
    let terms = |text: &str| one(text).terms;
    assert_eq!(terms("cycles/period=1000/").rate, Some(Rate::Period(1000)));
    assert_eq!(terms("cycles/period=0x10/").rate, Some(Rate::Period(16)));
    assert_eq!(terms("cycles/freq=99/u").rate, Some(Rate::Hertz(99)));
    assert_eq!(terms("cycles/freq=max/").rate, Some(Rate::Maximum));
    assert_eq!(
        terms("cycles/call-graph=fp/").call_graph,
        Some(CallGraphTerm::FramePointers)
    );
    assert_eq!(
        terms("cycles/call-graph=lbr/").call_graph,
        Some(CallGraphTerm::LastBranches)
    );
    assert_eq!(
        terms("cycles/call-graph=dwarf,stack-size=8190/").stack_size,
        Some(8192)
    );
    assert_eq!(terms("cycles/max-stack=64/").max_stack, Some(64));
    assert_eq!(terms("cycles/no-inherit/").inherit, Some(false));
    assert_eq!(terms("cycles//").rate, None);
    let config = one("cycles/config=0x55,config1=2/").encoding;
    assert_eq!((config.config, config.config1), (0x55, 2));
}

#[test]
fn breakpoints() {
    let check = |text: &str, expected: (u64, u64, u32)| {
        let encoding = one(text).encoding;
        assert_eq!(encoding.kind, 5);
        assert_eq!(
            (encoding.config1, encoding.config2, encoding.breakpoint),
            expected,
            "{text}"
        );
    };
    check("mem:0x1000", (0x1000, 4, 3));
    check("mem:4096:r", (0x1000, 4, 1));
    check("mem:0x1000/1:w", (0x1000, 1, 2));
    check("mem:0x1000/8:rw:u", (0x1000, 8, 3));
    check("mem:0x1000:x", (0x1000, 8, 4));
    check("mem:0x1000:u", (0x1000, 4, 3));
}

/// A machine of our own making.
struct Machine {
    folder: tempfile::TempDir,
    catalog: Catalog,
}

impl Machine {
    fn new(files: &[(&str, &str)]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for (path, content) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, content).unwrap();
        }
        let catalog = Catalog {
            devices: folder.path().join("devices"),
            tracefs: vec![folder.path().join("none"), folder.path().join("tracing")],
            ..Catalog::system()
        };
        Self { folder, catalog }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn intel() -> Self {
        Self::new(&[
            ("devices/cpu/type", "4\n"),
            ("devices/cpu/format/event", "config:0-7\n"),
            ("devices/cpu/format/umask", "config:8-15\n"),
            ("devices/cpu/format/cmask", "config:24-31\n"),
            ("devices/cpu/format/inv", "config:23\n"),
            ("devices/cpu/format/offcore_rsp", "config1:0-63\n"),
            ("devices/cpu/format/ldlat", "config1:0-15\n"),
            (
                "devices/cpu/events/mem-loads",
                "event=0xcd,umask=0x1,ldlat=3\n",
            ),
            ("devices/cpu/events/topdown-x", "event=?,umask=0x1\n"),
            ("devices/uncore_imc_0/type", "14\n"),
            ("devices/uncore_imc_0/cpumask", "0,16\n"),
            ("devices/uncore_imc_0/format/event", "config:0-7\n"),
            ("devices/uncore_imc_0/format/umask", "config:8-15\n"),
            (
                "devices/uncore_imc_0/events/cas_count_read",
                "event=0x04,umask=0x03\n",
            ),
            (
                "devices/uncore_imc_0/events/cas_count_read.scale",
                "6.103515625e-5\n",
            ),
            ("devices/uncore_imc_0/events/cas_count_read.unit", "MiB\n"),
            ("devices/uncore_imc_1/type", "15\n"),
            ("devices/uncore_imc_1/format/event", "config:0-7\n"),
            ("devices/uncore_imc_1/events/cas_count_read", "event=0x04\n"),
            ("devices/broken/type", "many\n"),
            ("tracing/events/sched/sched_switch/id", "314\n"),
            ("tracing/events/sched/sched_wakeup/id", "315\n"),
            ("tracing/events/sched/enable", "0\n"),
            ("tracing/events/syscalls/sys_enter_read/id", "700\n"),
        ])
    }

    /// Type, config, config1.
    fn check(&self, text: &str, expected: &[(u32, u64, u64)]) -> Vec<EventSpec> {
        let groups = self
            .catalog
            .parse(text)
            .unwrap_or_else(|error| panic!("{error}"));
        let events: Vec<EventSpec> = groups.into_iter().flat_map(|group| group.events).collect();
        let encodings: Vec<_> = events
            .iter()
            .map(|event| {
                (
                    event.encoding.kind,
                    event.encoding.config,
                    event.encoding.config1,
                )
            })
            .collect();
        assert_eq!(encodings, expected, "{text}");
        events
    }
}

#[test]
fn pmus_of_sysfs() {
    let machine = Machine::intel();
    machine.check("cpu/event=0x3c,umask=0x1/", &[(4, 0x13c, 0)]);
    machine.check("cpu/event=0x3c,inv,cmask=2/u", &[(4, 0x280_003c, 0)]);
    machine.check(
        "cpu/event=183,offcore_rsp=0x3f80400001/",
        &[(4, 0xb7, 0x3f_8040_0001)],
    );
    machine.check("cpu/config=0x1234/", &[(4, 0x1234, 0)]);
    machine.check("cpu/r1c2/", &[(4, 0x1c2, 0)]);
    machine.check("cpu/mem-loads/", &[(4, 0x1cd, 3)]);
    machine.check("cpu/mem-loads,ldlat=30/", &[(4, 0x1cd, 30)]);
    machine.check("mem-loads:u", &[(4, 0x1cd, 3)]);
    let events = machine.check("uncore_imc/cas_count_read/", &[(14, 0x304, 0), (15, 4, 0)]);
    assert_eq!(events[0].name, "uncore_imc_0/cas_count_read/");
    assert_eq!(events[0].scale, Some((6.103_515_625e-5, "MiB".to_owned())));
    assert_eq!(events[0].cpus, Some(vec![0, 16]));
    assert_eq!(events[1].cpus, None);
    machine.check("imc/event=1/", &[(14, 1, 0), (15, 1, 0)]);
    machine.check("uncore_imc_1/event=1/", &[(15, 1, 0)]);
    machine.check("uncore_*/event=1/", &[(14, 1, 0), (15, 1, 0)]);
    let events = machine.check("cas_count_read", &[(14, 0x304, 0), (15, 4, 0)]);
    assert_eq!(events[1].name, "uncore_imc_1/cas_count_read/");
    let events = machine.check("cpu/event=1,period=1000,name=mine/", &[(4, 1, 0)]);
    assert_eq!(events[0].terms.rate, Some(Rate::Period(1000)));
    assert_eq!(events[0].name, "mine");
    assert_eq!(events[0].family, Family::Pmu("cpu".into()));
}

#[test]
fn tracepoints() {
    let machine = Machine::intel();
    machine.check("sched:sched_switch", &[(2, 314, 0)]);
    let events = machine.check("sched:sched_*:u", &[(2, 314, 0), (2, 315, 0)]);
    assert_eq!(events[1].to_string(), "sched:sched_wakeup:u");
    machine.check("s*:*_read/period=5/", &[(2, 700, 0)]);
}

#[test]
fn raw_events() {
    let check = |text: &str, kind: u32, config: u64| {
        let encoding = one(text).encoding;
        assert_eq!((encoding.kind, encoding.config), (kind, config), "{text}");
    };
    check("r01c2", 4, 0x1c2);
    check("rffffffffffffffff", 4, u64::MAX);
    check("r1a8:u", 4, 0x1a8);
    check("0:1", 0, 1);
    check("1:0x2:u", 1, 2);
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn errors_point_at_the_place() {
    let machine = Machine::intel();
    let check = |text: &str, expected: &str| {
        let reported = error(&machine.catalog, text);
        assert_eq!(reported, expected, "\n{reported}\n{expected}");
    };
    check(
        "instructions,cycels:u",
        "unknown event \"cycels\": did you mean cycles?\n  instructions,cycels:u\n               ^^^^^^",
    );
    check(
        "cycles:ux",
        "unknown modifier 'x': use u (user), k (kernel), h (hypervisor), G (guest), H (host), \
         I (not idle), p, pp, ppp or P (precise), D (pinned), e (exclusive), S (leader sampling)\n  \
         cycles:ux\n          ^",
    );
    check("", "an event's name is missing here\n  \n  ^");
    check(
        "cycles,",
        "an event's name is missing here\n  cycles,\n         ^",
    );
    check(
        "cycles,,cs",
        "an event's name is missing here\n  cycles,,cs\n         ^",
    );
    check(
        "cycles:",
        "expected here: a modifier\n  cycles:\n         ^",
    );
    check(
        "cycles instructions",
        "expected here: a comma or the end\n  cycles instructions\n         ^",
    );
    check(
        "{cycles,cs",
        "expected here: a comma or a closing brace\n  {cycles,cs\n            ^",
    );
    check(
        "cycles}",
        "expected here: a comma or the end\n  cycles}\n        ^",
    );
    check(
        "cpu/event=0x100/",
        "0x100 does not fit the 8 bits of event\n  cpu/event=0x100/\n      ^^^^^^^^^^^",
    );
    check(
        "cpu/evnt=1/",
        "unknown term \"evnt\": did you mean event?\n  cpu/evnt=1/\n      ^^^^^^",
    );
    check(
        "cpu/event=x/",
        "event takes a number, not \"x\"\n  cpu/event=x/\n      ^^^^^^^",
    );
    check(
        "cpu/event=1",
        "expected here: a comma or the closing slash\n  cpu/event=1\n             ^",
    );
    check(
        "cpux/event=1/",
        "this machine has no PMU \"cpux\": did you mean cpu?\n  cpux/event=1/\n  ^^^^",
    );
    check(
        "whatever/event=1/",
        "this machine has no PMU \"whatever\": there are broken, cpu, uncore_imc_0, uncore_imc_1\n  \
         whatever/event=1/\n  ^^^^^^^^",
    );
    check(
        "sched:sched_swich",
        "there is no tracepoint \"sched:sched_swich\": did you mean sched:sched_switch?\n  \
         sched:sched_swich\n        ^^^^^^^^^^^",
    );
    check(
        "shed:sched_switch",
        "there is no tracepoint \"shed:sched_switch\": did you mean sched?\n  shed:sched_switch\n  ^^^^^^^^^^^^^^^^^",
    );
    check(
        "cycles/period=1,freq=2/",
        "period and freq exclude each other\n  cycles/period=1,freq=2/\n                  ^^^^^^",
    );
    check(
        "{cs,faults:D}",
        "only the first event of a group can be pinned (D) or exclusive (e), or the group as a \
         whole\n  {cs,faults:D}\n      ^^^^^^^^",
    );
    check(
        "mem:0x1000/3",
        "\"3\" is not a length of breakpoints: use 1, 2, 4 or 8 bytes\n  mem:0x1000/3\n             ^",
    );
    check(
        "mem:0x1000:xw",
        "a breakpoint on code (x) cannot watch data (r, w) as well\n  mem:0x1000:xw\n             ^^",
    );
    check("mem:zzz", "\"zzz\" is not an address\n  mem:zzz\n      ^^^");
    // Carets count letters, not bytes.
    check(
        "ünknown",
        "unknown event \"ünknown\": `prof list` shows all events\n  ünknown\n  ^^^^^^^",
    );
    let parameter = error(&machine.catalog, "cpu/topdown-x/");
    assert!(parameter.contains("needs more terms"), "{parameter}");
}

#[test]
fn tracefs_that_cannot_be_read_is_said() {
    let machine = Machine::new(&[]);
    let reported = error(&machine.catalog, "sched:sched_switch");
    assert!(
        reported.contains("cannot look up tracepoints") && reported.contains("mode=755"),
        "{reported}"
    );
    let reported = error(&machine.catalog, "cycels:u");
    assert!(reported.contains("did you mean cycles?"), "{reported}");
}

#[test]
fn no_text_makes_the_parser_panic() {
    let machine = Machine::intel();
    let seeds = [
        "{cycles,instructions:u}:S,cpu/event=0x3c,umask=1,name='a b'/u,mem:0x1000/8:rw:u",
        "sched:*,uprobe:libc.so.6:malloc+0x0/period=3/,uretprobe:'/x:y':'a,b',r1a8,1:2:k",
    ];
    let mut tried = 0;
    for seed in seeds {
        for at in 0..=seed.len() {
            let _ = machine.catalog.parse(&seed[..at]);
            for extra in ["", ":", "/", ",", "{", "}", "+", "'", "=", "ü", "*"] {
                let text = format!(
                    "{}{extra}{}",
                    &seed[..at],
                    &seed[(at + 1).min(seed.len())..]
                );
                if let Err(error) = machine.catalog.parse(&text) {
                    assert!(
                        text.is_char_boundary(error.place.start)
                            && text.is_char_boundary(error.place.end)
                    );
                    assert!(!error.to_string().is_empty());
                }
                tried += 1;
            }
        }
    }
    assert!(tried > 1000);
    assert!(machine.path().exists());
}
