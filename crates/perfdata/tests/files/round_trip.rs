//! Encoding and writing, then reading, gives the same values.
#![allow(clippy::unwrap_used)]

use std::ffi::OsStr;
use std::io::Cursor;

use prof_filemap::MappedFile;
use prof_model::{BuildId, FileIdentity, Quality, RegisterAbi, StackEnd, StackNote, UserRegisters};
use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{
    Attr, AttrFlags, ClockData, Comm, CpuCounts, CpuMode, EventDescription, Features, Lost, Mmap,
    ModuleBuildId, Record, RecordFormat, Recording, SampleDetails, SampleType, Stamp, Task, Writer,
    parts_without_symbols, write_with_symbols,
};

/// An event whose samples hold these fields.
fn event(sample_type: u64, ids: &[u64]) -> EventDescription {
    EventDescription {
        attr: Attr {
            kind: 1,
            sample_type: SampleType(sample_type),
            flags: AttrFlags::SAMPLE_ID_ALL,
            period_or_frequency: 17,
            sample_regs_user: 0b1_0000_0101,
            sample_regs_intr: 0b10,
            branch_sample_type: 1 << 17,
            ..Attr::default()
        },
        name: "cpu-clock".into(),
        ids: ids.to_vec(),
    }
}

const EVERY_FIELD: u64 = (1 << 25) - 1;

fn rich_sample() -> NewSample<'static> {
    NewSample {
        mode: CpuMode::User,
        exact_ip: true,
        ip: 0x1234,
        pid: 5,
        tid: 6,
        time: 1_000,
        addr: 77,
        id: 42,
        stream_id: 43,
        cpu: 3,
        period: 99,
        // The value alone, for an empty read format.
        read: &[8, 0, 0, 0, 0, 0, 0, 0],
        callchain: &[prof_perfdata::context::USER, 0x1234, 0x5678],
        raw: b"0123",
        user_registers: UserRegisters::new(RegisterAbi::Bits64, 0b1_0000_0101, [10, 11, 12]),
        user_stack: b"stack",
        interrupt_registers: UserRegisters::new(RegisterAbi::Bits32, 0b10, [20]),
        details: SampleDetails {
            weight: Some(1),
            data_src: Some(2),
            transaction: Some(3),
            phys_addr: Some(4),
            cgroup: Some(5),
            data_page_size: Some(6),
            code_page_size: Some(7),
        },
        aux: b"auxiliary",
        ..NewSample::default()
    }
}

/// Encodes `new` for every subset of one field and all but one field, parses it, and compares the
/// result with the input.
#[test]
fn samples_of_every_sample_type() {
    let ones = (0..25).map(|bit| 1 << bit);
    let types = ones.clone().chain(ones.map(|bit| EVERY_FIELD & !bit));
    for sample_type in types.chain([0, EVERY_FIELD]) {
        check_sample(sample_type, &rich_sample());
    }
}

