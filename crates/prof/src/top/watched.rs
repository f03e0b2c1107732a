//! What is recorded, as it comes, with names.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use anyhow::Result;
use prof_perfdata::WriteError;
use prof_recorder::{Error, Summary};
use prof_report::{LiveProfile, NameCache, Span, SymbolizedProfile};

use crate::names::LiveSymbols;

/// Where everything comes from.
pub(super) struct Sources {
    /// The recording, in pieces.
    pub stream: Receiver<Vec<u8>>,
    /// The files that were asked for.
    pub written: Receiver<Result<PathBuf, WriteError>>,
    /// How it ended.
    pub done: Receiver<Result<Summary, Error>>,
}

/// The recording so far.
pub(super) struct Watched {
    sources: Sources,
    live: Option<LiveProfile>,
    /// Whether there are records: nothing can fail at the start any more.
    begun: bool,
    ended: bool,
    names: NameCache,
    symbols: LiveSymbols,
    /// Up to when weights have decayed.
    decayed: Instant,
}

impl Watched {
    pub(super) fn new(sources: Sources) -> Self {
        Self {
            sources,
            live: None,
            begun: false,
            ended: false,
            names: NameCache::default(),
            symbols: LiveSymbols::default(),
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

    /// Takes in what has come.
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

    /// Takes in what comes until then, or to the end.
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
        match &mut self.live {
            None => self.live = Some(LiveProfile::new(piece)?),
            Some(live) => {
                live.push(piece)?;
                self.begun = true;
            }
        }
        Ok(())
    }

    /// Whether nothing comes any more.
    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    /// How the recording ended, once it has; `None` if that was asked before.
    pub(super) fn outcome(&self) -> Option<Result<Summary, Error>> {
        self.sources.done.recv().ok()
    }

    /// What has become of a file that was asked for.
    pub(super) fn written(&self) -> Option<Result<PathBuf, WriteError>> {
        self.sources.written.try_recv().ok()
    }

    /// What was sampled in this span, up to now.
    pub(super) fn profile(&mut self, span: Span) -> Result<Option<SymbolizedProfile>> {
        let now = Instant::now();
        // What the program did last stays when it has ended.
        let passed = match self.ended {
            true => Duration::ZERO,
            false => now.duration_since(self.decayed),
        };
        self.decayed = now;
        let Some(live) = &mut self.live else {
            return Ok(None);
        };
        live.pass(passed);
        let profile = live.profile(span);
        let symbolizer = self.symbols.symbolizer(&profile)?;
        Ok(Some(self.names.symbolize(profile, symbolizer)))
    }

    /// The share of all that was sampled that is not held any more, because it is rare.
    pub(super) fn left_out(&self, total: u64) -> f64 {
        let left_out = self.live.as_ref().map_or(0, |live| live.left_out().value);
        match left_out.saturating_add(total) {
            0 => 0.0,
            all => left_out as f64 / all as f64,
        }
    }
}
