//! Threads by their numbers, and all that runs on CPUs or in a cgroup.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prof_tests::{
    Endless, Need, Outcome, Program, Recorded, Session, Stacks, cgroups, needs, wait_until,
};

const ALL: &[Need] = &[Need::Root, Need::Tool("setpriv"), Need::Tool("perf")];

/// Something to run for a while.
fn work() -> PathBuf {
    Program::c(&["threads.c"]).build()
}

fn record<'a>(session: &'a Session, options: &[&str], milliseconds: &str) -> Recorded<'a> {
    session.record(options, &[work().to_str().unwrap(), milliseconds])
}

/// The fields of each sample, as perf reads them.
fn perf_fields(file: &Path, fields: &str) -> BTreeSet<String> {
    let mut perf = Command::new("perf");
    perf.args(["script", "-G", "-F", fields, "-i"]).arg(file);
    let outcome = Outcome::of(perf);
    outcome.assert_code(0);
    let lines = outcome.stdout.lines();
    lines.map(|line| line.trim().to_owned()).collect()
}

/// The stacks after a filter, without inlined functions.
fn stacks(recorded: &Recorded<'_>, filter: &[&str]) -> Stacks {
    let options = [filter, &["--no-inline", "--folded", "-"]].concat();
    Stacks::from_folded(&recorded.report(&options).stdout)
}

/// Three busy threads for each of two CPUs, and what else runs: the reader has priority, so rings
/// are read in time. Unwinding may be too slow beside much other load; then the verdict says so.
#[test]
fn rings_of_a_busy_machine_are_read_in_time() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let stranger = Endless::install(&session, "stranger");
    let strangers = [(); 2].map(|()| Endless::start(session.command(&stranger, ["60"])));
    let recorded = record(&session, &["-a", "-e", "cpu-clock", "-F", "999"], "300");
    strangers.into_iter().for_each(Endless::end);
    let json = recorded.report(&["--json", "-"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let losses = &json["quality"]["losses"];
    let of_rings = ["ring_full", "malformed", "corrupt_rings"];
    let of_rings = of_rings.map(|why| losses[why].as_u64().unwrap());
    let lost: u64 = of_rings.iter().sum();
    assert!(lost * 1000 <= recorded.samples(), "{losses}");
    let said = recorded.outcome.stderr.contains("unwinding was too slow");
    assert!(said || losses["queue_full"] == 0, "{}", recorded.outcome);
}

#[test]
fn all_cpus_show_strangers_and_the_command() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let stranger = Endless::install(&session, "stranger");
    let stranger = Endless::start(session.command(&stranger, ["60"]));
    let recorded = record(&session, &["-a"], "400");
    stranger.end();
    let ours = stacks(&recorded, &["--module", "^(stranger|threads)$"]);
    let ours = ours.with_leaves(&["leading", "helping", "busy"]);
    assert!(ours.whole_share() > 0.95, "{ours}");
    assert!(ours.self_share("busy") > 0.0, "{ours}");
    let deep = ours.with_leaves(&["leading"]);
    let whole = |frames: &[String]| frames.iter().filter(|frame| *frame == "descend").count() == 61;
    assert!(deep.share(whole) > 0.95, "{deep}");
    // perf sees the same processes, and the name of the thread.
    let comms = perf_fields(&recorded.file, "comm");
    for name in ["stranger", "helper", "threads"] {
        assert!(comms.contains(name), "{name}: {comms:?}");
    }
    assert_eq!(perf_fields(&recorded.file, "cpu").len(), online());
}

fn online() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Newer kernels free the memory of a process after its EXIT record.
#[test]
fn the_end_of_a_process_has_its_name() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let exits = Program::c(&["exits.c"]).build();
    let options = ["-a", "-e", "cpu-clock", "-F", "1999"];
    let recorded = session.record(&options, &[exits.to_str().unwrap(), "200"]);
    let end = ["--function", "^exit_mmap$", "--sort", "comm"];
    let names = recorded.report(&end).stdout;
    assert!(names.contains("  exits\n"), "{names}");
    assert!(!names.contains("  :"), "{names}");
}