#[expect(clippy::too_many_lines, reason = "one assertion or line per field")]
fn check_sample(sample_type: u64, new: &NewSample<'_>) {
    let event = event(sample_type, &[42]);
    let format = RecordFormat::new(std::slice::from_ref(&event)).unwrap();
    let mut bytes = Vec::new();
    encode::sample(&mut bytes, &event.attr, new).unwrap();
    assert_eq!(bytes.len() % 8, 0);
    let Record::Sample(sample) = format.parse(&bytes).unwrap() else {
        panic!("no sample");
    };
    let mut changed = bytes.clone();
    event.attr.set_sample_time(&mut changed, 1 << 40);
    event.attr.set_sample_period(&mut changed, 1 << 41);
    let Record::Sample(with_others) = format.parse(&changed).unwrap() else {
        panic!("no sample");
    };
    let mut expected = sample;
    expected.time = sample.time.and(Some(1 << 40));
    if event.attr.sample_type.contains(SampleType::PERIOD) {
        expected.period = 1 << 41;
    }
    assert_eq!(with_others, expected);
    let has = |field| event.attr.sample_type.contains(field);
    let optional = |field, value: u64| has(field).then_some(value);
    let context = format!("{sample_type:#x}");
    assert_eq!((sample.mode, sample.exact_ip), (new.mode, new.exact_ip));
    assert_eq!(
        sample.ip,
        optional(SampleType::IP, new.ip).unwrap_or(0),
        "{context}"
    );
    let ids = if has(SampleType::TID) {
        (5, 6)
    } else {
        (-1, -1)
    };
    assert_eq!((sample.pid, sample.tid), ids, "{context}");
    assert_eq!(
        sample.time,
        optional(SampleType::TIME, new.time),
        "{context}"
    );
    assert_eq!(format.time(&bytes), sample.time, "{context}");
    assert_eq!(
        sample.addr,
        optional(SampleType::ADDR, new.addr),
        "{context}"
    );
    assert_eq!(
        sample.stream_id,
        optional(SampleType::STREAM_ID, new.stream_id)
    );
    let identified = has(SampleType::ID) || has(SampleType::IDENTIFIER);
    assert_eq!(sample.id, identified.then_some(42), "{context}");
    assert_eq!(sample.cpu, has(SampleType::CPU).then_some(3), "{context}");
    assert_eq!(
        sample.period,
        optional(SampleType::PERIOD, 99).unwrap_or(17)
    );
    let read = sample
        .read
        .map(|read| read.iter().map(|value| value.value).collect());
    assert_eq!(read, has(SampleType::READ).then(|| vec![8]), "{context}");
    let chain: Vec<u64> = sample.callchain.collect();
    let expected = if has(SampleType::CALLCHAIN) {
        new.callchain
    } else {
        &[]
    };
    assert_eq!(chain, expected, "{context}");
    assert_eq!(
        sample.raw,
        has(SampleType::RAW).then_some(new.raw),
        "{context}"
    );
    let branches = sample.branches.map(|branches| branches.iter().count());
    assert_eq!(
        branches,
        has(SampleType::BRANCH_STACK).then_some(0),
        "{context}"
    );
    let registers = new.user_registers.filter(|_| has(SampleType::REGS_USER));
    assert_eq!(sample.user_registers(), registers, "{context}");
    let stack = sample.user_stack.map(|stack| (stack.bytes, stack.capacity));
    assert_eq!(
        stack,
        has(SampleType::STACK_USER).then_some((&b"stack"[..], 8))
    );
    let registers = new
        .interrupt_registers
        .filter(|_| has(SampleType::REGS_INTR));
    assert_eq!(sample.interrupt_registers(), registers, "{context}");
    let weighed = has(SampleType::WEIGHT) || has(SampleType::WEIGHT_STRUCT);
    let details = SampleDetails {
        weight: weighed.then_some(1),
        data_src: optional(SampleType::DATA_SRC, 2),
        transaction: optional(SampleType::TRANSACTION, 3),
        phys_addr: optional(SampleType::PHYS_ADDR, 4),
        cgroup: optional(SampleType::CGROUP, 5),
        data_page_size: optional(SampleType::DATA_PAGE_SIZE, 6),
        code_page_size: optional(SampleType::CODE_PAGE_SIZE, 7),
    };
    assert_eq!(sample.details, details, "{context}");
    let aux = sample.aux.map(|aux| aux.strip_suffix(&[0; 7]).unwrap());
    assert_eq!(aux, has(SampleType::AUX).then_some(new.aux), "{context}");
    // Cut short anywhere, it is an error and nothing worse.
    for length in 0..bytes.len() {
        assert!(
            format.parse(&bytes[..length]).is_err(),
            "{context} {length}"
        );
    }
}

