//! The recording in progress, with symbols.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Result;
use prof_perfdata::WriteError;
use prof_recorder::{Error, LiveNames, Summary};
use prof_report::{NameCache, Span, StreamingProfile, SymbolizedProfile};

use crate::symbolization::LiveSymbols;

/// The channels from the recorder.
pub(super) struct Sources {
    /// The recording, in pieces.
    pub stream: Receiver<Vec<u8>>,
    /// Results of requests to write a file.
    pub written: Receiver<Result<PathBuf, WriteError>>,
    /// The outcome of the recording.
    pub done: Receiver<Result<Summary, Error>>,
    /// The names of run-time code.
    pub names: LiveNames,
}

/// The recording so far.
pub(super) struct Watched {
    sources: Sources,
    streaming: Option<StreamingProfile>,
    /// Whether there are records: the recording has started successfully.
    begun: bool,
    ended: bool,
    names: NameCache,
    symbols: LiveSymbols,
    /// The time up to which weights have decayed.
    decayed: Instant,
}

impl Watched {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            symbols: LiveSymbols::new(sources.names.clone()),
            sources,
            streaming: None,
            begun: false,
            ended: false,
            names: NameCache::default(),
            decayed: Instant::now(),
        }
    }

    /// Waits for the first records, or the end.
    pub(super) fn wait_for_begin(&mut self) -> Result<()> {
        while !self.begun && !self.ended {
            match self.sources.stream.recv() {
                Ok(piece) => self.push(piece)?,
                Err(_) => self.ended = true,
            }
        }
        Ok(())
    }

    /// Loads all pieces that have arrived.
    pub(super) fn receive(&mut self) -> Result<()> {
        loop {
            match self.sources.stream.try_recv() {
                Ok(piece) => self.push(piece)?,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => {
                    self.ended = true;
                    return Ok(());
                }
            }
        }
    }

    /// Loads the pieces that arrive until then, or to the end.
    pub(super) fn receive_until(&mut self, end: Instant) -> Result<()> {
        while !self.ended {
            let time = end.saturating_duration_since(Instant::now());
            match self.sources.stream.recv_timeout(time) {
                Ok(piece) => self.push(piece)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => self.ended = true,
            }
        }
        Ok(())
    }

    fn push(&mut self, piece: Vec<u8>) -> Result<()> {
        match &mut self.streaming {
            None => self.streaming = Some(StreamingProfile::new(piece)?),
            Some(streaming) => {
                streaming.push(piece);
                self.begun = true;
            }
        }
        Ok(())
    }

    /// Whether the recording has ended.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// The outcome of the recording, once it has ended; `None` if it was taken before.
    pub(super) fn outcome(&self) -> Option<Result<Summary, Error>> {
        self.sources.done.recv().ok()
    }

    /// The result of writing a requested file.
    pub(super) fn written(&self) -> Option<Result<PathBuf, WriteError>> {
        self.sources.written.try_recv().ok()
    }

    /// The samples of this span, up to now.
    pub(super) fn profile(&mut self, span: Span) -> Result<Option<SymbolizedProfile>> {
        let now = Instant::now();
        // When the program has ended, its last samples stay.
        let passed = match self.ended {
            true => Duration::ZERO,
            false => now.duration_since(self.decayed),
        };
        self.decayed = now;
        let Some(streaming) = &mut self.streaming else {
            return Ok(None);
        };
        streaming.pass(passed);
        let profile = streaming.profile(span);
        let symbolizer = self.symbols.symbolizer(&profile)?;
        Ok(Some(self.names.symbolize(profile, symbolizer)))
    }

    /// The share of the sampled weight that is dropped, because it is rare.
    pub(super) fn left_out(&self, total: u64) -> f64 {
        let left_out = self
            .streaming
            .as_ref()
            .map_or(0, |streaming| streaming.left_out().value);
        match left_out.saturating_add(total) {
            0 => 0.0,
            all => left_out as f64 / all as f64,
        }
    }
}
