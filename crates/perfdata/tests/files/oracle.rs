//! Recordings of the real perf: linux-perf-data, an independent reader, finds the same records in
//! them as we do, and perf itself the same counter values.
#![allow(clippy::unwrap_used)]

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::Path;

use crate::common::{BUSY, perf_record, run_perf};
use linux_perf_data::linux_perf_event_reader::{EventRecord, Mmap2FileId, SamplingPolicy};
use linux_perf_data::{PerfFileReader, PerfFileRecord};
use prof_model::RegisterAbi;
use prof_perfdata::{Record, Recording, Sample};

/// Each record with its time, as a line that both readers can write.
type Lines = Vec<(Option<u64>, String)>;

fn our_lines(path: &Path) -> Lines {
    let mut recording = Recording::open(path).unwrap();
    let mut lines = Lines::new();
    while let Some(record) = recording.next() {
        let line = match record {
            Record::Sample(sample) => our_sample(&sample),
            Record::Mmap(m) => {
                let id = m.build_id.map(|id| id.as_bytes().to_vec());
                format!(
                    "mmap {} {} {:#x} {:#x} {:#x} {:?} {:?} {id:?}",
                    m.pid, m.tid, m.address, m.length, m.file_offset, m.path, m.protection
                )
            }
            Record::Comm(comm) => format!(
                "comm {} {} {:?} {}",
                comm.pid, comm.tid, comm.name, comm.exec
            ),
            Record::Fork(t) => format!(
                "fork {} {} {} {} {}",
                t.pid, t.tid, t.parent_pid, t.parent_tid, t.time
            ),
            Record::Exit(t) => format!(
                "exit {} {} {} {} {}",
                t.pid, t.tid, t.parent_pid, t.parent_tid, t.time
            ),
            Record::Lost(lost) => format!("lost {}", lost.count),
            Record::Switch(switch) => format!("switch out={} {:?}", switch.out, switch.other),
            _ => continue,
        };
        lines.push((record.stamp().time.filter(|&time| time != 0), line));
    }
    assert!(!recording.truncated());
    assert_eq!(recording.malformed(), 0);
    lines
}

fn our_sample(sample: &Sample<'_>) -> String {
    let registers = sample.user_registers().map(|registers| {
        let all: Vec<_> = (0..64).filter_map(|number| registers.get(number)).collect();
        (registers.abi() == RegisterAbi::Bits64, all)
    });
    let stack = sample
        .user_stack
        .map(|stack| (stack.bytes.len(), checksum(stack.bytes)));
    let chain: Vec<u64> = sample.callchain.collect();
    format!(
        "sample of {} {:?} ip={:#x} {} {} addr={:?} id={:?} cpu={:?} period={} chain={chain:x?} \
         regs={registers:x?} stack={stack:?} raw={:?} phys={:?}",
        sample.event,
        sample.mode,
        sample.ip,
        sample.pid,
        sample.tid,
        sample.addr,
        sample.id,
        sample.cpu,
        sample.period,
        sample.raw.map(checksum),
        sample.details.phys_addr,
    )
}

fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(7, |sum, &byte| {
        u64::wrapping_add(u64::wrapping_mul(sum, 31), byte.into())
    })
}

fn their_lines(path: &Path, pipe: bool) -> Lines {
    let file = BufReader::new(File::open(path).unwrap());
    if pipe {
        let reader = PerfFileReader::parse_pipe(file).unwrap();
        their_records(reader)
    } else {
        their_records(PerfFileReader::parse_file(file).unwrap())
    }
}

