//! Who can answer queries.

use prof_model::{BuildId, Pid};

use crate::files::ModuleFiles;
use crate::query::Resolved;
use crate::status::ModuleStatus;

/// The source that can answer a query.
pub(crate) enum Found {
    /// No other source: this is the answer.
    Answer(Resolved),
    Kernel,
    Jit(Pid),
    /// The module's files; or what is wrong with them and the build id to ask others for.
    Files(Result<Box<ModuleFiles>, (ModuleStatus, Option<BuildId>)>),
}
