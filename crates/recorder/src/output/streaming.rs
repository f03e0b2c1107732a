//! A recording that is read while it is made.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, SyncSender};

use prof_perfdata::{EventDescription, Features, WriteError, Writer};

use crate::options::Streaming;

/// Passes all records on, in pipe form.
pub(crate) struct StreamedOutput {
    writer: Writer<Pieces>,
    written: Sender<Result<PathBuf, WriteError>>,
}

impl StreamedOutput {
    /// Passes on everything before the records.
    pub(crate) fn begin(
        streaming: &Streaming,
        events: &[EventDescription],
        about: &Features,
    ) -> Result<Self, WriteError> {
        let pieces = Pieces(Some(streaming.stream.clone()));
        Ok(Self {
            writer: Writer::create_pipe(pieces, events, about)?,
            written: streaming.written.clone(),
        })
    }

    /// Adds whole records.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        self.writer.write(records)
    }

    /// Passes on the records written so far.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Reports the result of writing a requested file.
    pub(crate) fn report(&self, written: Result<PathBuf, WriteError>) {
        // An error means that the receiver is gone.
        let _ = self.written.send(written);
    }
}

/// Each write is a piece, as [`Writer`] writes whole records only. `None` when nobody reads any
/// more.
struct Pieces(Option<SyncSender<Vec<u8>>>);

impl Write for Pieces {
    fn write(&mut self, piece: &[u8]) -> io::Result<usize> {
        if let Some(stream) = &self.0
            && !piece.is_empty()
            && stream.send(piece.to_vec()).is_err()
        {
            self.0 = None;
        }
        Ok(piece.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Seek for Pieces {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}
