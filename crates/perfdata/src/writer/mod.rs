//! Writes a recording.

mod pipe;
pub(crate) mod rewrite;

use std::io::{Seek, SeekFrom, Write};

use crate::attr::{Attr, EventDescription};
use crate::encode;
use crate::error::WriteError;
use crate::features::{self, Features};
use crate::pack::Packer;

/// Writes a recording that is valid from its first bytes on: the file of a killed or failed program
/// can be read up to the last written record.
///
/// ```text
///   header │ ids of the events │ attributes │ records ... │ table of features │ features
///      └─ how many bytes of records there are, and which features: filled in at the end
/// ```
/// It has its own buffer: pass it a plain [`File`](std::fs::File).
#[derive(Debug)]
pub struct Writer<W: Write + Seek> {
    out: W,
    events: Vec<EventDescription>,
    /// Whole records that are not written yet.
    buffer: Vec<u8>,
    /// The offset of the records in the file; `None` in pipe form.
    data_start: Option<u64>,
    /// Bytes of records written.
    written: u64,
    /// Its value in the header.
    announced: u64,
    failed: Option<std::io::ErrorKind>,
    packer: Option<Packer>,
    /// Records while they are packed.
    packed: Vec<u8>,
}

impl<W: Write + Seek> Writer<W> {
    const BUFFER: usize = 128 << 10;
    /// `sizeof(struct perf_file_header)`
    const HEADER: u64 = 104;
    /// The position in the header of the records' size.
    const DATA_SIZE: u64 = 48;
    /// The position in the header of the features' bits.
    const FEATURES: u64 = 72;
    /// `sizeof(struct perf_file_section)`
    const SECTION: u64 = 16;

