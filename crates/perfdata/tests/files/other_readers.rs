//! The files of our writer open in other tools: perf always, samply if it is installed.

#![allow(clippy::unwrap_used, clippy::print_stderr)]

use std::fs::File;
use std::path::Path;
use std::process::Command;

use crate::common::{BUSY, perf_record, run_perf};
use prof_model::{Quality, StackEnd, StackNote};
use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{
    AttrFlags, EventDescription, Features, Record, Recording, SampleType, Writer, context,
};

/// Turns perf's recording with stack dumps into one as prof writes it: chains and notes for
/// dumps, identifiers, feature 200. Returns the number of samples of each event.
fn rewrite(from: &Path, to: &Path) -> Vec<usize> {
    let mut recording = Recording::open(from).unwrap();
    let mut events: Vec<EventDescription> = recording.events().to_vec();
    for (number, event) in events.iter_mut().enumerate() {
        event.attr = event.attr.unwound();
        event.attr.sample_type = event.attr.sample_type | SampleType::IDENTIFIER;
        event.attr.flags = event.attr.flags | AttrFlags::SAMPLE_ID_ALL;
        if event.ids.is_empty() {
            event.ids = vec![100 + number as u64];
        }
    }
    let mut writer = Writer::create(File::create(to).unwrap(), &events).unwrap();
    let mut features = recording.features().clone();
    let (mut samples, mut times) = (vec![0; events.len()], None);
    let mut bytes = Vec::new();
    while let Some(record) = recording.next() {
        bytes.clear();
        let stamp = record.stamp();
        let event = &events[stamp.event];
        let id = event.ids[0];
        match record {
            Record::Sample(sample) => {
                let mut chain = vec![context::USER, sample.ip];
                if sample.mode.is_kernel() {
                    let registers = sample.user_registers().unwrap();
                    chain = vec![context::KERNEL, sample.ip, context::USER];
                    chain.push(registers.get(8).unwrap());
                }
                // An address in the same function, or near it: perf takes it for a caller.
                chain.push(chain.last().unwrap() - 1);
                let raw = encode::stack_note(StackNote::new(StackEnd::Root));
                let new = NewSample {
                    id,
                    callchain: &chain,
                    raw: &raw,
                    ..NewSample::without_stack(&sample)
                };
                encode::sample(&mut bytes, &event.attr, &new).unwrap();
                samples[stamp.event] += 1;
                let first = times.map_or(new.time, |(first, _)| first);
                times = Some((first, new.time));
            }
            Record::Mmap(mut mmap) => {
                mmap.stamp.id = Some(id);
                encode::mmap2(&mut bytes, &event.attr, &mmap).unwrap();
            }
            Record::Comm(mut comm) => {
                comm.stamp.id = Some(id);
                encode::comm(&mut bytes, &event.attr, &comm).unwrap();
            }
            Record::Fork(mut task) => {
                task.stamp.id = Some(id);
                encode::fork(&mut bytes, &event.attr, &task);
            }
            Record::Exit(mut task) => {
                task.stamp.id = Some(id);
                encode::exit(&mut bytes, &event.attr, &task);
            }
            _ => {}
        }
        writer.write(&bytes).unwrap();
    }
    bytes.clear();
    encode::finished_round(&mut bytes);
    writer.write(&bytes).unwrap();
    features.sample_time = times;
    features.quality = Some(Quality {
        samples: samples.iter().sum::<usize>() as u64,
        ..Quality::default()
    });
    writer.finish(&features).unwrap();
    samples
}

