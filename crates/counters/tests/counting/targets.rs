//! Threads, processes, CPUs and cgroups.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::Barrier;

use prof_counters::{
    Count, Counter, Group, Inherit, Options, PlaceName, ReadError, ReaderError, Target, event,
};

use super::{check_faults, faults, is_root, touch_pages};

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
fn a_reset_drops_the_counts_of_ended_children() {
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
