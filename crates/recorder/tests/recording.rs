//! Real recordings of real programs, checked with perf.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use prof_model::Verdict;
use prof_perfdata::{Record, Recording};
use prof_recorder::{
    CallGraph, Error, GroupRequest, Options, Program, Schedule, Signals, Storage, Summary, Target,
    parsing::Catalog, record,
};
use tempfile::TempDir;

/// Two threads with 40 KB of stack each, busy for so many milliseconds of their CPU time; with
/// another argument they first wait for a line on standard input.
const BUSY: &str = r#"
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
volatile unsigned long sink;
static unsigned long milliseconds;
static unsigned long used(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}
__attribute__((noinline)) void work(void) {
    while (used() < milliseconds)
        for (int i = 0; i < 100000; i++) sink += i;
}
__attribute__((noinline)) void pile(int levels) {
    volatile char room[4096];
    room[0] = room[4095] = (char)levels;
    if (levels == 0) work(); else pile(levels - 1);
    sink += (unsigned long)room[0];
}
void *thread_main(void *unused) { pile(10); return unused; }
int main(int argc, char **argv) {
    pthread_t threads[2];
    milliseconds = strtoul(argv[1], NULL, 10);
    if (argc > 2 && getchar() == EOF) return 1;
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, thread_main, NULL);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    return 7;
}
"#;

const MILLISECONDS: &str = "400";

struct Bench {
    folder: TempDir,
    signals: Signals,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self {
            folder,
            signals: Signals::block().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn busy(&self) -> PathBuf {
        let source = self.path("busy.c");
        fs::write(&source, BUSY).unwrap();
        let binary = self.path("busy");
        let gcc = Command::new("gcc")
            .args(["-O1", "-fomit-frame-pointer", "-pthread", "-o"])
            .args([&binary, &source])
            .status();
        assert!(gcc.unwrap().success());
        binary
    }

    fn options(&self, argv: &[&str]) -> Options {
        Options {
            target: Target::Command(Program::new(argv)),
            groups: groups("cpu-clock", CallGraph::Dwarf { dump: None }),
            backend: prof_recorder::Backend::Automatic,
            unwind: true,
            ring_bytes: None,
            schedule: Schedule::default(),
            storage: Storage::default(),
            limits: None,
            output: self.path("prof.data"),
            command_line: vec!["prof".into(), "record".into()],
        }
    }

    fn record(&self, options: &Options) -> Result<Summary, Error> {
        record(options, &self.signals)
    }
}

/// Events by name, at 999 Hz unless they say otherwise.
fn groups(events: &str, call_graph: CallGraph) -> Vec<GroupRequest> {
    let parsed = Catalog::system().parse(events).unwrap();
    let named = |group| GroupRequest::named(group, None, call_graph);
    parsed.into_iter().map(named).collect()
}

/// Whether there is a working perf to compare with. Missing it fails under `CI=true`.
fn perf_works() -> bool {
    let version = Command::new("perf")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if version.is_ok_and(|status| status.success()) {
        return true;
    }
    assert!(std::env::var("CI").as_deref() != Ok("true"), "no perf");
    let _ = std::io::stderr().write_all(b"\n!!! NOT RUN: this machine has no perf\n");
    false
}

/// The output of `perf script`, sample by sample: functions, innermost first.
fn perf_stacks(file: &Path) -> Vec<Vec<String>> {
    let output = Command::new("perf")
        .args(["script", "--no-inline", "-F", "ip,sym", "-i"])
        .arg(file)
        .env("HOME", "/nonexistent")
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{errors}");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split("\n\n")
        .map(|sample| {
            let frames = sample
                .lines()
                .filter_map(|line| line.split_whitespace().nth(1));
            frames.map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|frames| !frames.is_empty())
        .collect()
}

/// Every stack but one in a hundred is whole. How many samples are lost depends on what else
/// runs on the machine.
fn assert_whole(summary: &Summary) {
    let quality = &summary.quality;
    let (whole, stacks) = (quality.whole_stacks(), quality.user_stacks());
    let verdict = Verdict::new(quality);
    assert!(stacks * 2 > summary.samples, "{verdict}\n{summary:?}");
    assert!(whole * 100 >= stacks * 99, "{verdict}\n{summary:?}");
}

#[test]
fn two_busy_threads_are_whole_in_the_eyes_of_perf() {
    let bench = Bench::new();
    let binary = bench.busy();
    let options = bench.options(&[binary.to_str().unwrap(), MILLISECONDS]);
    let summary = bench.record(&options).unwrap();
    assert_eq!(summary.exit.and_then(|status| status.code()), Some(7));
    assert_whole(&summary);
    assert!(summary.samples > 100, "{summary:?}");
    let mode = fs::metadata(&options.output).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    if !perf_works() {
        return;
    }
    let stacks = perf_stacks(&options.output);
    assert_eq!(stacks.len() as u64, summary.samples);
    let in_threads = |frames: &&Vec<String>| {
        frames.iter().filter(|frame| *frame == "pile").count() == 11
            && frames.iter().any(|frame| frame == "thread_main")
            && frames.last().is_some_and(|frame| frame.contains("clone"))
    };
    let others: Vec<_> = stacks.iter().filter(|stack| !in_threads(stack)).collect();
    assert!(
        others.len() * 100 < stacks.len() * 5,
        "of {}: {others:#?}",
        stacks.len()
    );
}

#[test]
fn a_plain_user_records_too() {
    let uid = fs::read_to_string("/proc/self/status").unwrap();
    if !uid.contains("\nUid:\t0\t") {
        // We are a plain user: all the other tests cover this.
        return;
    }
    // No bench: programs started beside it would begin with its signals blocked.
    let folder = tempfile::tempdir().unwrap();
    let everybody = fs::Permissions::from_mode(0o777);
    fs::set_permissions(folder.path(), everybody).unwrap();
    // The copy can be read wherever the build put this program. Another process makes it, because a
    // child of another test may inherit a file that we have open for writing.
    let tests = folder.path().join("tests");
    let copied = Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&tests)
        .status();
    assert!(copied.unwrap().success());
    let outcome = Command::new("setpriv")
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(&tests)
        .args(["--skip", "a_plain_user", "--test-threads=1"])
        .env("TMPDIR", folder.path())
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&outcome.stdout);
    let errors = String::from_utf8_lossy(&outcome.stderr);
    assert!(outcome.status.success(), "{said}\n{errors}");
}