#[test]
fn a_stack_note_survives_and_foreign_bytes_are_none() {
    let note = StackNote {
        remote_read: 500,
        elided: 70_000,
        elided_at: 4_000,
        ..StackNote::new(StackEnd::Stale)
    };
    let event = event((SampleType::RAW | SampleType::IP).0, &[]);
    let format = RecordFormat::new(std::slice::from_ref(&event)).unwrap();
    let check = |raw: &[u8], expected: Option<StackNote>| {
        let mut bytes = Vec::new();
        let new = NewSample {
            raw,
            ..NewSample::default()
        };
        encode::sample(&mut bytes, &event.attr, &new).unwrap();
        let Record::Sample(sample) = format.parse(&bytes).unwrap() else {
            panic!("no sample");
        };
        assert_eq!(sample.stack_note(), expected);
    };
    check(&encode::stack_note(note), Some(note));
    for end in StackEnd::ALL {
        check(
            &encode::stack_note(StackNote::new(end)),
            Some(StackNote::new(end)),
        );
    }
    check(b"", None);
    check(&[0; 12], None);
    check(&[0xd7; 12], None);
    check(&[encode::stack_note(note); 2].concat(), None);
}

#[test]
fn a_sample_too_long_for_a_record_is_refused_whole() {
    let fields = SampleType::IDENTIFIER
        | SampleType::IP
        | SampleType::TID
        | SampleType::TIME
        | SampleType::CPU
        | SampleType::PERIOD
        | SampleType::CALLCHAIN
        | SampleType::RAW;
    let attr = event(fields.0, &[1]).attr;
    let addresses = vec![1; 9_000];
    let note = encode::stack_note(StackNote::new(StackEnd::FrameLimit));
    let mut bytes = b"before".to_vec();
    let new = |count| NewSample {
        callchain: &addresses[..count],
        raw: &note,
        ..NewSample::default()
    };
    assert!(encode::sample(&mut bytes, &attr, &new(9_000)).is_err());
    assert_eq!(bytes, b"before");
    encode::sample(&mut bytes, &attr, &new(NewSample::MAX_CHAIN)).unwrap();
}

fn stamp() -> Stamp {
    Stamp {
        event: 1,
        pid: Some(8),
        tid: Some(9),
        time: Some(1_234),
        id: Some(43),
        stream_id: Some(3),
        cpu: Some(7),
    }
}

fn mmap(path: &str) -> Mmap<'_> {
    Mmap {
        stamp: stamp(),
        mode: CpuMode::User,
        pid: 8,
        tid: 9,
        address: 0x1000,
        length: 0x2000,
        file_offset: 0x3000,
        executable: true,
        protection: Some(5),
        flags: Some(2),
        build_id: None,
        identity: None,
        path: OsStr::new(path),
    }
}