fn check_perf(args: &[&str], file: &Path) -> Option<String> {
    let file = file.to_string_lossy().into_owned();
    let args: Vec<&str> = args.iter().copied().chain(["-i", &file]).collect();
    let output = run_perf(&args)?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "perf {args:?}: {stderr}");
    // Complaints about the machine, not about the file.
    let complaints: Vec<_> = stderr
        .lines()
        .filter(|line| !line.trim().is_empty())
        .filter(|line| !line.contains("addr2line") && !line.contains("BFD:"))
        .collect();
    assert!(complaints.is_empty(), "perf {args:?}: {stderr}");
    Some(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[test]
fn perf_and_samply_open_our_recordings() {
    check_tools("cpu-clock");
    check_tools("cpu-clock:u");
    check_tools("cpu-clock,page-faults");
}

fn check_tools(events: &str) {
    let directory = tempfile::tempdir().unwrap();
    let args = ["-e", events, "-F", "999", "--call-graph", "dwarf"];
    let Some(theirs) = perf_record(directory.path(), &args, BUSY) else {
        return;
    };
    let ours = directory.path().join("prof.data");
    let counts = rewrite(&theirs, &ours);
    let samples: usize = counts.iter().sum();
    assert!(samples > 10, "{samples} samples");
    let size = |path: &Path| path.metadata().unwrap().len();
    assert!(size(&ours) < size(&theirs) / 4);

    let fields = "comm,pid,tid,time,event,ip,sym,dso";
    let script = check_perf(&["script", "-F", fields], &ours).unwrap();
    let blocks = script.split("\n\n");
    let blocks: Vec<_> = blocks.filter(|block| !block.trim().is_empty()).collect();
    assert_eq!(blocks.len(), samples);
    for block in blocks {
        assert!(
            events.split(',').any(|event| block.contains(event)),
            "{block}"
        );
        assert!(
            block.lines().count() >= 3,
            "an event and two frames: {block}"
        );
    }
    let report = check_perf(&["report", "--stdio", "--no-children"], &ours).unwrap();
    assert!(report.contains("# Total Lost Samples: 0"), "{report}");
    for event in events.split(',') {
        let of_event = format!("of event '{event}'");
        assert!(report.contains(&of_event), "{report}");
    }
    let header = check_perf(&["report", "--header-only"], &ours).unwrap();
    assert!(header.contains("# cmdline : "), "{header}");
    assert!(header.contains("time of last sample : "), "{header}");
    let ids = check_perf(&["buildid-list"], &ours).unwrap();
    assert_eq!(Some(ids), check_perf(&["buildid-list"], &theirs));
    check_perf(&["script"], &ours);
    let dump = check_perf(&["script", "-D"], &ours).unwrap();
    assert!(!dump.contains("unhandled"), "{dump}");
    // samply shows all events but the first as markers.
    check_samply(&ours, counts[0]);
}

fn check_samply(file: &Path, samples: usize) {
    let out = file.with_extension("json");
    let tool = ["samply", "/tmp/peers/bin/samply"]
        .into_iter()
        .find(|tool| Command::new(tool).arg("--version").output().is_ok());
    let Some(tool) = tool else {
        eprintln!("NOT TESTED: samply is missing");
        return;
    };
    let output = Command::new(tool)
        .args(["import", "--save-only", "-o"])
        .args([&out, file])
        .output()
        .unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let json: serde_json::Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
    let threads = json["threads"].as_array().unwrap();
    let lengths = threads
        .iter()
        .filter_map(|thread| thread["samples"]["length"].as_u64());
    assert_eq!(lengths.sum::<u64>(), samples as u64, "{stderr}");
}

#[test]
fn perf_reads_a_recording_without_features_and_samples() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("prof.data");
    let mut event = EventDescription {
        name: "cpu-clock".into(),
        ids: vec![1],
        ..EventDescription::default()
    };
    event.attr.kind = 1;
    event.attr.sample_type = SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME;
    event.attr.flags = AttrFlags::SAMPLE_ID_ALL;
    let writer = Writer::create(File::create(&path).unwrap(), &[event]).unwrap();
    writer.finish(&Features::default()).unwrap();
    let Some(output) = run_perf(&["report", "--stdio", "-i", &path.to_string_lossy()]) else {
        return;
    };
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("has no samples"));
}