#[expect(clippy::too_many_lines, reason = "one assertion or line per field")]
fn their_records<R: Read>(reader: PerfFileReader<R>) -> Lines {
    let PerfFileReader {
        mut perf_file,
        mut record_iter,
    } = reader;
    let mut lines = Lines::new();
    while let Some(record) = record_iter.next_record(&mut perf_file).unwrap() {
        let PerfFileRecord::EventRecord { attr_index, record } = record else {
            continue;
        };
        let time = record.common_data().unwrap().timestamp;
        let fixed_period = match perf_file.event_attributes()[attr_index]
            .attr
            .sampling_policy
        {
            SamplingPolicy::Period(period) => period.get(),
            _ => 1,
        };
        let line = match record.parse().unwrap() {
            EventRecord::Sample(s) => {
                let registers = s.user_regs.map(|registers| {
                    let all: Vec<_> = (0..64).filter_map(|number| registers.get(number)).collect();
                    (true, all)
                });
                let stack = s.user_stack.map(|(bytes, used)| {
                    let bytes = bytes.as_slice();
                    (used as usize, checksum(&bytes[..used as usize]))
                });
                let chain = s
                    .callchain
                    .map(|chain| (0..chain.len()).map(|i| chain.get(i).unwrap()).collect());
                let chain: Vec<u64> = chain.unwrap_or_default();
                format!(
                    "sample of {attr_index} {:?} ip={:#x} {} {} addr={:?} id={:?} cpu={:?} \
                     period={} chain={chain:x?} regs={registers:x?} stack={stack:?} raw={:?} phys={:?}",
                    s.cpu_mode,
                    s.ip.unwrap(),
                    s.pid.unwrap(),
                    s.tid.unwrap(),
                    s.addr,
                    s.id,
                    s.cpu,
                    s.period.unwrap_or(fixed_period),
                    s.raw.map(|raw| checksum(&raw.as_slice())),
                    s.phys_addr,
                )
            }
            EventRecord::Mmap(m) => their_mmap(
                m.pid,
                m.tid,
                (m.address, m.length, m.page_offset),
                &m.path.as_slice(),
                "None None",
            ),
            EventRecord::Mmap2(m) => {
                let id = match &m.file_id {
                    Mmap2FileId::BuildId(id) => Some(id.clone()),
                    Mmap2FileId::InodeAndVersion(_) => None,
                };
                let rest = format!("{:?} {id:?}", Some(m.protection));
                their_mmap(
                    m.pid,
                    m.tid,
                    (m.address, m.length, m.page_offset),
                    &m.path.as_slice(),
                    &rest,
                )
            }
            EventRecord::Comm(c) => format!(
                "comm {} {} {:?} {}",
                c.pid,
                c.tid,
                String::from_utf8_lossy(&c.name.as_slice()),
                c.is_execve
            ),
            EventRecord::Fork(t) => format!(
                "fork {} {} {} {} {}",
                t.pid, t.tid, t.ppid, t.ptid, t.timestamp
            ),
            EventRecord::Exit(t) => format!(
                "exit {} {} {} {} {}",
                t.pid, t.tid, t.ppid, t.ptid, t.timestamp
            ),
            EventRecord::Lost(lost) => format!("lost {}", lost.count),
            _ => continue,
        };
        lines.push((time.filter(|&time| time != 0), line));
    }
    lines
}

fn their_mmap(pid: i32, tid: i32, range: (u64, u64, u64), path: &[u8], rest: &str) -> String {
    let path = String::from_utf8_lossy(path);
    let (address, length, offset) = range;
    format!("mmap {pid} {tid} {address:#x} {length:#x} {offset:#x} {path:?} {rest}")
}

/// Records with `args`, reads with both, and compares. Returns our lines.
fn check(args: &[&str]) -> Option<Lines> {
    let directory = tempfile::tempdir().unwrap();
    let path = perf_record(directory.path(), args, BUSY)?;
    let ours = our_lines(&path);
    let theirs = their_lines(&path, args.contains(&"-"));
    let times: Vec<_> = ours.iter().filter_map(|(time, _)| *time).collect();
    assert!(times.is_sorted() || breaks_order(&path), "{args:?}");
    // It parses switches in CPU-wide mode differently, and may order records of one time, and those
    // without a time, differently.
    let comparable = |lines: &Lines| {
        let mut lines: Vec<_> = lines
            .iter()
            .filter(|(_, line)| !line.starts_with("switch"))
            .cloned()
            .collect();
        lines.sort();
        lines
    };
    let (our, their) = (comparable(&ours), comparable(&theirs));
    for (our, their) in our.iter().zip(&their) {
        assert_eq!(our, their, "{args:?}");
    }
    assert_eq!(our.len(), their.len(), "{args:?}");
    let samples = ours.iter().filter(|(_, line)| line.starts_with("sample"));
    assert!(samples.count() > 10, "{args:?}");
    Some(ours)
}

/// Whether records come in later rounds than allowed (docs/format.md), by perf's own message. This
/// happens if a CPU is delayed while it writes one.
fn breaks_order(path: &Path) -> bool {
    let said = run_perf(&["script", "-i", &path.to_string_lossy()]).unwrap();
    String::from_utf8_lossy(&said.stderr).contains("out of order")
}

#[test]
fn one_event_with_frame_pointers() {
    check(&["-e", "cpu-clock", "-F", "999", "-g"]);
    check(&["-e", "cpu-clock:u", "-c", "1000000", "-g"]);
    check(&["-e", "task-clock", "-F", "999"]);
}

#[test]
fn stack_dumps() {
    check(&["-e", "cpu-clock", "-F", "999", "--call-graph", "dwarf"]);
    check(&[
        "-e",
        "cpu-clock",
        "-F",
        "499",
        "--call-graph",
        "dwarf,65528",
    ]);
}

#[test]
fn several_events() {
    // A clock's period is nanoseconds. With few of them, interrupts delay the writing of records,
    // and then rounds do not determine their order.
    let events = "cpu-clock/period=1000000/,page-faults/period=10/,context-switches/period=1/";
    let Some(lines) = check(&["-e", events, "-g"]) else {
        return;
    };
    assert!(
        lines
            .iter()
            .any(|(_, line)| line.starts_with("sample of 0"))
    );
    check(&[
        "-e",
        "cpu-clock/period=1000000/",
        "-e",
        "page-faults/period=10/",
        "--call-graph",
        "dwarf",
        "-d",
    ]);
}

