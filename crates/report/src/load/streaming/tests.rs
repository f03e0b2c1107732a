use std::ffi::OsStr;
use std::io::Cursor;

use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{
    Attr, AttrFlags, Comm, CpuMode, EventDescription, Features, Mmap, SampleType, Stamp, Writer,
    context,
};

use super::*;

const TASK: i32 = 7;

fn event() -> EventDescription {
    const CPU_CLOCK: u64 = 0;
    const SOFTWARE: u32 = 1;
    let mut attr = Attr::parse(&[0; Attr::SIZE]).unwrap();
    (attr.kind, attr.config) = (SOFTWARE, CPU_CLOCK);
    attr.sample_type = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::PERIOD
        | SampleType::CALLCHAIN;
    attr.flags = AttrFlags::SAMPLE_ID_ALL;
    EventDescription {
        attr,
        name: "cpu-clock".into(),
        ids: vec![1],
    }
}

/// The start of a file, and then a process with a module.
fn begin() -> StreamingProfile {
    let events = [event()];
    let start = Writer::create_pipe(Cursor::new(Vec::new()), &events, &Features::default());
    let start = start.unwrap().finish(&Features::default()).unwrap();
    let mut streaming = StreamingProfile::new(start.into_inner()).unwrap();
    let stamp = Stamp {
        time: Some(1),
        ..Stamp::default()
    };
    let mut records = comm(TASK, "server");
    let mmap = Mmap {
        stamp,
        mode: CpuMode::User,
        pid: TASK,
        tid: TASK,
        address: 0x1000,
        length: 1 << 40,
        file_offset: 0,
        executable: true,
        protection: None,
        flags: None,
        identity: None,
        build_id: None,
        path: OsStr::new("/bin/server"),
    };
    encode::mmap2(&mut records, &events[0].attr, &mmap).unwrap();
    streaming.push(records);
    streaming
}

fn comm(tid: i32, name: &str) -> Vec<u8> {
    let mut record = Vec::new();
    let comm = Comm {
        stamp: Stamp {
            time: Some(1),
            ..Stamp::default()
        },
        pid: TASK,
        tid,
        exec: false,
        name: OsStr::new(name),
    };
    encode::comm(&mut record, &event().attr, &comm).unwrap();
    record
}

/// Samples of 1 ms, each with a stack of these addresses, innermost first.
fn samples(stacks: impl IntoIterator<Item = Vec<u64>>) -> Vec<u8> {
    samples_of(TASK, stacks)
}

fn samples_of(tid: i32, stacks: impl IntoIterator<Item = Vec<u64>>) -> Vec<u8> {
    let attr = event().attr;
    let mut records = Vec::new();
    for stack in stacks {
        let mut callchain = vec![context::USER];
        callchain.extend(&stack);
        let sample = NewSample {
            mode: CpuMode::User,
            ip: stack[0],
            pid: TASK,
            tid,
            time: 2,
            id: 1,
            period: 1_000_000,
            callchain: &callchain,
            ..NewSample::default()
        };
        encode::sample(&mut records, &attr, &sample).unwrap();
    }
    records
}

fn total(streaming: &StreamingProfile, span: Span) -> Weight {
    let mut total = Weight::default();
    let profile = streaming.profile(span);
    let samples = profile.samples.iter();
    samples.for_each(|sample| total += Weight::of(&sample));
    total
}

#[test]
fn records_come_in_pieces() {
    let mut streaming = begin();
    for _ in 0..3 {
        streaming.push(samples([vec![0x2000, 0x3000]]));
    }
    let profile = streaming.profile(Span::All);
    assert_eq!(profile.samples.len(), 1, "they are equal");
    let sample = profile.samples.iter().next().unwrap();
    assert_eq!(&profile.names[sample.name], "server");
    assert_eq!((sample.period, sample.count), (3_000_000, 3));
    assert_eq!(profile.events[0].name, "cpu-clock");
    assert_eq!(profile.quality.samples, 3);
    streaming.pass(Duration::from_secs(5));
    assert_eq!(total(&streaming, Span::Recent).value, 1_500_000);
    assert_eq!(total(&streaming, Span::All).value, 3_000_000);
}

#[test]
fn a_process_has_the_name_of_a_main_thread_that_has_no_samples() {
    let mut streaming = begin();
    streaming.push(comm(8, "worker"));
    streaming.push(samples_of(8, [vec![0x2000]]));
    let profile = streaming.profile(Span::All);
    let sample = profile.samples.iter().next().unwrap();
    assert_eq!(&profile.names[sample.name], "worker");
    assert_eq!(&profile.names[profile.process_names()[&TASK]], "server");
}

#[test]
fn memory_does_not_grow_with_distinct_stacks_and_nothing_goes_astray() {
    let mut streaming = begin();
    let mut most = 0;
    for round in 0..30_u64 {
        let distinct =
            (0..10_000).map(|at| vec![0x2000 + at % 100, 0x10_0000 + round * 10_000 + at]);
        streaming.push(samples(distinct));
        // One that is hot, whose stack must survive all of this.
        streaming.push(samples((0..100).map(|_| vec![0x2abc, 0x2def])));
        if round % 10 == 9 {
            most = most.max(streaming.profile(Span::All).stacks.len());
        }
    }
    assert!(most < 500_000, "{most} stacks of 600,000");
    let mut all = total(&streaming, Span::All);
    all += streaming.left_out();
    assert_eq!(all.samples, 30 * 10_100);
    let profile = streaming.profile(Span::All);
    let hot = profile
        .samples
        .iter()
        .max_by_key(|sample| sample.count)
        .unwrap();
    assert_eq!(hot.count, 3_000);
    assert_eq!(&profile.names[hot.name], "server");
    let frames: Vec<_> = profile
        .stacks
        .frames(hot.stack)
        .map(|id| profile.frames[id])
        .collect();
    // A chain of frame pointers, which does not say whether it is whole: the mark of that is
    // outermost.
    assert_eq!(frames.len(), 3, "{frames:?}");
}