#[test]
fn a_commands_status_passes_through() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let outcome = session.run(["record", "-a", "--", "sh", "-c", "exit 7"]);
    outcome.assert_code(7);
    let outcome = session.run(["record", "-a", "--", "/no/such/program"]);
    outcome.assert_code(127);
}

#[test]
fn one_cpu_shows_what_runs_there() {
    if !needs(ALL) || !needs(&[Need::Tool("taskset")]) {
        return;
    }
    let session = Session::alone();
    let last = online() - 1;
    let (here, there) = (last.to_string(), "0".to_owned());
    let start = |name: &str, cpu: &str| {
        let program = Endless::install(&session, name);
        let arguments = ["-c", cpu, program.to_str().unwrap()].map(str::to_owned);
        Endless::start(session.command(Path::new("taskset"), arguments))
    };
    let programs = [start("on-the-last", &here), start("on-the-first", &there)];
    let recorded = record(&session, &["-C", &here], "200");
    drop(programs);
    assert_eq!(
        perf_fields(&recorded.file, "cpu"),
        BTreeSet::from([format!("[{last:03}]")])
    );
    let found = perf_fields(&recorded.file, "comm");
    assert!(found.contains("on-the-last"), "{found:?}");
    assert!(last == 0 || !found.contains("on-the-first"), "{found:?}");
}

#[test]
fn cpus_that_are_not_there_are_named() {
    let session = Session::new();
    let outcome = session.run(["record", "-C", "4095", "--", "true"]);
    outcome.assert_refused(&["CPU 4095 is not online"]);
    let outcome = session.run(["record", "-C", "1-", "--", "true"]);
    outcome.assert_refused(&["write numbers of CPUs"]);
    assert!(!session.path("prof.data").exists());
}

#[test]
fn until_the_time_is_over() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let stranger = Endless::install(&session, "stranger");
    let stranger = Endless::start(session.command(&stranger, ["1"]));
    let outcome = session.run(["record", "-a", "--duration", "1s"]);
    stranger.end();
    outcome.assert_code(0).assert_says(&["samples,"]);
    let comms = perf_fields(&session.path("prof.data"), "comm");
    assert!(comms.contains("stranger"), "{comms:?}");
    let outcome = session.run(["report", "--coverage"]);
    assert!(
        outcome.stdout.contains("does not say how much work"),
        "{outcome}"
    );
}

#[test]
fn other_users_stacks_are_completed_from_their_memory() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    let program = Endless::install(&session, "of-a-user");
    let program = program.to_str().unwrap();
    let become_user = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        program,
        "4000",
    ];
    let other = Endless::start(session.command(Path::new("setpriv"), become_user));
    let recorded = record(&session, &["-a", "--call-graph", "dwarf,8192"], "300");
    let pid = other.pid().to_string();
    other.end();
    let deep = stacks(&recorded, &["--pid", &pid]).with_leaves(&["leading"]);
    assert!(
        deep.total() > 0 && deep.whole_share() > 0.9,
        "{}",
        recorded.outcome
    );
}

#[test]
fn a_cgroup_shows_its_members_only() {
    if !needs(ALL) || !needs(&[Need::Cgroups]) {
        return;
    }
    let session = Session::alone();
    let name = format!("prof-test-{}", std::process::id());
    let group = cgroups().unwrap().join(&name);
    std::fs::create_dir(&group).unwrap();
    let start = |name: &str| {
        let program = Endless::install(&session, name);
        Endless::start(session.command(&program, ["1"]))
    };
    let (inside, outside) = (start("inside"), start("outside"));
    let members = group.join("cgroup.procs");
    std::fs::write(&members, inside.pid().to_string()).unwrap();
    // One that joins when it has long mapped its files.
    let late = start("late");
    let join = format!(
        "echo {} > {}; exec {} 300",
        late.pid(),
        members.display(),
        work().display()
    );
    // The kernel's code that switches between threads counts for either.
    let options = ["-G", &name, "-e", "cpu-clock:u"];
    let recorded = session.record(&options, &["sh", "-c", &join]);
    drop((inside, outside, late));
    std::fs::remove_dir(&group).unwrap();
    let comms = perf_fields(&recorded.file, "comm");
    let members = ["inside", "late", "helper"].map(str::to_owned);
    assert_eq!(comms, BTreeSet::from(members));
    let stacks = stacks(&recorded, &[]).with_leaves(&["leading", "helping"]);
    assert!(stacks.whole_share() > 0.95, "{stacks}");
    let outcome = session.run(["record", "-G", "no-such-group", "--", "true"]);
    outcome.assert_refused(&["no-such-group"]);
}