#[test]
fn running_processes_are_recorded_with_their_mappings() {
    let bench = Bench::new();
    let binary = bench.busy();
    let mut target = Command::new(&binary)
        .args([MILLISECONDS, "wait"])
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = target.stdin.take().unwrap();
    let options = Options {
        target: Target::Processes(vec![target.id() as i32]),
        ..bench.options(&[])
    };
    let summary = std::thread::scope(|scope| {
        let recording = scope.spawn(|| bench.record(&options));
        // The output is created after the events were opened.
        while !options.output.exists() && !recording.is_finished() {
            std::thread::yield_now();
        }
        line.write_all(b"go\n").unwrap();
        recording.join().unwrap().unwrap()
    });
    assert_eq!(target.wait().unwrap().code(), Some(7));
    assert_eq!(summary.exit, None);
    assert_whole(&summary);
    assert!(summary.samples > 100, "{summary:?}");
    let mut recording = Recording::open(&options.output).unwrap();
    let ids: Vec<_> = recording.features().build_ids.clone();
    assert!(
        ids.iter().any(|id| id.path == binary),
        "{ids:?} {summary:?}"
    );
    let mut mapped = false;
    while let Some(record) = recording.next() {
        mapped |= matches!(record, Record::Mmap(mmap) if mmap.path == binary);
    }
    assert!(mapped);
}

#[test]
fn a_recording_of_processes_ends_in_time_and_leaves_them_running() {
    let bench = Bench::new();
    let mut target = Ended(
        Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn()
            .unwrap(),
    );
    let options = Options {
        target: Target::Processes(vec![target.0.id() as i32]),
        schedule: Schedule {
            duration: Some(Duration::from_secs(1)),
            ..Schedule::default()
        },
        ..bench.options(&[])
    };
    let summary = bench.record(&options).unwrap();
    assert!(summary.samples > 0, "{summary:?}");
    assert!(target.0.try_wait().unwrap().is_none());
}

/// A child that is killed when dropped, also by a failing test.
struct Ended(std::process::Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_command_gets_a_signal_when_the_time_is_over() {
    let bench = Bench::new();
    let options = Options {
        schedule: Schedule {
            duration: Some(Duration::from_secs(1)),
            ..Schedule::default()
        },
        ..bench.options(&["sh", "-c", "while :; do :; done"])
    };
    let summary = bench.record(&options).unwrap();
    assert_eq!(summary.exit.and_then(|status| status.signal()), Some(15));
    assert!(summary.samples > 0, "{summary:?}");
    Recording::open(&options.output).unwrap();
}

#[test]
fn children_and_their_programs_are_followed() {
    let bench = Bench::new();
    let script = "for i in 1 2 3; do (i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done) & done; \
                  wait; sed -n '$=' /proc/self/maps > /dev/null; exit 3";
    let options = bench.options(&["sh", "-c", script]);
    let summary = bench.record(&options).unwrap();
    assert_eq!(summary.exit.and_then(|status| status.code()), Some(3));
    let mut recording = Recording::open(&options.output).unwrap();
    let (mut samples, mut forks, mut names) = (BTreeMap::<i32, u64>::new(), 0, Vec::new());
    let mut before = 0;
    while let Some(record) = recording.next() {
        let time = record.stamp().time.unwrap_or(before);
        assert!(time >= before, "out of order");
        before = time;
        match record {
            Record::Sample(sample) => *samples.entry(sample.pid).or_default() += 1,
            Record::Fork(_) => forks += 1,
            Record::Comm(comm) => names.push(comm.name.to_owned()),
            _ => {}
        }
    }
    assert!(samples.len() >= 3, "{samples:?}");
    assert!(forks >= 4, "{forks}");
    assert!(names.iter().any(|name| name == "sed"), "{names:?}");
}

/// The records of a file in their order there, which readers do not rely on; without perf's own.
fn raw_records(file: &[u8]) -> Vec<&[u8]> {
    let number = |at: usize| u64::from_le_bytes(file[at..at + 8].try_into().unwrap()) as usize;
    // `struct perf_file_header`: the section of the records.
    let (start, length) = (number(40), number(48));
    let mut rest = &file[start..start + length];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u16::from_le_bytes(rest[6..8].try_into().unwrap()).into();
        let (record, others) = rest.split_at(length);
        // From 64 on they are perf's own.
        if record[0] < 64 {
            records.push(record);
        }
        rest = others;
    }
    records
}

