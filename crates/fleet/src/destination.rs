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

/// The result of pushing a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is stored.
    Stored,
    /// It was stored before.
    Known,
}
