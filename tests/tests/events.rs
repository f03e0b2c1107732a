//! Recordings by any event: probes, page faults, several at once, groups; weights as perf reads
//! them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_tests::{Need, Outcome, Program, Session, Variant, needs};

const NEEDS: &[Need] = &[Need::Root, Need::Tool("perf")];

fn calls() -> PathBuf {
    Program::c(&["calls.c"]).build()
}

/// Number of samples and sum of periods by event, as perf reads them.
fn weights(file: &Path) -> BTreeMap<String, (u64, u64)> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-F", "event,period", "-i"]).arg(file);
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    let mut weights = BTreeMap::<String, (u64, u64)>::new();
    // `  PERIOD   EVENT: `
    for line in outcome.stdout.lines().filter(|line| line.ends_with(": ")) {
        let mut words = line.split_whitespace();
        let period: u64 = words.next().and_then(|word| word.parse().ok()).unwrap();
        let event = words.next().unwrap().trim_end_matches(':').to_owned();
        let (samples, sum) = weights.entry(event).or_default();
        (*samples, *sum) = (*samples + 1, *sum + period);
    }
    weights
}

#[test]
fn several_events_each_with_its_own_rate_and_weight() {
    if !needs(NEEDS) || !needs(&[Need::Tool("taskset")]) {
        return;
    }
    let session = Session::new();
    let calls = calls();
    let probe = format!("uprobe:{}:hit/name=hits/", calls.display());
    let tenth = format!("uprobe:{}:hit/period=10,name=tenth/", calls.display());
    let events = format!("cpu-clock/freq=1999/,page-faults/period=100,name=faults/u,{tenth}");
    // Each CPU counts to ten for itself.
    let one_cpu = ["taskset", "--cpu-list", "0"];
    let command = [&one_cpu[..], &[calls.to_str().unwrap(), "400", "200"]].concat();
    let recorded = session.record(&["-e", &events, "-e", &probe], &command);
    let weights = weights(&recorded.file);
    let of = |event: &str| weights.get(event).copied().unwrap_or_default();
    assert_eq!(of("tenth"), (40, 400), "{weights:?}");
    assert_eq!(of("hits"), (400, 400), "{weights:?}");
    let (samples, faults) = of("faults:u");
    assert_eq!(faults, samples * 100, "{weights:?}");
    assert!((400..800).contains(&faults), "{weights:?}");
    assert!(of("cpu-clock/freq=1999/").0 > 200, "{weights:?}");
}

/// The kernel says the next period in each sample, which may be much longer than the last one.
#[test]
fn page_faults_at_a_frequency_are_never_weighed_as_more_than_there_were() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let calls = session.install(&calls());
    let calls = calls.to_str().unwrap();
    let together = format!("{calls} 3000 0 & {calls} 3000 0 & {calls} 3000 0; wait");
    // The faults after the last sample of each process are in no sample, and may be many.
    let long = format!("for run in 1 2 3 4 5; do {calls} 60000 0; done");
    let long = ["sh", "-c", &long];
    let burst = [calls, "300", "0"];
    for command in [&burst[..], &long, &["sh", "-c", &together]] {
        let recorded = session.record(&["-e", "page-faults:u", "-F", "999"], command);
        let report = recorded.report(&["--json", "-"]).stdout;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let coverage = report["quality"]["coverage"].as_array().unwrap();
        let faults: u64 = coverage.iter().filter_map(|one| one["used"].as_u64()).sum();
        let weights = weights(&recorded.file);
        let (samples, sum) = weights["page-faults:u"];
        assert!((samples..=faults).contains(&sum), "{weights:?} of {faults}");
        assert!(
            command != long || sum > faults * 3 / 4,
            "{weights:?} of {faults}"
        );
    }
}