/// The kernel reports the switches of all threads.
#[test]
fn threads_outside_of_a_cgroup_are_not_ready_to_run_in_it() {
    if !needs(ALL) || !needs(&[Need::Cgroups, Need::Tool("taskset")]) {
        return;
    }
    let session = Session::alone();
    let name = format!("prof-test-ready-{}", std::process::id());
    let group = cgroups().unwrap().join(&name);
    std::fs::create_dir(&group).unwrap();
    let program = Endless::install(&session, "outside");
    // Its two threads share a CPU.
    let one_cpu = ["--cpu-list", "0", program.to_str().unwrap(), "1"];
    let outside = Endless::start(session.command(Path::new("taskset"), one_cpu));
    let members = group.join("cgroup.procs");
    let join = format!("echo $$ > {}; exec sleep 0.4", members.display());
    // The member itself may wait for a CPU in some runs.
    let mut runs = (0..4).map(|_| {
        session
            .record(&["-G", &name, "--wall"], &["sh", "-c", &join])
            .outcome
    });
    let is_silent = runs.any(|run| !run.stderr.contains("ready to run"));
    outside.end();
    std::fs::remove_dir(&group).unwrap();
    assert!(is_silent);
}

#[test]
fn containers_are_seen_from_outside() {
    if !needs(ALL) || !needs(&[Need::MountNamespaces]) {
        return;
    }
    let session = Session::alone();
    let program = Program::c(&["endless.c"]).build_as(prof_tests::Variant::STATIC);
    for folder in ["root", "root/app", "root/old"] {
        std::fs::create_dir(session.path(folder)).unwrap();
    }
    std::fs::copy(program, session.path("root/app/contained")).unwrap();
    let enter = "mount --bind root root && cd root && pivot_root . old && exec /app/contained 20";
    let arguments = ["--mount", "--pid", "--fork", "sh", "-c", enter];
    let contained = Endless::start(session.command(Path::new("unshare"), arguments));
    let recorded = record(&session, &["-a"], "300");
    contained.end();
    let stacks = stacks(&recorded, &["--module", "^contained$"]);
    let stacks = stacks.with_leaves(&["leading", "helping"]);
    assert!(
        stacks.total() > 0 && stacks.whole_share() > 0.95,
        "{stacks}"
    );
    assert!(perf_fields(&recorded.file, "comm").contains("contained"));
}

#[test]
fn plain_users_get_advice() {
    if !needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        return;
    }
    let session = Session::plain_user();
    let paranoid = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").unwrap();
    let paranoid: i32 = paranoid.trim().parse().unwrap();
    for options in [&["-a"][..], &["-C", "0"]] {
        let outcome = session.run([&["record"], options, &["--", "true"]].concat());
        match paranoid {
            ..1 => drop(outcome.assert_code(0)),
            1.. => {
                outcome.assert_refused(&["-a needs root", "paranoid=0", "-p PID"]);
                assert!(!session.path("prof.data").exists());
            }
        }
    }
    let outcome = session.run(["record", "-a", "--sampler", "ptrace", "--", "true"]);
    outcome.assert_refused(&["leave out -a"]);
}

/// Checks that only the requested thread is in the recording.
#[track_caller]
fn check_thread(session: &Session, options: &[&str]) {
    let program = Endless::install(session, "threaded");
    let target = Endless::start(session.command(&program, ["1"]));
    for (tid, function) in [(target.helper(), "helping"), (target.pid(), "leading")] {
        let tid = tid.to_string();
        let arguments = [&["record", "-d", "300ms", "-t", &tid], options].concat();
        // On a busy machine it may not get a CPU for so long.
        let sampled = || {
            let outcome = session.run(&arguments);
            !outcome.assert_code(0).stderr.contains(" 0 samples")
        };
        assert!((0..20).any(|_| sampled()), "it never runs");
        let outcome = session.run(["report", "--folded", "-"]);
        let folded = outcome.assert_code(0).stdout.lines();
        let user = folded.filter(|line| line.contains(function)).count();
        let other = if function == "helping" {
            "leading"
        } else {
            "helping"
        };
        assert!(user > 0 && !outcome.stdout.contains(other), "{outcome}");
    }
}

