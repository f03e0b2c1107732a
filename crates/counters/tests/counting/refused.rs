//! Events and targets that cannot be counted.

use prof_counters::{Counter, Group, OpenError, Target, event};

use super::is_root;

#[test]
fn missing_targets_have_their_own_errors() {
    let event = event("page-faults:u").unwrap();
    let open = |target: Target| Counter::new(&event, target).unwrap_err();
    assert!(matches!(
        open(Target::Process(i32::MAX)),
        OpenError::NoProcess(i32::MAX)
    ));
    assert!(matches!(
        open(Target::Process(-1)),
        OpenError::NoProcess(-1)
    ));
    assert!(matches!(open(Target::Thread(0)), OpenError::NoThread(0)));
    assert!(matches!(
        open(Target::Cpu(100_000)),
        OpenError::NoCpu(100_000)
    ));
    let missing = open(Target::Cgroup("no/such/cgroup".into()));
    assert!(matches!(missing, OpenError::Cgroup(_)), "{missing}");
    assert!(matches!(
        Group::new(Target::Process(i32::MAX)),
        Err(OpenError::NoProcess(_))
    ));
}

#[test]
fn events_forbidden_to_users_are_reported() {
    if is_root() {
        eprintln!("skipped: root may");
        return;
    }
    let refused = |name: &str, target: Target| {
        Counter::new(&event(name).unwrap(), target)
            .unwrap_err()
            .to_string()
    };
    let text = refused("page-faults", Target::ThisThread);
    assert!(
        text.contains("cannot count page-faults") && text.contains("add :u"),
        "{text}"
    );
    let text = refused("page-faults:u", Target::Cpu(0));
    assert!(text.contains("perf_event_paranoid=0"), "{text}");
    let text = refused("page-faults:u", Target::Process(1));
    assert!(
        text.contains("another user") || text.contains("no process"),
        "{text}"
    );
    let text = refused("uprobe:libc.so.6:malloc", Target::ThisThread);
    assert!(text.contains("need root"), "{text}");
}
