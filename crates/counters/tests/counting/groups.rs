//! Groups and their members.

use std::fs::read_link;
use std::os::fd::OwnedFd;
use std::path::Path;

use prof_counters::{Count, Group, Target, event};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};

use super::{check_faults, touch_pages};

#[test]
fn a_group_reads_its_members_by_counter() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let clock = group.add(&event("task-clock:u").unwrap()).unwrap();
    let faults = group.add(&event("page-faults:u").unwrap()).unwrap();
    let minor = group.add(&event("minor-faults:u").unwrap()).unwrap();
    assert_eq!(group.len(), 3);
    touch_pages();
    assert_eq!(group.read().unwrap()[&faults], Count::default());
    group.enable().unwrap();
    touch_pages();
    group.disable().unwrap();
    let snapshot = group.read().unwrap();
    check_faults(snapshot[&faults].value, 1);
    assert_eq!(snapshot[&minor].value, snapshot[&faults].value);
    assert!(snapshot[&clock].value > 0);
    assert_eq!(snapshot[&clock].enabled, snapshot[&clock].running);
    assert!(snapshot[&clock].value <= snapshot[&clock].enabled);
    assert_eq!(faults.read().unwrap().value, snapshot[&faults].value);
    touch_pages();
    let later = group.read().unwrap();
    assert_eq!(later.since(&snapshot).unwrap()[&faults], Count::default());
    assert!(later.timestamp() > snapshot.timestamp());
    group.reset().unwrap();
    let zero = group.read().unwrap();
    assert!(
        zero.iter().all(|(_, count)| count == Count::default()),
        "{zero:?}"
    );
    assert_eq!(faults.read(), Ok(Count::default()));
}

#[test]
fn a_reset_of_one_member_is_its_own() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let one = group.add(&event("page-faults:u").unwrap()).unwrap();
    let other = group.add(&event("minor-faults:u").unwrap()).unwrap();
    group.enable().unwrap();
    touch_pages();
    group.disable().unwrap();
    one.reset().unwrap();
    let snapshot = group.read().unwrap();
    assert_eq!(snapshot[&one], Count::default());
    check_faults(snapshot[&other].value, 1);
}

#[test]
fn a_member_that_is_dropped_leaves() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let first = group.add(&event("page-faults:u").unwrap()).unwrap();
    let second = group.add(&event("minor-faults:u").unwrap()).unwrap();
    group.enable().unwrap();
    let before = group.read().unwrap();
    let id = first.id();
    drop(first);
    touch_pages();
    let after = group.read().unwrap();
    assert_eq!(group.len(), 1);
    check_faults(after[&second].value, 1);
    assert_eq!(after.by_id(id), None);
    assert!(before.by_id(id).is_some());
    assert!(after.since(&before).is_err());
    let third = group.add(&event("page-faults:u").unwrap()).unwrap();
    touch_pages();
    let last = group.read().unwrap();
    check_faults(last[&second].value, 2);
    check_faults(last[&third].value, 1);
    drop((second, third));
    assert!(group.is_empty());
    assert_eq!(group.read().unwrap().iter().count(), 0);
}

#[test]
fn members_outlive_their_group() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let first = group.add(&event("page-faults:u").unwrap()).unwrap();
    let second = group.add(&event("minor-faults:u").unwrap()).unwrap();
    group.enable().unwrap();
    touch_pages();
    drop(group);
    touch_pages();
    check_faults(first.read().unwrap().value, 2);
    second.disable().unwrap();
    touch_pages();
    check_faults(first.read().unwrap().value, 3);
    check_faults(second.read().unwrap().value, 2);

    let mut disabled = Group::new(Target::ThisThread).unwrap();
    let member = disabled.add(&event("page-faults:u").unwrap()).unwrap();
    drop(disabled);
    touch_pages();
    assert_eq!(member.read().unwrap().value, 0);
    member.enable().unwrap();
    touch_pages();
    check_faults(member.read().unwrap().value, 1);
}

/// As a child does between fork and exec.
#[test]
fn members_count_while_somebody_keeps_the_leader_of_their_group() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let member = group.add(&event("page-faults:u").unwrap()).unwrap();
    let kept = keep_all_events();
    drop(group);
    touch_pages();
    assert_eq!(member.read().unwrap().value, 0);
    member.enable().unwrap();
    touch_pages();
    check_faults(member.read().unwrap().value, 1);
    drop(kept);
    touch_pages();
    check_faults(member.read().unwrap().value, 2);
}

/// Duplicates of the descriptors of all events of this process.
fn keep_all_events() -> Vec<OwnedFd> {
    let this = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let descriptors = std::fs::read_dir("/proc/self/fd").unwrap();
    let events = descriptors.filter_map(|descriptor| {
        let descriptor = descriptor.unwrap();
        let is_event = read_link(descriptor.path())
            .is_ok_and(|link| link == Path::new("anon_inode:[perf_event]"));
        let number = descriptor.file_name().to_str()?.parse().ok()?;
        // Other tests close theirs in the meantime.
        is_event.then(|| pidfd_getfd(&this, number, PidfdGetfdFlags::empty()).ok())?
    });
    events.collect()
}

#[test]
fn late_members_count_from_then_on() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let early = group.add(&event("page-faults:u").unwrap()).unwrap();
    group.enable().unwrap();
    touch_pages();
    let late = group.add(&event("page-faults:u").unwrap()).unwrap();
    touch_pages();
    let snapshot = group.read().unwrap();
    check_faults(snapshot[&early].value, 2);
    check_faults(snapshot[&late].value, 1);
    assert!(snapshot[&late].enabled < snapshot[&early].enabled);
}
