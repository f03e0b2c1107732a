//! Who can answer queries.

use prof_model::{BuildId, Pid};

use crate::files::ModuleFiles;
use crate::query::Resolved;
use crate::status::ModuleStatus;

/// Who can answer a query.
pub(crate) enum Found {
    /// Nobody else: it is answered.
    Answer(Resolved),
    Kernel,
    Jit(Pid),
    /// The module's files; or what is wrong with them and the build id to ask others for.
    Files(Result<Box<ModuleFiles>, (ModuleStatus, Option<BuildId>)>),
}
