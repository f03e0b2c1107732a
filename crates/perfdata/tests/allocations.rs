//! Reading allocates for its bookkeeping, not for records.
#![allow(clippy::unwrap_used)]

use std::io::Cursor;

use prof_filemap::MappedFile;
use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{
    Attr, AttrFlags, EventDescription, Features, Record, Recording, SampleType, Writer,
};

/// A recording of this many rounds of 1,000 samples each.
fn recording(rounds: u64) -> Vec<u8> {
    let event = EventDescription {
        attr: Attr {
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TIME
                | SampleType::CALLCHAIN
                | SampleType::STACK_USER
                | SampleType::REGS_USER,
            sample_regs_user: 0xff,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        ids: vec![1],
        ..EventDescription::default()
    };
    let mut writer = Writer::create(Cursor::new(Vec::new()), std::slice::from_ref(&event)).unwrap();
    let mut bytes = Vec::new();
    for round in 0..rounds {
        bytes.clear();
        for number in 0..1_000 {
            let sample = NewSample {
                id: 1,
                time: 1 + round * 1_000 + number * 7 % 1_000,
                callchain: &[1, 2, 3],
                user_stack: b"stack",
                ..NewSample::default()
            };
            encode::sample(&mut bytes, &event.attr, &sample).unwrap();
        }
        encode::finished_round(&mut bytes);
        writer.write(&bytes).unwrap();
    }
    writer.finish(&Features::default()).unwrap().into_inner()
}

/// Allocations while the recording is read to its end.
fn allocations(rounds: u64) -> (u64, u64) {
    let mut recording = Recording::from_file(MappedFile::from(recording(rounds))).unwrap();
    let mut samples = 0;
    let info = allocation_counter::measure(|| {
        while let Some(record) = recording.next() {
            if let Record::Sample(sample) = record {
                samples += sample.callchain.len() as u64 / 3;
                sample.user_registers();
            }
        }
    });
    assert_eq!(samples, rounds * 1_000);
    (info.count_total, info.bytes_max)
}

#[test]
fn reading_more_rounds_takes_no_more_memory() {
    let (few, memory_for_few) = allocations(10);
    let (many, memory_for_many) = allocations(100);
    // Only sorting a round that is out of order allocates: once a round.
    assert!(few <= 10 * 2 + 30, "{few}");
    assert!(many <= 100 * 2 + 30, "{many}");
    assert!(
        memory_for_many <= memory_for_few,
        "{memory_for_few} {memory_for_many}"
    );
    assert!(memory_for_many < 500_000, "{memory_for_many}");
}

#[test]
fn parsing_and_encoding_allocate_nothing() {
    let bytes = recording(1);
    let mut recording = Recording::from_file(MappedFile::from(bytes)).unwrap();
    let attr = recording.events()[0].attr.clone();
    let format = recording.format().clone();
    let mut record = Vec::new();
    let mut out = Vec::with_capacity(10_000);
    while let Some(parsed) = recording.next() {
        if let Record::Sample(sample) = parsed {
            let info = allocation_counter::measure(|| {
                record.clear();
                out.clear();
                let new = NewSample {
                    user_stack: sample.user_stack.map_or(&[], |stack| stack.bytes),
                    ..NewSample::without_stack(&sample)
                };
                encode::sample(&mut out, &attr, &new).unwrap();
            });
            assert_eq!(info.count_total, 0);
            record.extend_from_slice(&out);
            let info = allocation_counter::measure(|| {
                assert!(format.parse(&record).is_ok());
            });
            assert_eq!(info.count_total, 0);
        }
    }
}

#[test]
fn records_have_a_size_that_can_be_moved() {
    assert!(
        size_of::<Record<'_>>() <= 544,
        "{}",
        size_of::<Record<'_>>()
    );
}

/// A small file whose compressed records unpack to a gigabyte of samples.
fn bomb() -> Vec<u8> {
    equal_samples(16_000, &[7; NewSample::MAX_CHAIN])
}

/// A small file of many equal samples.
fn equal_samples(count: usize, callchain: &[u64]) -> Vec<u8> {
    let event = EventDescription {
        attr: Attr {
            sample_type: SampleType::TIME | SampleType::CALLCHAIN,
            ..Attr::default()
        },
        ..EventDescription::default()
    };
    let mut record = Vec::new();
    let sample = NewSample {
        time: 1,
        callchain,
        ..NewSample::default()
    };
    encode::sample(&mut record, &event.attr, &sample).unwrap();
    let mut packer = zstd_safe::CCtx::create();
    let mut packed = vec![0; 1 << 20];
    let mut out = zstd_safe::OutBuffer::around(&mut packed[..]);
    for _ in 0..count {
        let mut input = zstd_safe::InBuffer::around(&record);
        while input.pos() < record.len() {
            packer.compress_stream(&mut out, &mut input).unwrap();
        }
    }
    packer.flush_stream(&mut out).unwrap();
    let size = out.pos();
    let mut writer = Writer::create(Cursor::new(Vec::new()), &[event]).unwrap();
    // The stream continues from record to record.
    for part in packed[..size].chunks(60_000) {
        let mut compressed = prof_perfdata::record_type::COMPRESSED
            .to_le_bytes()
            .to_vec();
        compressed.extend([0, 0]);
        compressed.extend((part.len() as u16 + 8).to_le_bytes());
        compressed.extend(part);
        writer.write(&compressed).unwrap();
    }
    let file = writer.finish(&Features::default()).unwrap().into_inner();
    assert!(file.len() < 500_000, "{}", file.len());
    file
}

#[test]
fn a_zstd_bomb_takes_bounded_memory() {
    let mut recording = Recording::from_file(MappedFile::from(bomb())).unwrap();
    let mut samples = 0;
    let info = allocation_counter::measure(|| {
        while recording.next().is_some() {
            samples += 1;
        }
    });
    assert_eq!(samples, 16_000);
    assert!(!recording.truncated());
    assert!(info.bytes_max < 300 << 20, "{}", info.bytes_max);
}

/// Equal samples compress to nearly nothing; a reader must not store each of them.
#[test]
fn the_number_of_records_is_bounded_by_the_file_size() {
    let bytes = equal_samples(5_000_000, &[7]);
    let size = bytes.len();
    assert!(size < 500_000, "{size}");
    let mut recording = Recording::from_file(MappedFile::from(bytes)).unwrap();
    let mut records = 0;
    while recording.next().is_some() {
        records += 1;
    }
    assert_eq!(records, 4_000_000 + size);
    assert!(recording.truncated() && recording.is_too_large());
}