#[test]
fn two_events_of_one_name_are_told_apart() {
    let session = Session::new();
    let twice = ["-e", "cpu-clock:u", "-e", "cpu-clock:u"];
    let recorded = session.record(&twice, &[calls().to_str().unwrap(), "4", "200"]);
    let shown = |options: &[&str], note: &str| -> u64 {
        let outcome = recorded.report(options);
        assert!(outcome.stdout.contains(note), "{outcome}");
        let count = outcome.stdout.split_once(' ').unwrap().0;
        count.replace(',', "").parse().unwrap()
    };
    let first = "this shows cpu-clock:u; --event NAME shows cpu-clock:u#2 (";
    let second = "this shows cpu-clock:u#2; --event NAME shows cpu-clock:u (";
    let counts = shown(&[], first) + shown(&["--event", "cpu-clock:u#2"], second);
    assert_eq!(counts, recorded.samples());
}

#[test]
fn each_hit_of_a_probe_has_its_stack() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let calls = calls();
    let probe = format!("uprobe:{}:hit", calls.display());
    let recorded = session.record(&["-e", &probe], &[calls.to_str().unwrap(), "500"]);
    let stacks = recorded.physical_stacks();
    assert_eq!(stacks.total(), 500);
    stacks.assert_hottest(&["main", "caller", "hit"]);
    stacks.assert_whole(1.0);
}

#[test]
fn a_group_is_sampled_by_its_leader() {
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let calls = calls();
    let group = "{task-clock,page-faults,minor-faults,major-faults}:uS";
    // What is counted on a CPU before a thread moves on is in no sample, if it had none there.
    let one_cpu = ["taskset", "--cpu-list", "0"];
    let command = [&one_cpu[..], &[calls.to_str().unwrap(), "1000", "200"]].concat();
    let recorded = session.record(&["-e", group], &command);
    // perf takes the differences of the counts that the leader's samples hold.
    let weights = weights(&recorded.file);
    let of = |event: &str| weights.get(event).copied().unwrap_or_default();
    let (samples, time) = of("task-clock:uS");
    assert!(samples > 100 && time > 100_000_000, "{weights:?}");
    let (_, faults) = of("page-faults:uS");
    let (_, minor) = of("minor-faults:uS");
    let (_, major) = of("major-faults:uS");
    assert!((1000..1600).contains(&faults), "{weights:?}");
    // The kernel counts a fault as it begins, and which kind it was as it ends: the last sample of
    // each CPU may be in between, and the thread may have moved on before that end.
    let cpus = std::thread::available_parallelism().unwrap().get() as u64;
    let difference = faults.abs_diff(minor + major);
    assert!(difference <= cpus, "{weights:?}");
}

#[test]
fn without_an_event_cycles_count_on_real_machines_and_the_clock_on_virtual_ones() {
    if !needs(&[Need::HardwareCounters]) {
        return;
    }
    let session = Session::new();
    let calls = calls();
    let sampled_by = |options: &[&str]| {
        let recorded = session.record(options, &[calls.to_str().unwrap(), "400", "200"]);
        let report = recorded.report(&["--json", "-"]).stdout;
        let report: serde_json::Value = serde_json::from_str(&report).unwrap();
        let event = report["event"]["name"].as_str().unwrap().to_owned();
        let cycles = recorded.outcome.stderr.contains("-e cycles asks for them");
        let fallbacks = report["quality"]["fallbacks"].as_array().unwrap();
        let kinds = fallbacks.iter().map(|fallback| fallback["kind"].as_str());
        assert_eq!(
            kinds.flatten().any(|kind| kind == "virtual-machine"),
            cycles
        );
        (event, cycles)
    };
    let cycles = || ("cycles".to_owned(), false);
    assert_eq!(sampled_by(&["-e", "cycles"]), cycles());
    assert_eq!(sampled_by(&["-c", "1000000"]), cycles());
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap();
    let usual = match cpu.contains(" hypervisor") {
        true => ("cpu-clock".to_owned(), true),
        false => cycles(),
    };
    assert_eq!(sampled_by(&[]), usual);
}

