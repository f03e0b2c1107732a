//! The recording as it is made, for who watches.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::PathBuf;
use std::sync::mpsc::{Sender, SyncSender};

use prof_perfdata::{EventDescription, Features, WriteError, Writer};

use crate::options::Live;

/// Hands over all that is recorded, in pipe form.
pub(crate) struct LiveOutput {
    writer: Writer<Pieces>,
    written: Sender<Result<PathBuf, WriteError>>,
}

impl LiveOutput {
    /// Hands over what comes before the records.
    pub(crate) fn begin(
        live: &Live,
        events: &[EventDescription],
        about: &Features,
    ) -> Result<Self, WriteError> {
        let pieces = Pieces(Some(live.stream.clone()));
        Ok(Self {
            writer: Writer::create_pipe(pieces, events, about)?,
            written: live.written.clone(),
        })
    }

    /// Adds whole records.
    pub(crate) fn write(&mut self, records: &[u8]) -> Result<(), WriteError> {
        self.writer.write(records)
    }

    /// Hands over what was written.
    pub(crate) fn flush(&mut self) -> Result<(), WriteError> {
        self.writer.flush()
    }

    /// Tells what became of a file that was asked for.
    pub(crate) fn report(&self, written: Result<PathBuf, WriteError>) {
        // Who does not listen does not want to know.
        let _ = self.written.send(written);
    }
}

/// Each write is a piece, as [`Writer`] writes whole records only. `None` when nobody watches any
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
