//! Reads a recording.

mod chunks;
mod file;
mod pipe;
mod rounds;
mod source;
mod unpack;

use std::path::Path;

use prof_filemap::MappedFile;

use crate::abi::record_type;
use crate::attr::EventDescription;
use crate::error::{Error, OpenError};
use crate::features::Features;
use crate::format::RecordFormat;
use crate::header::RecordHeader;
use crate::record::Record;
use chunks::RecordPosition;
pub(crate) use file::FileParts;
use pipe::PipeHeader;
use rounds::Rounds;
use source::Source;

/// A recording that is being read: a perf.data file of prof or of perf, in file or pipe form.
///
/// ```text
///   file ──> Source: one raw record after the other ──> describes the recording: PipeHeader
///            (unpacks zstd)                         ├─> has no time: handed out at once
///                                                   └─> Rounds: waits for its turn, as a position
/// ```
/// Records are never copied out of an uncompressed file: only their positions wait.
#[derive(Debug)]
pub struct Recording {
    source: Source,
    rounds: Rounds,
    format: RecordFormat,
    events: Vec<EventDescription>,
    features: Features,
    /// The record returned last; its chunk is released at the next call.
    current: Option<RecordPosition>,
    malformed: u64,
}

/// A record that is kept for later; [`Recording::release`] lets it go.
#[derive(Debug)]
pub struct HeldRecord(RecordPosition);

/// The result of processing a raw record.
enum Step {
    HandOut(RecordPosition),
    Done,
    End,
}

impl Recording {
    /// Opens a file.
    ///
    /// # Errors
    /// It cannot be read, or is no recording.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        let path = path.as_ref();
        let file = MappedFile::open(path)?;
        Self::from_file(file).map_err(|source| OpenError::Recording {
            path: path.to_owned(),
            source,
        })
    }

    /// Reads bytes that are mapped or in memory.
    ///
    /// # Errors
    /// It is not a recording.
    pub fn from_file(file: MappedFile) -> Result<Self, Error> {
        let opened = file::open(&file)?;
        let mut source = Source::new(file, &opened);
        let mut announced = PipeHeader {
            events: opened.events,
            features: opened.features,
            names: opened.names,
        };
        if opened.pipe {
            announced.read_start(&mut source)?;
        }
        let format = RecordFormat::new(&announced.events).map_err(|error| match error {
            Error::NoEvents if source.truncated() => Error::NoHeader,
            error => error,
        })?;
        announced.name_events(&format);
        Ok(Self {
            source,
            rounds: Rounds::default(),
            format,
            events: announced.events,
            features: announced.features,
            current: None,
            malformed: 0,
        })
    }

    /// The events, at least one.
    pub fn events(&self) -> &[EventDescription] {
        &self.events
    }

    /// The facts about the machine and the run. In pipe form, more may come while reading.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// How the records are laid out.
    pub fn format(&self) -> &RecordFormat {
        &self.format
    }

    /// The next record in time order; `None` at the end. Records without a time come as soon as
    /// they are read, as perf hands them out. Errors while reading are reported by
    /// [`truncated`](Self::truncated) and [`malformed`](Self::malformed).
    #[expect(
        clippy::should_implement_trait,
        reason = "records borrow the recording, which Iterator's items cannot"
    )]
    pub fn next(&mut self) -> Option<Record<'_>> {
        if let Some(place) = self.current.take() {
            self.source.release(place);
        }
        let place = self.advance()?;
        self.current = Some(place);
        match self.format.parse(self.source.record(place)) {
            Ok(record) => Some(record),
            Err(_) => {
                self.malformed += 1;
                Some(Record::Damaged)
            }
        }
    }

    /// Adds the records that were recorded since [`next`](Self::next) returned `None`: whole
    /// records, not compressed, of a recording in pipe form. This reads a recording while it is
    /// made.
    pub fn go_on(&mut self, records: Vec<u8>) {
        let records = MappedFile::from(records);
        self.source.go_on(records);
    }

    /// Bytes of the file that were not read yet.
    pub fn bytes_left(&self) -> u64 {
        self.source.bytes_left()
    }

    /// Keeps the record that [`next`](Self::next) handed out last; `None` if there is none, or it
    /// is held already.
    pub fn hold(&mut self) -> Option<HeldRecord> {
        self.current.take().map(HeldRecord)
    }

    /// A record that is held.
    pub fn held(&self, record: &HeldRecord) -> Record<'_> {
        let parsed = self.format.parse(self.source.record(record.0));
        parsed.unwrap_or(Record::Damaged)
    }

    /// Releases a held record.
    pub fn release(&mut self, record: HeldRecord) {
        self.source.release(record.0);
    }

    /// Whether the file is incomplete: it was cut off, damaged, or recording was killed. Everything
    /// up to there is returned. Known for sure once [`next`](Self::next) has returned `None`.
    pub fn truncated(&self) -> bool {
        self.source.truncated()
    }

    /// Whether that is because compressed records hold more than any recording of this size should:
    /// 4 million records and one for each byte of the file, 1 GiB and 256 bytes for each.
    pub fn is_too_large(&self) -> bool {
        self.source.is_too_large()
    }

    /// Whether another recording follows this one in the file, as after `cat a b`; it is not read.
    /// Known for sure once [`next`](Self::next) has returned `None`.
    pub fn is_followed(&self) -> bool {
        self.source.followed()
    }

    /// How many records so far were [`Damaged`](Record::Damaged).
    pub fn malformed(&self) -> u64 {
        self.malformed
    }

    fn advance(&mut self) -> Option<RecordPosition> {
        loop {
            if let Some(place) = self.rounds.pop() {
                return Some(place);
            }
            match self.step() {
                Step::HandOut(place) => return Some(place),
                Step::Done => {}
                Step::End => {
                    self.rounds.finish();
                    return self.rounds.pop();
                }
            }
        }
    }

    fn step(&mut self) -> Step {
        let Some(place) = self.source.next() else {
            return Step::End;
        };
        let record = self.source.record(place);
        let Some(header) = RecordHeader::parse(record) else {
            return Step::HandOut(place);
        };
        match header.kind {
            record_type::FINISHED_ROUND => self.rounds.finish_round(),
            record_type::HEADER_BUILD_ID
            | record_type::HEADER_FEATURE
            | record_type::STAT_CONFIG => {
                pipe::read_feature(header, record, &mut self.features);
            }
            kind if kind >= record_type::HEADER_ATTR => return Step::HandOut(place),
            _ => match self.format.time(record) {
                None => return Step::HandOut(place),
                Some(time) => {
                    self.rounds.push(time, place);
                    if self.source.holds_too_much() {
                        self.rounds.finish_round();
                    }
                    return Step::Done;
                }
            },
        }
        self.source.release(place);
        Step::Done
    }
}
