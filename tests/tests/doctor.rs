//! `prof doctor` is right for all users and on all machines.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use prof_tests::{Need, Outcome, PERF_EVENT_OPEN, PTRACE, Session, allowed, needs, refusing};
use serde_json::Value;

const EPERM: i32 = 1;
const EACCES: i32 = 13;
const ENOSYS: i32 = 38;

/// The results of the doctor, by the names of its checks.
struct Diagnosis {
    outcome: Outcome,
    can_record: bool,
    checks: BTreeMap<String, Value>,
}

fn diagnose(command: Command) -> Diagnosis {
    let outcome = Outcome::of(command);
    let report: Value = serde_json::from_str(&outcome.stdout).expect("JSON");
    assert_eq!(report["format"], "prof-doctor", "{outcome}");
    assert_eq!(report["version"], 1, "{outcome}");
    let can_record = report["can_record"].as_bool().expect("a bool");
    outcome.assert_code(i32::from(!can_record));
    let sections = report["sections"].as_array().expect("sections");
    let checks = sections.iter().flat_map(|section| {
        let checks = section["checks"].as_array().expect("checks");
        checks
            .iter()
            .map(|check| (check["name"].as_str().unwrap().to_owned(), check.clone()))
    });
    Diagnosis {
        checks: checks.collect(),
        can_record,
        outcome,
    }
}

impl Diagnosis {
    #[track_caller]
    fn assert(&self, name: &str, status: &str, words: &[&str]) {
        let check = &self.checks.get(name).unwrap_or(&Value::Null);
        assert_eq!(check["status"], status, "{check}");
        let text = check.to_string();
        for word in words {
            assert!(text.contains(word), "nothing of {word:?} in {text}");
        }
        // A missing thing has a cost.
        assert_eq!(check["cost"].is_null(), status == "ok", "{check}");
    }
}

fn setting(name: &str) -> i64 {
    let text = std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap_or_default();
    text.trim().parse().unwrap_or(i64::MAX)
}

fn words(words: &[&str]) -> Vec<OsString> {
    words.iter().map(OsString::from).collect()
}

#[test]
fn root_may_do_everything() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    let found = diagnose(session.prof(["doctor", "--json"]));
    assert!(found.can_record, "{}", found.outcome);
    for name in [
        "own-programs",
        "kernel-code",
        "all-cpus",
        "ring-buffers",
        "reader-priority",
    ] {
        found.assert(name, "ok", &[]);
    }
    found.assert("capabilities", "ok", &["CAP_PERFMON", "CAP_SYS_PTRACE"]);
    found.assert("other-processes", "ok", &["every user"]);
    found.assert("kernel-symbols", "ok", &[]);
    found.assert("seccomp", "ok", &["not filtered"]);
}

#[test]
fn a_plain_user_gets_the_remedy() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling])
        || setting("perf_event_paranoid") != 2
    {
        return;
    }
    let session = Session::plain_user();
    let found = diagnose(session.prof(["doctor", "--json"]));
    assert!(found.can_record, "{}", found.outcome);
    found.assert("own-programs", "ok", &[]);
    found.assert(
        "kernel-code",
        "no",
        &["sysctl kernel.perf_event_paranoid=1"],
    );
    found.assert("all-cpus", "no", &["sysctl kernel.perf_event_paranoid=0"]);
    found.assert("uprobes", "no", &["sudo prof record"]);
    found.assert("reader-priority", "limited", &["setcap cap_sys_nice"]);
    found.assert("other-processes", "limited", &[]);
    found.assert("capabilities", "ok", &["none"]);
}

/// As in rootless containers: uid 0 and all capabilities, but none outside.
#[test]
fn root_of_a_user_namespace_is_not_taken_for_root() {
    let needed = [Need::Root, Need::Tool("setpriv"), Need::PlainSampling];
    if !needs(&needed) || setting("perf_event_paranoid") != 2 {
        return;
    }
    let session = Session::plain_user();
    let namespace = ["unshare", "--user", "--map-root-user"];
    if !allowed(session.command(Path::new("env"), [&namespace[..], &["true"]].concat())) {
        return;
    }
    let launcher = words(&namespace);
    let found = diagnose(session.prof_under(&launcher, ["doctor", "--json"]));
    assert!(found.can_record, "{}", found.outcome);
    found.assert("own-programs", "ok", &[]);
    let setting = "sudo sysctl kernel.perf_event_paranoid=1   (on the host)";
    found.assert("kernel-code", "no", &["perf_event_paranoid is 2", setting]);
    found.assert("all-cpus", "no", &["perf_event_paranoid=0", "on the host"]);
    found.assert("uprobes", "no", &["need root", "on the host"]);
    found.assert("other-processes", "limited", &["this user namespace"]);
    found.assert("capabilities", "limited", &["in a user namespace"]);
    found.assert("ring-buffers", "ok", &["hard limit on locked memory"]);
    let refused = Outcome::of(session.prof_under(&launcher, ["record", "-a", "-d", "1"]));
    refused.assert_refused(&["perf_event_paranoid is 2", "-a needs root of the host"]);
    assert!(!refused.stderr.contains("lockdown"), "{refused}");
}