/// Parses `bytes` for two events of which the second has the id 43.
fn parsed(bytes: &[u8], check: impl Fn(Record<'_>)) {
    let all = SampleType::IDENTIFIER
        | SampleType::TID
        | SampleType::TIME
        | SampleType::STREAM_ID
        | SampleType::CPU;
    let format = RecordFormat::new(&[event(all.0, &[41]), event(all.0, &[42, 43])]).unwrap();
    assert_eq!(bytes.len() % 8, 0);
    assert_eq!(format.time(bytes), Some(1_234));
    check(format.parse(bytes).unwrap());
    for length in 0..bytes.len() {
        assert!(format.parse(&bytes[..length]).is_err());
    }
}

fn attr() -> Attr {
    let all = SampleType::IDENTIFIER
        | SampleType::TID
        | SampleType::TIME
        | SampleType::STREAM_ID
        | SampleType::CPU;
    event(all.0, &[]).attr
}

#[test]
fn mappings_of_every_kind() {
    let build_id = BuildId::new(&[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]);
    let identity = FileIdentity {
        device: (8, 1),
        inode: 99,
        generation: 3,
    };
    let variants = [
        mmap("/bin/sh"),
        mmap(""),
        mmap("seven77"),
        Mmap {
            build_id,
            ..mmap("/lib/x.so")
        },
        Mmap {
            identity: Some(identity),
            ..mmap("/lib/x.so")
        },
        Mmap {
            executable: false,
            protection: Some(1),
            ..mmap("/usr/share/data")
        },
        Mmap {
            mode: CpuMode::Kernel,
            pid: -1,
            ..mmap("[kernel.kallsyms]_text")
        },
    ];
    for mmap in variants {
        let mut bytes = Vec::new();
        encode::mmap2(&mut bytes, &attr(), &mmap).unwrap();
        parsed(&bytes, |record| assert_eq!(record, Record::Mmap(mmap)));
    }
    let long = "x".repeat(70_000);
    assert!(encode::mmap2(&mut Vec::new(), &attr(), &mmap(&long)).is_err());
}

/// The kernel marks other tools' records while a session requests build ids.
#[test]
fn alleged_build_ids_may_be_device_and_inode() {
    const MISC: usize = 5;
    const BUILD_ID: u8 = 1 << 6;
    for device in [(254, 1), (8, 1), (0, 30), (259, 2)] {
        let identity = Some(FileIdentity {
            device,
            inode: 99,
            generation: 3,
        });
        let mmap = Mmap {
            identity,
            ..mmap("/lib/x.so")
        };
        let mut bytes = Vec::new();
        encode::mmap2(&mut bytes, &attr(), &mmap).unwrap();
        bytes[MISC] |= BUILD_ID;
        parsed(&bytes, |record| assert_eq!(record, Record::Mmap(mmap)));
    }
}

#[test]
fn side_band_records() {
    let check = |encode: &dyn Fn(&mut Vec<u8>), expected: Record<'_>| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        parsed(&bytes, |record| assert_eq!(record, expected));
    };
    for exec in [false, true] {
        let comm = Comm {
            stamp: stamp(),
            pid: 8,
            tid: 9,
            exec,
            name: OsStr::new("fifteen letters"),
        };
        check(
            &|out| encode::comm(out, &attr(), &comm).unwrap(),
            Record::Comm(comm),
        );
        let task = Task {
            stamp: stamp(),
            pid: 8,
            tid: 9,
            parent_pid: 1,
            parent_tid: 2,
            time: 1_234,
            existed: exec,
        };
        check(&|out| encode::fork(out, &attr(), &task), Record::Fork(task));
        check(&|out| encode::exit(out, &attr(), &task), Record::Exit(task));
    }
    let mut bytes = Vec::new();
    encode::read(&mut bytes, &attr(), &stamp(), 5_678);
    parsed(&bytes, |record| {
        let Record::Read(read) = record else {
            panic!("{record:?}");
        };
        let values: Vec<_> = read.values.iter().collect();
        assert_eq!((Some(read.pid), Some(read.tid)), (stamp().pid, stamp().tid));
        // The attribute here has no ids.
        assert_eq!((values.len(), values[0].value), (1, 5_678));
    });
    let lost = Lost {
        stamp: stamp(),
        count: 11,
    };
    check(&|out| encode::lost(out, &attr(), &lost), Record::Lost(lost));
    check(
        &|out| encode::lost_samples(out, &attr(), &lost),
        Record::LostSamples(lost),
    );
}

#[test]
fn attributes_of_every_size() {
    let attr = Attr {
        kind: 1,
        config: 2,
        period_or_frequency: 3,
        sample_type: SampleType(4),
        read_format: prof_perfdata::ReadFormat(5),
        flags: AttrFlags(6),
        wakeup: 7,
        breakpoint_type: 8,
        config1: 9,
        config2: 10,
        branch_sample_type: 11,
        sample_regs_user: 12,
        sample_stack_user: 13,
        clockid: -14,
        sample_regs_intr: 15,
        aux_watermark: 16,
        sample_max_stack: 17,
        aux_sample_size: 18,
        sig_data: 19,
    };
    let bytes = attr.to_bytes();
    assert_eq!(Attr::parse(&bytes).unwrap(), attr);
    let mut newer = bytes.to_vec();
    newer.extend([0xff; 16]);
    newer[4] = 144;
    assert_eq!(Attr::parse(&newer).unwrap(), attr);
    let mut oldest = bytes[..64].to_vec();
    oldest[4] = 64;
    let parsed = Attr::parse(&oldest).unwrap();
    assert_eq!((parsed.config1, parsed.config2), (9, 0));
    for length in 0..128 {
        assert!(Attr::parse(&bytes[..length]).is_err());
    }
}

