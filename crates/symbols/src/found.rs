//! Who can answer queries.

use prof_model::{BuildId, Pid};

use crate::embedded::Stored;
use crate::files::SymbolFiles;
use crate::query::Resolved;
use crate::status::ModuleStatus;

/// The source that can answer a query.
pub(crate) enum Found {
    /// No other source: this is the answer.
    Answer(Resolved),
    /// Stored symbols, and the source of those that are missing there.
    Partly(Box<(Stored, Found)>),
    /// Stored symbols without a name, and the source that may have some.
    Unnamed(Box<(Resolved, Found)>),
    Kernel,
    Jit(Pid),
    /// The module's files; or what is wrong with them and the build id to ask others for.
    Files(Result<Box<SymbolFiles>, (ModuleStatus, Option<BuildId>)>),
}
