//! Destinations of runs: the URL in `prof push FILE... URL`.

use crate::error::Error;
use crate::run::Run;

/// A receiver of runs.
pub(crate) trait Destination {
    /// Stores a run. Of one that is there already, nothing changes.
    ///
    /// # Errors
    /// The receiver cannot be reached, or refuses the run.
    fn push(&mut self, run: &Run) -> Result<Pushed, Error>;
}

/// How often in a row a receiver has failed to take a recording.
#[derive(Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    /// One recording may be at fault. Two in a row are not: the receiver is.
    const MOST: u32 = 2;

    /// Counts the result of a push.
    pub(crate) fn count(&mut self, pushed: &Result<Pushed, Error>) {
        match pushed {
            Ok(Pushed::Stored | Pushed::Known) => self.0 = 0,
            Ok(Pushed::Empty) => {}
            Err(error) if error.is_of_recording() => {}
            Err(error) if error.is_of_connection() => self.0 = Self::MOST,
            Err(_) => self.0 += 1,
        }
    }

    /// Whether the receiver is down: further recordings would fail as well.
    pub(crate) fn is_down(&self) -> bool {
        self.0 >= Self::MOST
    }
}

/// The result of pushing a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is stored.
    Stored,
    /// It was stored before.
    Known,
    /// It has no samples, without which there is nothing to send to this receiver.
    Empty,
}