fn features() -> Features {
    Features {
        build_ids: vec![
            ModuleBuildId {
                mode: CpuMode::User,
                pid: -1,
                build_id: BuildId::new(&[7; 20]).unwrap(),
                path: "/bin/sh".into(),
            },
            ModuleBuildId {
                mode: CpuMode::Kernel,
                pid: -1,
                build_id: BuildId::new(&[8; 16]).unwrap(),
                path: "[kernel.kallsyms]".into(),
            },
        ],
        hostname: Some("machine".into()),
        os_release: Some("6.18".into()),
        version: Some("prof 0.1".into()),
        arch: Some("x86_64".into()),
        nr_cpus: Some(CpuCounts {
            online: 2,
            available: 4,
        }),
        cpu_desc: Some("A CPU".into()),
        cpu_id: Some("GenuineIntel,6,1".into()),
        total_memory: Some(16 << 20),
        command_line: vec!["prof".into(), "record".into(), String::new().into()],
        has_counts_only: false,
        sample_time: Some((5, 17)),
        clock_resolution: Some(1),
        compression: None,
        clock: Some(ClockData {
            clockid: 1,
            wall_clock: 2,
            clock: 3,
        }),
        quality: Some(Quality {
            samples: 3,
            stacks: StackEnd::ALL.map(|end| (end, 1)).into(),
            ..Quality::default()
        }),
        symbols: Some(b"names".to_vec()),
    }
}

#[test]
fn names_are_added_and_replaced_and_the_rest_stays() {
    const BITS: usize = 72;
    let before = Features {
        symbols: Some(b"from the future".to_vec()),
        ..features()
    };
    let mut file = write(&[3, 1, 0, 2], &before);
    // Feature 201 becomes 202, which is unknown.
    file[BITS + 201 / 8] = 0b101;
    for names in [&b"few"[..], b"more names than before", b""] {
        let mut copy = Vec::new();
        write_with_symbols(&file, names, &mut copy).unwrap();
        assert_eq!(copy[BITS + 201 / 8], 0b111);
        assert!(copy.windows(15).any(|part| part == b"from the future"));
        let expected = Features {
            symbols: Some(names.to_vec()),
            ..before.clone()
        };
        let (found, recording) = samples(copy.clone());
        assert_eq!(found, [(1, 1), (0, 2), (0, 3)]);
        assert_eq!(recording.features(), &expected);
        assert!(!recording.truncated());
        let parts = [&file, &copy].map(|file| parts_without_symbols(file).unwrap());
        assert_eq!(parts[0], parts[1]);
        file = copy;
    }
}

#[test]
fn names_are_only_added_to_whole_files() {
    let file = write(&[1, 2], &features());
    let mut killed = file.clone();
    killed[48..56].fill(0);
    for damaged in [&file[..file.len() - 1], &file[..150], &killed, b"PERFILE2"] {
        let result = write_with_symbols(damaged, b"names", &mut Vec::new());
        assert!(result.is_err(), "{} bytes", damaged.len());
    }
}

/// Writes a file of two events, with a sample at each of `times` (zero ends a round).
fn write(times: &[u64], features: &Features) -> Vec<u8> {
    let fields = (SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME).0;
    let events = [event(fields, &[41]), event(fields, &[42, 43])];
    let mut writer = Writer::create(Cursor::new(Vec::new()), &events).unwrap();
    for (number, &time) in times.iter().enumerate() {
        let mut bytes = Vec::new();
        let sample = NewSample {
            id: 41 + number as u64 % 3,
            ip: number as u64,
            time,
            ..NewSample::default()
        };
        match time {
            0 => encode::finished_round(&mut bytes),
            _ => encode::sample(&mut bytes, &events[0].attr, &sample).unwrap(),
        }
        writer.write(&bytes).unwrap();
    }
    writer.finish(features).unwrap().into_inner()
}

