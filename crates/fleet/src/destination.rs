//! Where runs go: what follows the recordings in `prof push FILE... URL`.

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

/// What became of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pushed {
    /// It is stored.
    Stored,
    /// It was there already.
    Known,
}
