//! Counters, groups and snapshots on this machine's kernel. Software events carry the tests, so
//! that they run everywhere; what needs hardware counters or root is skipped without, and says so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stderr, reason = "what is skipped is said")]

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use prof_counters::{
    Count, Counter, Group, Inherit, OpenError, Options, PlaceName, ReadError, ReaderError,
    Snapshot, Target, event,
};

const PAGES: u64 = 128;

/// Makes so many page faults, and few others.
#[inline(never)]
fn touch_pages() {
    let mut memory = memmap2::MmapMut::map_anon(PAGES as usize * 4096).unwrap();
    memory.advise(memmap2::Advice::NoHugePage).unwrap();
    for page in memory.chunks_mut(4096) {
        page[0] = 1;
    }
}

fn check_faults(count: u64, times: u64) {
    let expected = PAGES * times;
    assert!(
        (expected..=expected + 40 * times).contains(&count),
        "{count} faults for {expected} pages"
    );
}

fn faults(target: Target) -> Counter {
    Counter::new(&event("page-faults:u").unwrap(), target).unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn has_hardware() -> bool {
    let has = Counter::new(&event("cycles:u").unwrap(), Target::ThisThread).is_ok();
    if !has {
        eprintln!("skipped: no hardware counters here");
    }
    has
}

#[test]
fn a_counter_counts_while_it_is_enabled() {
    let counter = faults(Target::ThisThread);
    touch_pages();
    assert_eq!(counter.read(), Ok(Count::default()));
    counter.enable().unwrap();
    touch_pages();
    counter.disable().unwrap();
    let count = counter.read().unwrap();
    check_faults(count.value, 1);
    touch_pages();
    assert_eq!(counter.read(), Ok(count));
    counter.reset().unwrap();
    assert_eq!(counter.read(), Ok(Count::default()));
    counter.enable().unwrap();
    touch_pages();
    check_faults(counter.read().unwrap().value, 1);
}

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

#[test]
fn who_comes_late_counts_from_then_on() {
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

#[test]
fn another_thread_is_counted_until_it_ends_and_read_after() {
    let (start, done, end) = (Barrier::new(2), Barrier::new(2), Barrier::new(2));
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            send.send(rustix::thread::gettid().as_raw_nonzero().get())
                .unwrap();
            start.wait();
            touch_pages();
            done.wait();
            end.wait();
        });
        let tid = receive.recv().unwrap();
        let mut group = Group::new(Target::Thread(tid)).unwrap();
        let counter = group.add(&event("page-faults:u").unwrap()).unwrap();
        let alone = faults(Target::Thread(tid));
        group.enable().unwrap();
        alone.enable().unwrap();
        start.wait();
        done.wait();
        check_faults(group.read().unwrap()[&counter].value, 1);
        assert!(matches!(alone.reader(), Err(ReaderError::NotThisThread)));
        end.wait();
        thread.join().unwrap();
        // Joining is before the kernel's end of the thread.
        let ended = loop {
            match group.read() {
                Ok(_) => std::thread::yield_now(),
                Err(error) => break error,
            }
        };
        assert_eq!(ended, ReadError::TargetExited(format!("thread {tid}")));
        assert_eq!(alone.read(), Err(ended));
        check_faults(group.read_final().unwrap()[&counter].value, 1);
        check_faults(alone.read_final().unwrap().value, 1);
    });
}

#[test]
fn this_threads_counter_can_be_read_elsewhere_until_the_thread_ends() {
    let (send, receive) = std::sync::mpsc::channel();
    let (read, done) = (Barrier::new(2), Barrier::new(2));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let counter = faults(Target::ThisThread);
            counter.enable().unwrap();
            touch_pages();
            assert!(counter.reader().is_ok());
            send.send(counter).unwrap();
            read.wait();
            done.wait();
        });
        let counter = receive.recv().unwrap();
        read.wait();
        check_faults(counter.read().unwrap().value, 1);
        assert!(matches!(counter.reader(), Err(ReaderError::NotThisThread)));
        done.wait();
        while counter.read().is_ok() {
            std::thread::yield_now();
        }
        assert!(matches!(counter.read(), Err(ReadError::TargetExited(_))));
        check_faults(counter.read_final().unwrap().value, 1);
    });
}