#[test]
fn compressed() {
    check(&[
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "-z",
        "--call-graph",
        "dwarf",
    ]);
    check(&["-e", "cpu-clock", "-F", "5000", "-z22", "-g"]);
}

#[test]
fn pipe_form() {
    check(&["-e", "cpu-clock", "-F", "999", "-g", "-o", "-"]);
    check(&[
        "-e",
        "cpu-clock,page-faults",
        "-F",
        "999",
        "--call-graph",
        "dwarf",
        "-o",
        "-",
    ]);
}

#[test]
fn many_kinds_of_fields_and_records() {
    check(&[
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "-g",
        "-d",
        "-T",
        "--phys-data",
        "--switch-events",
        "--namespaces",
        "--buildid-mmap",
    ]);
    check(&[
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "-I",
        "-a",
        "--switch-events",
    ]);
    check(&[
        "-e",
        "cpu-clock",
        "-F",
        "999",
        "--data-page-size",
        "--code-page-size",
        "--clockid",
        "mono",
    ]);
}

/// perf's own output of each sample's counters: "..... id 0000000000000d91, value 00000000000f500b,
/// lost 0".
#[test]
fn counter_groups() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["-e", "{cpu-clock,page-faults}:S", "-c", "1000000"];
    let Some(path) = perf_record(directory.path(), &args, BUSY) else {
        return;
    };
    let mut recording = Recording::open(&path).unwrap();
    let mut ours = Vec::new();
    while let Some(record) = recording.next() {
        if let Record::Sample(sample) = record {
            let read = sample.read.unwrap();
            ours.extend(read.iter().map(|value| (value.id.unwrap(), value.value)));
        }
    }
    let output = run_perf(&["script", "-D", "-i", &path.to_string_lossy()]).unwrap();
    let dump = String::from_utf8_lossy(&output.stdout);
    let theirs: Vec<(u64, u64)> = dump
        .lines()
        .filter_map(|line| line.strip_prefix("..... id "))
        .map(|line| {
            let (id, rest) = line.split_once(", value ").unwrap();
            let value = rest.split(',').next().unwrap();
            let number = |text| u64::from_str_radix(text, 16).unwrap();
            (number(id), number(value))
        })
        .collect();
    assert!(ours.len() > 20, "{dump}");
    assert_eq!(ours, theirs);
}

#[test]
fn features() {
    let directory = tempfile::tempdir().unwrap();
    let args = ["-e", "cpu-clock", "-F", "999", "-g", "-k", "mono"];
    let Some(path) = perf_record(directory.path(), &args, BUSY) else {
        return;
    };
    let recording = Recording::open(&path).unwrap();
    let ours = recording.features();
    let theirs = PerfFileReader::parse_file(BufReader::new(File::open(&path).unwrap())).unwrap();
    let theirs = theirs.perf_file;
    let text = |text: Option<&str>| text.map(str::to_owned);
    assert_eq!(ours.hostname, text(theirs.hostname().unwrap()));
    assert_eq!(ours.os_release, text(theirs.os_release().unwrap()));
    assert_eq!(ours.version, text(theirs.perf_version().unwrap()));
    assert_eq!(ours.arch, text(theirs.arch().unwrap()));
    assert_eq!(ours.cpu_desc, text(theirs.cpu_desc().unwrap()));
    assert_eq!(ours.cpu_id, text(theirs.cpu_id().unwrap()));
    assert_eq!(ours.total_memory, theirs.total_mem().unwrap());
    let cpus = theirs.nr_cpus().unwrap().unwrap();
    let our_cpus = ours.nr_cpus.unwrap();
    assert_eq!(our_cpus.online, cpus.nr_cpus_online);
    assert_eq!(our_cpus.available, cpus.nr_cpus_available);
    let command_line = theirs.cmdline().unwrap().unwrap();
    assert_eq!(ours.command_line, command_line);
    let time = theirs.sample_time_range().unwrap().unwrap();
    let range = (time.first_sample_time, time.last_sample_time);
    assert_eq!(ours.sample_time, Some(range));
    let clock = theirs.clock_data().unwrap().unwrap();
    let our_clock = ours.clock.unwrap();
    assert_eq!(our_clock.clockid, clock.clockid);
    assert_eq!(our_clock.wall_clock, clock.wall_clock_ns);
    assert_eq!(our_clock.clock, clock.clockid_time_ns);
    let build_ids = theirs.build_ids().unwrap();
    assert_eq!(ours.build_ids.len(), build_ids.len());
    for module in &ours.build_ids {
        let id = module.build_id.as_bytes();
        assert!(
            build_ids.values().any(|theirs| theirs.build_id == id),
            "{module:?}"
        );
    }
    let [event] = recording.events() else {
        panic!("one event");
    };
    assert_eq!(Some(&*event.name), theirs.event_attributes()[0].name());
}