fn samples(bytes: Vec<u8>) -> (Vec<(usize, u64)>, Recording) {
    let mut recording = Recording::from_file(MappedFile::from(bytes)).unwrap();
    let mut samples = Vec::new();
    while let Some(record) = recording.next() {
        let Record::Sample(sample) = record else {
            panic!("{record:?}");
        };
        samples.push((sample.event, sample.time.unwrap()));
    }
    (samples, recording)
}

#[test]
fn a_file_with_everything() {
    let features = features();
    let (samples, recording) = samples(write(&[3, 1, 0, 2, 4, 0], &features));
    assert_eq!(samples, [(1, 1), (0, 2), (0, 3), (1, 4)]);
    assert_eq!(*recording.features(), features);
    assert!(!recording.truncated());
    let events: Vec<_> = recording
        .events()
        .iter()
        .map(|e| (&*e.name, e.ids.len()))
        .collect();
    assert_eq!(events, [("cpu-clock", 1), ("cpu-clock", 2)]);
}

#[test]
fn an_empty_file_is_whole_too() {
    let (samples, recording) = samples(write(&[], &Features::default()));
    assert_eq!(samples, []);
    assert!(!recording.truncated());
    assert_eq!(*recording.features(), Features::default());
}

#[test]
fn flushed_records_survive_a_kill() {
    let fields = (SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME).0;
    let event = event(fields, &[41]);
    let mut file = Cursor::new(Vec::new());
    let mut writer = Writer::create(&mut file, std::slice::from_ref(&event)).unwrap();
    let mut bytes = Vec::new();
    for time in 1..=3 {
        let sample = NewSample {
            id: 41,
            time,
            ..NewSample::default()
        };
        encode::sample(&mut bytes, &event.attr, &sample).unwrap();
    }
    writer.write(&bytes).unwrap();
    writer.flush().unwrap();
    writer.write(&bytes).unwrap();
    drop(writer);
    let (samples, recording) = samples(file.into_inner());
    assert_eq!(samples, [(0, 1), (0, 2), (0, 3)]);
    assert!(recording.truncated());
    assert_eq!(
        recording.events()[0].name,
        "cpu-clock",
        "from its type, the name is not written yet"
    );
}

/// Takes this many bytes, then says that the disk is full.
#[derive(Debug)]
struct SmallDisk {
    bytes: Cursor<Vec<u8>>,
    capacity: usize,
}

impl std::io::Write for SmallDisk {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let start = self.bytes.position() as usize;
        let count = bytes.len().min(self.capacity.saturating_sub(start));
        match count {
            0 if !bytes.is_empty() => Err(std::io::ErrorKind::StorageFull.into()),
            count => self.bytes.write(&bytes[..count]),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl std::io::Seek for SmallDisk {
    fn seek(&mut self, position: std::io::SeekFrom) -> std::io::Result<u64> {
        self.bytes.seek(position)
    }
}

#[test]
fn a_full_disk_leaves_the_records_that_fit() {
    let fields = (SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME).0;
    let event = event(fields, &[41]);
    let mut record = Vec::new();
    let sample = NewSample {
        id: 41,
        time: 5,
        ..NewSample::default()
    };
    encode::sample(&mut record, &event.attr, &sample).unwrap();
    for capacity in [300_000, 300_008, 300_400] {
        let mut disk = SmallDisk {
            bytes: Cursor::new(Vec::new()),
            capacity,
        };
        let mut writer = Writer::create(&mut disk, std::slice::from_ref(&event)).unwrap();
        let mut failed = false;
        for _ in 0..20_000 {
            failed |= writer.write(&record).is_err();
        }
        assert!(failed);
        let error = writer.finish(&Features::default()).unwrap_err();
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
        let (samples, _) = samples(disk.bytes.into_inner());
        assert!(samples.len() > 4_000, "{}", samples.len());
    }
}