fn shell(script: &str) -> Child {
    Command::new("sh")
        .args(["-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn a_process_and_its_children_are_counted() {
    let mut child = shell("read x; for i in 1 2 3 4 5; do ls / >/dev/null; done");
    let target = Target::Process(child.id() as i32);
    let counters = [Inherit::No, Inherit::Threads, Inherit::Children].map(|inherit| {
        let options = Options {
            inherit,
            ..Options::default()
        };
        let mut group = Group::with_options(target.clone(), options).unwrap();
        let faults = group.add(&event("page-faults:u").unwrap()).unwrap();
        let clock = group.add(&event("task-clock:u").unwrap()).unwrap();
        group.enable().unwrap();
        (group, faults, clock)
    });
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    child.wait().unwrap();
    let [alone, threads, children] = counters.map(|(mut group, faults, clock)| {
        let error = group.read().unwrap_err();
        assert_eq!(
            error,
            ReadError::TargetExited(format!("process {}", child.id()))
        );
        let last = group.read_final().unwrap();
        assert!(last[&clock].value > 0);
        last[&faults].value
    });
    // The shell may still have been on its way to `read` when the first began to count.
    assert!(alone.abs_diff(threads) < 20, "{alone} {threads}");
    assert!(children > alone + 100, "{children} {alone}");
}

#[test]
fn a_reset_forgets_what_children_counted_that_have_ended() {
    let mut child = Command::new("sh")
        .args(["-c", "read x; ls / >/dev/null; echo; read x; :"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let options = Options {
        inherit: Inherit::Children,
        ..Options::default()
    };
    let target = Target::Process(child.id() as i32);
    let counter = Counter::with_options(&event("page-faults:u").unwrap(), target, options).unwrap();
    counter.enable().unwrap();
    let mut input = child.stdin.take().unwrap();
    writeln!(input, "go").unwrap();
    // The shell says when `ls` has ended.
    child.stdout.take().unwrap().read_exact(&mut [0]).unwrap();
    let before = counter.read().unwrap().value;
    counter.reset().unwrap();
    let after = counter.read().unwrap().value;
    assert!(before > 50 && after < 20, "{after} after {before}");
    writeln!(input, "end").unwrap();
    child.wait().unwrap();
}

#[test]
fn the_threads_of_a_process_are_places() {
    let (start, end) = (Barrier::new(3), Barrier::new(3));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                start.wait();
                end.wait();
            });
        }
        start.wait();
        let pid = std::process::id() as i32;
        let mut group = Group::new(Target::Process(pid)).unwrap();
        let counter = group.add(&event("task-clock:u").unwrap()).unwrap();
        group.enable().unwrap();
        touch_pages();
        group.disable().unwrap();
        let places = group.read_places().unwrap();
        assert!(places.len() >= 3);
        let own = PlaceName::Thread(rustix::thread::gettid().as_raw_nonzero().get());
        let mine = places.iter().find(|(place, _)| *place == own).unwrap();
        assert!(mine.1[&counter].value > 0);
        let sum: u64 = places
            .iter()
            .map(|(_, snapshot)| snapshot[&counter].value)
            .sum();
        assert_eq!(sum, group.read().unwrap()[&counter].value);
        end.wait();
    });
}

#[test]
fn counting_can_begin_at_exec() {
    // The shell is counted from its exec of `ls` on, not before.
    let mut child = shell("read x; exec ls /");
    let options = Options {
        enable_on_exec: true,
        ..Options::default()
    };
    let mut group = Group::with_options(Target::Process(child.id() as i32), options).unwrap();
    let counter = group.add(&event("page-faults:u").unwrap()).unwrap();
    assert_eq!(group.read().unwrap()[&counter], Count::default());
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    child.wait().unwrap();
    assert!(group.read_final().unwrap()[&counter].value > 10);
}

#[test]
fn what_is_not_there_has_its_own_error() {
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
fn what_a_user_may_not_count_is_said() {
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
        text.contains("someone else") || text.contains("no process"),
        "{text}"
    );
    let text = refused("uprobe:libc.so.6:malloc", Target::ThisThread);
    assert!(text.contains("root only"), "{text}");
}

#[test]
fn whole_cpus_are_counted_for_root() {
    if !is_root() {
        eprintln!("skipped: whole CPUs are for root");
        return;
    }
    let mut group = Group::new(Target::AllCpus).unwrap();
    let clock = group.add(&event("cpu-clock").unwrap()).unwrap();
    let switches = group.add(&event("context-switches").unwrap()).unwrap();
    group.enable().unwrap();
    shell("ls /").wait().unwrap();
    group.disable().unwrap();
    let places = group.read_places().unwrap();
    assert_eq!(places[0].0, PlaceName::Cpu(0));
    let total = group.read().unwrap();
    assert!(total[&switches].value > 0);
    for (_, snapshot) in &places {
        let count = snapshot[&clock];
        // The clock of a CPU runs whatever it does.
        assert!(
            count.value > 0 && count.enabled >= count.value / 2,
            "{count:?}"
        );
    }
    let one = Counter::new(&event("cpu-clock").unwrap(), Target::Cpu(0)).unwrap();
    one.enable().unwrap();
    assert!(one.read().unwrap().value > 0);
}

#[test]
fn a_cgroup_is_counted_for_root() {
    let root = "/sys/fs/cgroup";
    let mount = [format!("{root}/unified"), root.to_owned()].into_iter();
    let mount = mount
        .rev()
        .find(|mount| std::path::Path::new(mount).join("cgroup.procs").exists());
    let name = format!("prof-counters-{}", std::process::id());
    let folder = mount.map(|mount| std::path::Path::new(&mount).join(&name));
    let folder = folder.filter(|folder| std::fs::create_dir(folder).is_ok());
    let mount =
        |name: &str| Counter::new(&event("task-clock").unwrap(), Target::Cgroup(name.into()));
    let unified = std::path::Path::new("/sys/fs/cgroup/unified");
    let folder = folder.or_else(|| {
        let folder = unified.join(&name);
        std::fs::create_dir(&folder).is_ok().then_some(folder)
    });
    let Some(folder) = folder else {
        eprintln!("skipped: no cgroup can be made here");
        return;
    };
    let counter = mount(&name).unwrap();
    counter.enable().unwrap();
    let mut child = shell("read x; ls / >/dev/null; exit 0");
    std::fs::write(folder.join("cgroup.procs"), child.id().to_string()).unwrap();
    assert_eq!(counter.read().unwrap().value, 0);
    writeln!(child.stdin.take().unwrap(), "go").unwrap();
    child.wait().unwrap();
    assert!(counter.read().unwrap().value > 0);
    drop(counter);
    while std::fs::remove_dir(&folder).is_err() {
        std::thread::yield_now();
    }
}

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
    // Some virtual machines lend fewer counters than they say: the first ones always count, once
    // others who count on this machine have had their turn.
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
    // All count the same, so the estimates are near each other; not nearer, because some virtual
    // machines lend fewer counters than they say.
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
    // With room again, enabling it again brings it back.
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