#[test]
fn probes_forbidden_to_plain_users_are_reported() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let refused = |event: &str, words: &[&str]| {
        let outcome = session.run(["record", "-e", event, "--", "echo", "started"]);
        outcome.assert_refused(words);
        assert_eq!(outcome.stdout, "");
    };
    refused("uprobe:libc.so.6:malloc", &["need root", "CAP_SYS_ADMIN"]);
    refused("context-switches", &["happens in the kernel"]);
    refused("sched:sched_switch", &["tracefs is for root only"]);
    let calls = session.install(&calls());
    let recorded = session.record(&["-e", "page-faults", "-c", "1"], &[calls]);
    recorded
        .outcome
        .assert_says(&["kernel code is not sampled", "verdict: "]);
}

#[test]
fn unknown_events_are_reported_before_anything_runs() {
    say_what_is_wrong_with_events(&Session::new());
    if needs(&[Need::Root, Need::Tool("setpriv")]) {
        say_what_is_wrong_with_events(&Session::plain_user());
    }
}

fn say_what_is_wrong_with_events(session: &Session) {
    session.install(&calls());
    let stripped = Program::c(&["calls.c"]).build_as(Variant::STRIPPED);
    std::fs::copy(stripped, session.path("stripped")).unwrap();
    for (event, words) in [
        ("cyclse", &["unknown event", "did you mean cycles?"][..]),
        ("cycles:q", &["unknown modifier 'q'", "u (user)"]),
        ("cycles/period=0/", &["period", "above zero"]),
        ("nopmu/event=1/", &["no PMU \"nopmu\"", "there are"]),
        ("{cpu-clock,task-clock", &["closing brace"]),
        ("uprobe:./gone:main", &["no file \"./gone\""]),
        (
            "uprobe:./calls:mian",
            &["no function \"mian\"", "did you mean main?"],
        ),
        ("uprobe:./calls:main+0x100000", &["beyond it"]),
        ("uprobe:./calls:0x10", &["outside the code"]),
        (
            "uprobe:./stripped:main",
            &["is stripped", "install its debug symbols"],
        ),
    ] {
        for tool in ["record", "stat"] {
            let outcome = session.run([tool, "-e", event, "--", "echo", "started"]);
            outcome.assert_refused(words);
            assert_eq!(outcome.stdout, "", "{event}: the command must not have run");
        }
    }
}

#[test]
fn a_group_that_the_cpu_cannot_count_at_once_is_said() {
    let session = Session::new();
    let group = format!("{{{}cycles}}:S", "instructions,".repeat(100));
    for tool in ["record", "stat"] {
        let outcome = session.run([tool, "-e", &group, "--", "echo", "started"]);
        outcome.assert_refused(&[]);
        // The latter two where there is no PMU.
        let reasons = [
            "too few counters",
            "does not have this event",
            "no hardware counters",
        ];
        let said = reasons.iter().any(|reason| outcome.stderr.contains(reason));
        assert!(said, "{outcome}");
        assert_eq!(outcome.stdout, "");
    }
}

#[test]
fn events_that_cannot_be_sampled_are_counted_beside_sampled_ones() {
    if !Path::new("/sys/bus/event_source/devices/msr/events/tsc").exists() {
        println!("!!! this machine has no counter of time stamps (msr/tsc/)");
        return;
    }
    if !needs(NEEDS) {
        return;
    }
    let session = Session::new();
    let calls = calls();
    let command = [calls.to_str().unwrap(), "1000", "200"];
    let refused = session.run(["record", "-e", "msr/tsc/", "--", command[0]]);
    refused.assert_refused(&["prof stat -e msr/tsc/"]);
    // As perf opens it: without excluding guests.
    let recorded = session.record(&["-e", "{cpu-clock,msr/tsc/}:S"], &command);
    assert!(
        !recorded.outcome.stderr.contains("of its work"),
        "{}",
        recorded.outcome
    );
}