    /// Writes the sections before the records, from the start of `out` on.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn create(mut out: W, events: &[EventDescription]) -> Result<Self, WriteError> {
        let mut ids = Vec::new();
        let mut attrs = Vec::new();
        for event in events {
            let section = [Self::HEADER + ids.len() as u64, 8 * event.ids.len() as u64];
            attrs.extend(event.attr.to_bytes());
            attrs.extend(section.map(u64::to_le_bytes).concat());
            ids.extend(event.ids.iter().flat_map(|id| id.to_le_bytes()));
        }
        let attrs_start = Self::HEADER + ids.len() as u64;
        let data_start = attrs_start + attrs.len() as u64;
        let mut start = b"PERFILE2".to_vec();
        let numbers = [
            Self::HEADER,
            Attr::SIZE as u64 + Self::SECTION,
            attrs_start,
            attrs.len() as u64,
            data_start,
        ];
        start.extend(numbers.map(u64::to_le_bytes).concat());
        // No size of the records yet, no event types, no features.
        start.resize(Self::HEADER as usize, 0);
        start.extend(ids);
        start.extend(attrs);
        out.seek(SeekFrom::Start(0))?;
        out.write_all(&start)?;
        Ok(Self::behind(out, events, Some(data_start)))
    }

    /// Writes the data before the records in pipe form, which never seeks in `out`. The known facts
    /// about the machine come first.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn create_pipe(
        mut out: W,
        events: &[EventDescription],
        features: &Features,
    ) -> Result<Self, WriteError> {
        out.write_all(&pipe::start(features, events))?;
        Ok(Self::behind(out, events, None))
    }

    fn behind(out: W, events: &[EventDescription], data_start: Option<u64>) -> Self {
        Self {
            out,
            events: events.to_vec(),
            buffer: Vec::with_capacity(Self::BUFFER),
            data_start,
            written: 0,
            announced: 0,
            failed: None,
            packer: None,
            packed: Vec::new(),
        }
    }

    /// Packs records from here on with zstd at a level from 1 to 22, as `perf record -z` does.
    ///
    /// # Errors
    /// There is no memory for it. In pipe form, its description cannot be written.
    pub fn compressed(mut self, level: i32) -> Result<Self, WriteError> {
        let packer = Packer::new(level)?;
        if self.data_start.is_none() {
            self.out.write_all(&pipe::compression(packer.described()))?;
        }
        self.packer = Some(packer);
        Ok(self)
    }

    /// Adds whole records. They need not be in time order if FINISHED_ROUND records separate
    /// rounds.
    ///
    /// # Errors
    /// `out` cannot be written, now or before. [`finish`](Self::finish) can still complete the file
    /// up to there.
    pub fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if self.buffer.len() + records.len() > Self::BUFFER {
            self.flush()?;
        }
        if records.len() > Self::BUFFER {
            return self.pack_and_put(records);
        }
        self.buffer.extend_from_slice(records);
        Ok(())
    }

    /// Flushes all records to `out`: they are not lost if the program is killed afterwards.
    ///
    /// # Errors
    /// `out` cannot be written to, now or before.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        let buffer = std::mem::take(&mut self.buffer);
        let result = self.pack_and_put(&buffer);
        self.buffer = buffer;
        self.buffer.clear();
        result
    }

    /// Flushes all records to `out` and updates their size in the header: if the program is killed
    /// afterwards, the file can be read up to there, also by perf, which rejects a header without
    /// the size.
    ///
    /// # Errors
    /// `out` cannot be written to, now or before.
    pub fn checkpoint(&mut self) -> Result<(), WriteError> {
        self.flush()?;
        let Some(data_start) = self.data_start.filter(|_| self.written != self.announced) else {
            return Ok(());
        };
        let result = self.write_size(data_start);
        if let Err(error) = &result {
            self.failed = Some(error.kind());
        }
        Ok(result?)
    }

    fn write_size(&mut self, data_start: u64) -> std::io::Result<()> {
        self.out.seek(SeekFrom::Start(Self::DATA_SIZE))?;
        self.out.write_all(&self.written.to_le_bytes())?;
        self.announced = self.written;
        self.out.seek(SeekFrom::Start(data_start + self.written))?;
        Ok(())
    }

    /// Bytes of records so far.
    pub fn data_size(&self) -> u64 {
        self.written + self.buffer.len() as u64
    }

    /// Writes the features and, into the header, how much data there is.
    ///
    /// # Errors
    /// `out` cannot be written to, now or before; the file then holds the records that could be
    /// written, without the features.
    pub fn finish(mut self, features: &Features) -> Result<W, WriteError> {
        if self.data_size() == 0 {
            // A size of zero means a recording that was not finished.
            encode::finished_round(&mut self.buffer);
        }
        let Some(data_start) = self.data_start else {
            self.flush()?;
            self.put(&pipe::end(features, &self.events))?;
            self.out.flush()?;
            return Ok(self.out);
        };
        let result = (self.flush()).and_then(|()| self.put_features(features, data_start));
        let bits = *result.as_ref().unwrap_or(&[0; 32]);
        let patched = self.patch(bits);
        result?;
        patched?;
        Ok(self.out)
    }

    fn pack_and_put(&mut self, records: &[u8]) -> Result<(), WriteError> {
        let Some(packer) = &mut self.packer else {
            return self.put(records);
        };
        let mut packed = std::mem::take(&mut self.packed);
        packed.clear();
        let result = packer.pack(records, &mut packed);
        let written = result
            .map_err(WriteError::from)
            .and_then(|()| self.put(&packed));
        self.packed = packed;
        written
    }

    fn put(&mut self, records: &[u8]) -> Result<(), WriteError> {
        if let Some(kind) = self.failed {
            return Err(std::io::Error::from(kind).into());
        }
        if let Err(error) = self.out.write_all(records) {
            self.failed = Some(error.kind());
            return Err(error.into());
        }
        self.written += records.len() as u64;
        Ok(())
    }

    /// Writes table and features after the records, and lists them in the header.
    fn put_features(
        &mut self,
        features: &Features,
        data_start: u64,
    ) -> Result<[u8; 32], WriteError> {
        let mut features = features.clone();
        features.compression = self.packer.as_ref().map(Packer::described);
        let sections = features::write::sections(&features, &self.events);
        let table = Self::SECTION * sections.len() as u64;
        let mut bits = [0; 32];
        let mut bytes = Vec::new();
        let mut offset = data_start + self.written + table;
        for (number, content) in &sections {
            let section = [offset, content.len() as u64];
            bytes.extend(section.map(u64::to_le_bytes).concat());
            bits[(number / 8) as usize] |= 1 << (number % 8);
            offset += content.len() as u64;
        }
        for (_, content) in &sections {
            bytes.extend(content);
        }
        self.out.write_all(&bytes)?;
        Ok(bits)
    }

    fn patch(&mut self, features: [u8; 32]) -> Result<(), WriteError> {
        self.out.seek(SeekFrom::Start(Self::FEATURES))?;
        self.out.write_all(&features)?;
        self.out.seek(SeekFrom::Start(Self::DATA_SIZE))?;
        self.out.write_all(&self.written.to_le_bytes())?;
        self.out.flush()?;
        Ok(())
    }
}