/// Records a program of two threads, whose records must be in the order of time in the file.
/// Returns how often the CPU changes between neighbouring samples.
fn turns_of_cpus(bench: &Bench, binary: &Path) -> usize {
    let options = bench.options(&[binary.to_str().unwrap(), MILLISECONDS]);
    bench.record(&options).unwrap();
    let file = fs::read(&options.output).unwrap();
    let mut recording = Recording::open(&options.output).unwrap();
    // Records of the state before the first sample have no time.
    let times = raw_records(&file).into_iter();
    let times: Vec<u64> = times
        .filter_map(|record| recording.format().time(record))
        .collect();
    let late: Vec<_> = times.windows(2).filter(|pair| pair[1] < pair[0]).collect();
    assert!(
        times.len() > 300 && late.is_empty(),
        "{} {late:?}",
        times.len()
    );
    let mut cpus = Vec::new();
    while let Some(record) = recording.next() {
        if let Record::Sample(sample) = record {
            cpus.push(sample.cpu.unwrap());
        }
    }
    cpus.windows(2).filter(|pair| pair[0] != pair[1]).count()
}

#[test]
fn records_of_all_cpus_lie_in_the_order_of_time() {
    let bench = Bench::new();
    let binary = bench.busy();
    let online = std::thread::available_parallelism().unwrap().get();
    // If other threads are busy as well, both threads may share one CPU.
    let mut runs = (0..20).map(|_| turns_of_cpus(&bench, &binary));
    assert!(runs.any(|rotation| online == 1 || rotation > 20));
}

#[test]
fn a_failed_start_leaves_nothing_behind() {
    let bench = Bench::new();
    let plain = bench.path("plain");
    fs::write(&plain, "not a program").unwrap();
    let not_found = bench.record(&bench.options(&["/no/such/program"]));
    assert!(
        matches!(not_found, Err(Error::CommandNotFound { .. })),
        "{not_found:?}"
    );
    let not_executable = bench.record(&bench.options(&[plain.to_str().unwrap()]));
    assert!(
        matches!(not_executable, Err(Error::CommandNotStarted { .. })),
        "{not_executable:?}"
    );
    let nobody = Options {
        target: Target::Processes(vec![i32::MAX]),
        ..bench.options(&[])
    };
    assert!(matches!(bench.record(&nobody), Err(Error::Events(_))));
    assert!(!bench.path("prof.data").exists());
}

#[test]
fn an_unwritable_output_stops_everything_before_the_command_runs() {
    let bench = Bench::new();
    let marker = bench.path("ran");
    for output in [
        bench.folder.path().to_owned(),
        bench.path("no/such/folder/file"),
    ] {
        let options = Options {
            output,
            ..bench.options(&["touch", marker.to_str().unwrap()])
        };
        let refused = bench.record(&options);
        assert!(matches!(refused, Err(Error::Output { .. })), "{refused:?}");
    }
    assert!(!marker.exists());
}

#[test]
fn dumps_are_kept_for_later_unwinding() {
    let bench = Bench::new();
    let binary = bench.busy();
    let options = Options {
        unwind: false,
        ..bench.options(&[binary.to_str().unwrap(), MILLISECONDS])
    };
    let summary = bench.record(&options).unwrap();
    let mut recording = Recording::open(&options.output).unwrap();
    let mut tail_reader = 0;
    while let Some(record) = recording.next() {
        if let Record::Sample(sample) = record {
            let stack = sample.user_stack.map_or(0, |stack| stack.bytes.len());
            tail_reader += u64::from(sample.user_registers().is_some() && stack > 40_000);
        }
    }
    assert!(
        tail_reader * 2 > summary.samples,
        "{tail_reader} of {summary:?}"
    );
    if perf_works() {
        assert!(!perf_stacks(&options.output).is_empty());
    }
}

#[test]
fn other_ways_to_find_callers() {
    let bench = Bench::new();
    let binary = bench.busy();
    for call_graph in [CallGraph::FramePointers, CallGraph::None] {
        let options = Options {
            groups: groups("task-clock/period=1000000/u", call_graph),
            ..bench.options(&[binary.to_str().unwrap(), MILLISECONDS])
        };
        let summary = bench.record(&options).unwrap();
        assert_eq!(summary.events, ["task-clock/period=1000000/u"]);
        assert!(summary.samples > 10, "{summary:?}");
        if perf_works() {
            assert!(!perf_stacks(&options.output).is_empty());
        }
    }
    assert!(bench.path("prof.data.old").exists());
}