/// Sandboxes show some of /proc only.
#[test]
fn hidden_settings_are_unknown() {
    if !needs(&[Need::Root, Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let hide = "mount -t tmpfs none /proc/sys && exec \"$0\" \"$@\"";
    let launcher = words(&["unshare", "--mount", "sh", "-c", hide]);
    let found = diagnose(session.prof_under(&launcher, ["doctor", "--json"]));
    for name in ["kernel-chains", "sample-rate"] {
        found.assert(name, "limited", &["unknown", "the usual value"]);
    }
}

#[test]
fn a_seccomp_filter_is_named_for_any_errno() {
    let session = Session::new();
    for errno in [EPERM, EACCES, ENOSYS] {
        let launcher = refusing(&session, errno, &[PERF_EVENT_OPEN]);
        let found = diagnose(session.prof_under(&launcher, ["doctor", "--json"]));
        assert!(found.can_record, "{}", found.outcome);
        let words = ["by stopping threads", "seccomp filter"];
        found.assert("own-programs", "limited", &words);
        found.assert("seccomp", "ok", &["are filtered"]);
        for name in ["ring-buffers", "hardware-counters", "branch-stacks"] {
            found.assert(name, "no", &["perf_event_open is refused", "own-programs"]);
        }
        let text = Outcome::of(session.prof_under(&launcher, ["doctor"]));
        assert!(text.stdout.contains("seccomp filter"), "{text}");
        assert!(!text.stdout.contains("perf_event_paranoid="), "{text}");
    }
}

#[test]
fn without_events_and_without_ptrace_nothing_can_be_recorded() {
    let session = Session::new();
    let launcher = refusing(&session, EPERM, &[PERF_EVENT_OPEN, PTRACE]);
    let found = diagnose(session.prof_under(&launcher, ["doctor", "--json"]));
    assert!(!found.can_record, "{}", found.outcome);
    found.assert("own-programs", "no", &["seccomp filter", "ptrace:"]);
}

#[test]
fn limits_are_those_of_the_process() {
    if !needs(&[
        Need::Root,
        Need::Tool("setpriv"),
        Need::Tool("prlimit"),
        Need::PlainSampling,
    ]) {
        return;
    }
    let session = Session::plain_user();
    let launcher = words(&["prlimit", "--nofile=64:64", "--memlock=0:0", "--nice=0:0"]);
    let found = diagnose(session.prof_under(&launcher, ["doctor", "--json"]));
    found.assert("open-files", "limited", &["ulimit", "64:"]);
    // The default limit of locked memory is too small for a good ring and the one for exit
    // counters.
    found.assert(
        "ring-buffers",
        "limited",
        &["hard limit on locked memory: 0 KiB", "perf_event_mlock_kb"],
    );
    found.assert("reader-priority", "limited", &[]);
}

#[test]
fn debuginfod_servers_come_from_the_environment() {
    let session = Session::new();
    let mut command = session.prof(["doctor", "--json"]);
    command
        .env("DEBUGINFOD_URLS", "https://example.invalid/")
        .env("HOME", "/root");
    diagnose(command).assert("debuginfod", "ok", &["https://example.invalid/"]);
    let mut command = session.prof(["doctor", "--json"]);
    command.env_remove("DEBUGINFOD_URLS");
    diagnose(command).assert("debuginfod", "limited", &["export DEBUGINFOD_URLS"]);
}

#[test]
fn the_text_has_each_check() {
    let session = Session::new();
    let found = diagnose(session.prof(["doctor", "--json"]));
    let text = Outcome::of(session.prof(["doctor"]));
    // The kernel itself lowers the rate.
    let lasting = found
        .checks
        .iter()
        .filter(|(name, _)| *name != "sample-rate");
    for (name, check) in lasting {
        let line = text.stdout.lines().find(|line| {
            let mut fields = line.split_whitespace();
            fields.next() == check["status"].as_str() && fields.next() == Some(name)
        });
        assert!(line.is_some(), "no line for {name}: {text}");
    }
}