#[test]
fn threads_by_their_numbers() {
    check_thread(&Session::new(), &["-e", "cpu-clock:u"]);
    check_thread(&Session::new(), &["--sampler", "ptrace"]);
    let session = Session::new();
    let outcome = session.run(["record", "-t", "2147483647"]);
    outcome.assert_refused(&["no thread 2147483647"]);
}

#[test]
fn plain_users_threads_by_their_numbers() {
    if needs(&[Need::Root, Need::Tool("setpriv"), Need::PlainSampling]) {
        check_thread(&Session::plain_user(), &["-e", "cpu-clock:u"]);
    }
}

#[test]
fn our_own_cpus_are_not_all() {
    if !needs(ALL) || !needs(&[Need::Tool("taskset")]) {
        return;
    }
    let session = Session::alone();
    let launcher = ["taskset", "--cpu-list", "0"].map(OsString::from);
    // A virtual CPU that has nothing to do may sleep through its samples.
    let list = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    let last = list.trim().rsplit([',', '-']).next().unwrap();
    let work = work();
    let record = ["record", "-a", "-e", "cpu-clock", "--"];
    let command = ["taskset", "--cpu-list", last, work.to_str().unwrap(), "200"];
    let outcome = Outcome::of(session.prof_under(&launcher, [&record[..], &command].concat()));
    outcome.assert_code(0);
    let cpus = perf_fields(&session.path("prof.data"), "cpu");
    let last = format!("[{:03}]", last.parse::<u32>().unwrap());
    assert!(cpus.contains(&last), "no {last} in {cpus:?}");
}

/// Takes a CPU offline until this is dropped.
struct Offline(PathBuf);

impl Offline {
    /// Takes the last CPU, if this machine lets us.
    fn take() -> Option<Self> {
        let file = format!("/sys/devices/system/cpu/cpu{}/online", online() - 1);
        std::fs::write(&file, "0").ok()?;
        Some(Self(file.into()))
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        std::fs::write(&self.0, "1").unwrap();
    }
}

#[test]
fn an_offline_cpu_is_reported_and_the_others_continue() {
    if !needs(ALL) {
        return;
    }
    let session = Session::alone();
    // Containers and machines of one CPU cannot do it.
    if Offline::take().is_none() {
        let message = b"\n!!! NOT RUN: no CPU can be taken offline here\n";
        let _ = std::io::stderr().write_all(message);
        return;
    }
    let cpu = online() - 1;
    let target = Endless::install(&session, "endless");
    let target = Endless::start(session.command(&target, ["60"]));
    let pid = target.pid().to_string();
    let record = |target: &[&str]| {
        let options = ["record", "-e", "cpu-clock:u", "--switch-output"];
        let mut command = session.prof([&options, target].concat());
        command.stderr(Stdio::piped());
        let mut prof = command.spawn().unwrap();
        let signal = |prof: &Child, name: &str| {
            prof_tests::signal(name, prof.id());
        };
        // A file is complete: sampling has begun.
        wait_until(&mut prof, || session.path("prof.data").exists());
        signal(&prof, "-USR2");
        let files = || {
            let entries = std::fs::read_dir(session.directory()).unwrap();
            let paths = entries.map(|entry| entry.unwrap().path());
            paths.filter(|path| path.to_string_lossy().contains("prof.data."))
        };
        wait_until(&mut prof, || files().count() == 1);
        let gone = Offline::take().unwrap();
        signal(&prof, "-INT");
        let outcome = Outcome::new(&command, prof.wait_with_output().unwrap());
        drop(gone);
        outcome.assert_code(0);
        files().for_each(|file| std::fs::remove_file(file).unwrap());
        outcome.stderr
    };
    let words = format!("CPU {cpu} went offline");
    let says = |target: &[&str]| record(target).contains(&words);
    assert!(says(&["-a"]));
    assert!(!says(&["-C", "0"]));
    assert!(!says(&["-p", &pid]));
}
