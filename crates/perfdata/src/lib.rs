//! perf.data: records to and from bytes, and the file around them.
//!
//! ```text
//!   ring bytes ──> RecordFormat::parse ──> Record<'_> ──> follow ──> Processes, Modules
//!                        ▲
//!   Recording (file form, pipe form, zstd, time order)
//!
//!   encode::sample, .. ──> bytes ──> Writer ──> a file that perf opens
//! ```
//!
//! One parser for records, wherever they come from. Little-endian only, as the machines are that
//! prof records on.
//!
//! ```
//! use prof_perfdata::encode::{self, NewSample};
//! use prof_perfdata::{
//!     Attr, AttrFlags, EventDescription, Features, Record, Recording, SampleType, Writer,
//! };
//!
//! let event = EventDescription {
//!     attr: Attr {
//!         kind: 1, // PERF_TYPE_SOFTWARE
//!         sample_type: SampleType::IDENTIFIER | SampleType::IP | SampleType::TIME,
//!         flags: AttrFlags::SAMPLE_ID_ALL,
//!         ..Attr::default()
//!     },
//!     name: "cpu-clock".into(),
//!     ids: vec![1],
//! };
//! let directory = tempfile::tempdir()?;
//! let path = directory.path().join("perf.data");
//! let file = std::fs::File::create(&path)?;
//! let mut writer = Writer::create(file, std::slice::from_ref(&event))?;
//! let sample = NewSample { id: 1, time: 7, ip: 0x40_1234, ..NewSample::default() };
//! let mut bytes = Vec::new();
//! encode::sample(&mut bytes, &event.attr, &sample)?;
//! writer.write(&bytes)?;
//! writer.finish(&Features::default())?;
//!
//! // Samples borrow the file: none is copied to be read.
//! let mut recording = Recording::open(&path)?;
//! while let Some(record) = recording.next() {
//!     if let Record::Sample(sample) = record {
//!         assert_eq!((sample.ip, sample.time), (0x40_1234, Some(7)));
//!     }
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod abi;
mod attr;
mod bits;
mod bytes;
pub mod encode;
mod error;
mod features;
mod follow;
mod format;
mod header;
mod note;
mod pack;
mod parse;
mod read;
mod record;
mod recording;
mod sample;
mod stamp;
mod writer;

pub use abi::{CpuMode, context, misc, record_type};
pub use attr::{Attr, EventDescription};
pub use bits::{AttrFlags, ReadFormat, SampleType};
pub use error::{EncodeError, Error, OpenError, RecordError, WriteError};
pub use features::{ClockData, Compression, CpuCounts, Features, ModuleBuildId};
pub use follow::follow;
pub use format::RecordFormat;
pub use header::records;
pub use read::{ReadValue, ReadValues};
pub use record::{
    Cgroup, Comm, Ksymbol, Lost, Mmap, Namespaces, Read, Record, Switch, Task, Throttle,
};
pub use recording::{HeldRecord, Recording};
pub use sample::{Branch, Branches, Callchain, Sample, SampleDetails, UserStack};
pub use stamp::Stamp;
pub use writer::Writer;
pub use writer::rewrite::{RewriteError, parts_without_symbols, write_with_symbols};
