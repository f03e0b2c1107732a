//! Snapshots as values.

use prof_counters::{Count, Counter, Group, Snapshot, Target, event};

use super::{check_faults, touch_pages};

#[test]
fn snapshots_are_values() {
    let mut group = Group::new(Target::ThisThread).unwrap();
    let clock = group.add(&event("task-clock:u").unwrap()).unwrap();
    let faults = group.add(&event("page-faults:u").unwrap()).unwrap();
    group.enable().unwrap();
    let snapshots: Vec<Snapshot> = (0..8)
        .map(|_| {
            touch_pages();
            group.read().unwrap()
        })
        .collect();
    for pair in snapshots.windows(2) {
        let difference = pair[1].since(&pair[0]).unwrap();
        check_faults(difference[&faults].value, 1);
        assert_eq!(difference.timestamp(), pair[1].timestamp());
        assert_eq!(
            difference.elapsed(),
            pair[1].timestamp() - pair[0].timestamp()
        );
        let mut sum = difference.clone();
        sum.add(&pair[0]).unwrap();
        assert_eq!(sum, pair[1]);
        // The other way round it wraps, and back.
        let mut back = pair[0].since(&pair[1]).unwrap();
        back.add(&pair[1]).unwrap();
        assert_eq!(back[&clock], pair[0][&clock]);
    }
    let mut copy = snapshots[3].clone();
    assert_eq!(copy, snapshots[3]);
    let count = Count {
        value: 7,
        enabled: 8,
        running: 9,
    };
    copy.set(&faults, count).unwrap();
    assert_eq!(copy.get(&faults), Some(count));
    assert_eq!(copy.get(&clock), snapshots[3].get(&clock));
    assert_ne!(copy, snapshots[3]);
    copy.zero();
    assert_eq!(
        (copy[&faults], copy[&clock], copy.elapsed()),
        (Count::default(), Count::default(), 0)
    );
}

#[test]
fn snapshots_of_different_sets_do_not_mix() {
    let mut groups = [0, 1].map(|_| Group::new(Target::ThisThread).unwrap());
    let counters: Vec<Counter> = groups
        .iter_mut()
        .map(|group| group.add(&event("page-faults:u").unwrap()).unwrap())
        .collect();
    let [mut first, second] = groups.map(|mut group| group.read().unwrap());
    let before = first.clone();
    let error = first.subtract(&second).unwrap_err();
    assert!(error.to_string().contains("different sets"), "{error}");
    assert!(first.add(&second).is_err());
    assert!(first.set(&counters[1], Count::default()).is_err());
    assert_eq!(first.get(&counters[1]), None);
    assert_eq!(first, before);
    assert!(std::panic::catch_unwind(|| before[&counters[1]]).is_err());
}
