//! Features of hardware counters: reads in user space, multiplexing, too few counters.

use prof_counters::{
    Count, Counter, Group, Inherit, OpenError, Options, ReadError, ReaderError, Target, event,
};

use super::has_hardware;

#[test]
fn a_reader_agrees_with_read() {
    for name in ["task-clock:u", "page-faults:u"] {
        let counter = Counter::new(&event(name).unwrap(), Target::ThisThread).unwrap();
        counter.enable().unwrap();
        let reader = counter.reader().unwrap();
        assert_eq!(reader.direct(), None);
        let before = counter.read().unwrap();
        let between = reader.read().unwrap();
        let after = counter.read().unwrap();
        assert!(before.value <= between.value && between.value <= after.value);
    }
    let options = Options {
        inherit: Inherit::Threads,
        ..Options::default()
    };
    let inherited = Counter::with_options(
        &event("page-faults:u").unwrap(),
        Target::ThisThread,
        options,
    )
    .unwrap();
    assert!(matches!(inherited.reader(), Err(ReaderError::Inherited)));
}

#[inline(never)]
fn work(rounds: u64) -> u64 {
    (0..rounds).fold(1, |sum, round| std::hint::black_box(sum ^ round))
}

#[test]
fn hardware_is_read_in_user_space() {
    if !has_hardware() {
        return;
    }
    let mut group = Group::new(Target::ThisThread).unwrap();
    let instructions = group.add(&event("instructions:u").unwrap()).unwrap();
    group.enable().unwrap();
    let reader = instructions.reader().unwrap();
    if reader.direct().is_none() {
        eprintln!("skipped: the kernel does not allow rdpmc");
        return;
    }
    let mut last = 0;
    for rounds in 0..1000 {
        work(rounds);
        let before = instructions.read().unwrap().value;
        let direct = reader.direct().unwrap().value;
        let after = instructions.read().unwrap().value;
        assert!(
            last <= before && before <= direct && direct <= after,
            "{last} {before} {direct} {after}"
        );
        last = after;
    }
    group.disable().unwrap();
    let stopped = instructions.read().unwrap().value;
    assert_eq!(reader.read().unwrap().value, stopped);
}

#[test]
fn instructions_grow_with_the_work() {
    if !has_hardware() {
        return;
    }
    let counter = Counter::new(&event("instructions:u").unwrap(), Target::ThisThread).unwrap();
    let cost = |rounds: u64| {
        counter.reset().unwrap();
        counter.enable().unwrap();
        work(rounds);
        counter.disable().unwrap();
        counter.read().unwrap().value as f64
    };
    cost(1000);
    let (once, tenfold) = (cost(1_000_000), cost(10_000_000));
    assert!((9.9..10.1).contains(&(tenfold / once)), "{once} {tenfold}");
}

#[test]
fn a_group_that_is_too_large_is_said() {
    if !has_hardware() {
        return;
    }
    let mut group = Group::new(Target::ThisThread).unwrap();
    let mut counters = Vec::new();
    let error = loop {
        match group.add(&event("instructions:u").unwrap()) {
            Ok(counter) => counters.push(counter),
            Err(error) => break error,
        }
        assert!(counters.len() < 100);
    };
    assert!(matches!(error, OpenError::GroupFull { .. }), "{error}");
    assert!(
        error
            .to_string()
            .contains(&format!("a group with {} other events", counters.len())),
        "{error}"
    );
    group.enable().unwrap();
    // Some virtual machines provide fewer counters than they claim: the first ones always count,
    // once other processes that count on this machine are done.
    let counts = (0..100_000).any(|_| {
        work(100_000);
        group.read().unwrap()[&counters[0]].value > 100_000
    });
    assert!(counts, "{:?}", group.read().unwrap());
}

#[test]
fn counts_that_took_turns_are_scaled() {
    if !has_hardware() {
        return;
    }
    let counters: Vec<Counter> = (0..24)
        .map(|_| Counter::new(&event("instructions:u").unwrap(), Target::ThisThread).unwrap())
        .collect();
    for counter in &counters {
        counter.enable().unwrap();
    }
    let clock = Counter::new(&event("task-clock:u").unwrap(), Target::ThisThread).unwrap();
    clock.enable().unwrap();
    // The kernel takes turns every few milliseconds.
    while clock.read().unwrap().value < 200_000_000 {
        work(100_000);
    }
    let counts: Vec<Count> = counters
        .iter()
        .map(|counter| counter.read().unwrap())
        .collect();
    let partial: Vec<&Count> = counts.iter().filter(|count| count.is_partial()).collect();
    assert!(!partial.is_empty());
    let estimates: Vec<u64> = counts.iter().filter_map(Count::scaled).collect();
    let (least, most) = (
        estimates.iter().min().unwrap(),
        estimates.iter().max().unwrap(),
    );
    // All count the same, so the estimates are similar; not more so, because some virtual machines
    // provide fewer counters than they claim.
    assert!(*least as f64 > 0.2 * *most as f64, "{least} {most}");
}

#[test]
fn a_pinned_group_without_room_is_an_error_not_zero() {
    if !has_hardware() {
        return;
    }
    let pinned = Options {
        pinned: true,
        ..Options::default()
    };
    let mut groups = Vec::new();
    let mut counters = Vec::new();
    let mut failed = None;
    for _ in 0..40 {
        let mut group = Group::with_options(Target::ThisThread, pinned).unwrap();
        counters.push(group.add(&event("instructions:u").unwrap()).unwrap());
        group.enable().unwrap();
        work(1000);
        let result = group.read();
        groups.push(group);
        if let Err(error) = result {
            failed = Some(error);
            break;
        }
    }
    assert_eq!(failed, Some(ReadError::NotScheduled));
    let mut first = groups.remove(0);
    assert!(first.read().unwrap()[&counters[0]].value > 0);
    // Once it fits again, enabling it makes it count.
    let mut last = groups.pop().unwrap();
    let counter = counters.pop().unwrap();
    drop((first, groups, counters));
    last.enable().unwrap();
    work(1000);
    assert!(last.read().unwrap()[&counter].value > 0);
    let alone = Counter::with_options(
        &event("instructions:u").unwrap(),
        Target::ThisThread,
        pinned,
    )
    .unwrap();
    alone.enable().unwrap();
    assert!(alone.read().is_ok());
}
