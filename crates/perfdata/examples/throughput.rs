//! How fast a recording of a million samples is written and read:
//! `cargo run --release -p prof-perfdata --example throughput [DIRECTORY]`
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use prof_model::{StackEnd, StackNote};
use prof_perfdata::encode::{self, NewSample};
use prof_perfdata::{
    Attr, AttrFlags, EventDescription, Features, Record, Recording, SampleType, Writer, context,
};

const SAMPLES: u64 = 1_000_000;
const FRAMES: usize = 112;
const RINGS: u64 = 8;
const ROUND: u64 = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let directory = std::env::args_os().nth(1).map(PathBuf::from);
    let path = directory
        .unwrap_or_else(std::env::temp_dir)
        .join("prof-throughput.data");
    let started = Instant::now();
    let size = write(&path)?;
    print("written", size, started.elapsed());
    let started = Instant::now();
    let addresses = read(&path)?;
    print("read", size, started.elapsed());
    println!("{addresses} addresses in chains");
    std::fs::remove_file(path)?;
    Ok(())
}

fn print(what: &str, size: u64, time: Duration) {
    let seconds = time.as_secs_f64();
    println!(
        "{what}: {SAMPLES} samples, {} MB in {seconds:.3} s: {:.0} ns a sample",
        size / 1_000_000,
        1e9 * seconds / SAMPLES as f64
    );
}

/// Several rings, drained one after the other in each round.
fn write(path: &PathBuf) -> Result<u64, Box<dyn Error>> {
    let event = EventDescription {
        attr: Attr {
            kind: 1,
            sample_type: SampleType::IDENTIFIER
                | SampleType::IP
                | SampleType::TID
                | SampleType::TIME
                | SampleType::CPU
                | SampleType::PERIOD
                | SampleType::CALLCHAIN
                | SampleType::RAW,
            flags: AttrFlags::SAMPLE_ID_ALL,
            ..Attr::default()
        },
        name: "cpu-clock".into(),
        ids: (1..=RINGS).collect(),
    };
    let mut writer = Writer::create(File::create(path)?, std::slice::from_ref(&event))?;
    let chain: Vec<u64> = [context::USER]
        .into_iter()
        .chain(0x1000..)
        .take(FRAMES)
        .collect();
    let raw = encode::stack_note(StackNote::new(StackEnd::Root));
    let mut bytes = Vec::new();
    for round in 0..SAMPLES / ROUND {
        for number in 0..ROUND {
            bytes.clear();
            let ring = number / (ROUND / RINGS);
            let sample = NewSample {
                id: 1 + ring % RINGS,
                time: 1 + round * ROUND + number % (ROUND / RINGS) * RINGS + ring,
                callchain: &chain,
                raw: &raw,
                period: 1,
                ..NewSample::default()
            };
            encode::sample(&mut bytes, &event.attr, &sample)?;
            writer.write(&bytes)?;
        }
        bytes.clear();
        encode::finished_round(&mut bytes);
        writer.write(&bytes)?;
    }
    Ok(writer.finish(&Features::default())?.metadata()?.len())
}

fn read(path: &PathBuf) -> Result<u64, Box<dyn Error>> {
    let mut recording = Recording::open(path)?;
    let (mut count, mut addresses, mut last) = (0, 0, 0);
    while let Some(record) = recording.next() {
        if let Record::Sample(sample) = record {
            count += 1;
            addresses += sample
                .callchain
                .filter(|&address| address < context::MAX)
                .count() as u64;
            assert!(sample.time >= Some(last), "out of order");
            last = sample.time.unwrap_or(0);
        }
    }
    assert_eq!(count, SAMPLES);
    Ok(addresses)
}
