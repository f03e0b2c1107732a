//! Finding the file that ran.

use std::io;
use std::path::{Path, PathBuf};

use prof_filemap::MappedFile;
use prof_model::{BuildId, Module, ModuleKind};
use prof_procfs::without_deleted;

use crate::files::vdso;
use crate::image::Image;
use crate::options::{Places, SymbolOptions};
use crate::status::ModuleStatus;

/// A file that was found and is the right one.
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    pub(crate) bytes: MappedFile,
}

/// Finds the file of `module`: where the caller says that it may be, by its own path, and by its
/// build id in the debug directories.
///
/// # Errors
/// It is unavailable: the most specific reason.
pub(crate) fn module_file(
    module: &Module,
    places: &dyn Places,
    options: &SymbolOptions,
) -> Result<Located, ModuleStatus> {
    if module.kind == ModuleKind::Vdso {
        return vdso_image(module, options);
    }
    let own = without_deleted(&module.path).to_owned();
    let mut worst = ModuleStatus::Missing {
        path: module.path.clone(),
    };
    let candidates = match &options.symfs {
        // The files of another machine: what is here is none of them.
        Some(root) => vec![root.join(own.strip_prefix("/").unwrap_or(&own))],
        None => places.candidates(module).into_iter().chain([own]).collect(),
    };
    for path in candidates {
        match checked(&path, module.build_id) {
            Ok(_) if !options.ambiguous_paths.accept(module, &path) => {
                worst = ModuleStatus::OtherFile { path };
            }
            Ok(located) if !could_run(module, &located, options) => worst = options.other_host(),
            Ok(located) => return Ok(located),
            Err(status) if relevance(&status) > relevance(&worst) => worst = status,
            Err(_) => {}
        }
    }
    let kept = module
        .build_id
        .and_then(|id| kept_copy(id, &options.debug_dirs));
    kept.ok_or(worst)
}

/// Whether a file may be the one that ran: its build id proves it, or its architecture is possible.
fn could_run(module: &Module, located: &Located, options: &SymbolOptions) -> bool {
    let host = &options.recorded_host;
    module.build_id.is_some() || Image::parse(&located.bytes).is_ok_and(|image| host.runs(&image))
}

/// A copy of the program that a debug directory or perf's cache of programs (`~/.debug`) keeps.
///
/// A debug file does as well if its program headers still say where the code was in the program:
/// `eu-strip` leaves them as they were, `objcopy` does not.
fn kept_copy(id: BuildId, directories: &[PathBuf]) -> Option<Located> {
    const NAMES: [&str; 3] = ["", "/elf", ".debug"];
    directories
        .iter()
        .flat_map(|directory| NAMES.map(|name| by_build_id(directory, id, name)))
        .find_map(|path| {
            let located = checked(&path, Some(id)).ok()?;
            let knows = Image::parse(&located.bytes).ok()?.knows_where_code_was();
            knows.then_some(located)
        })
}

/// The path in a debug directory of the files of a build id.
pub(crate) fn by_build_id(directory: &Path, id: BuildId, suffix: &str) -> PathBuf {
    let hex = id.to_string();
    // Two digits for each byte: a build id has at least one.
    let (first, rest) = hex.split_at_checked(2).unwrap_or((&hex, ""));
    directory.join(format!(".build-id/{first}/{rest}{suffix}"))
}

/// Opens an ELF file and compares its build id with the expected one, if there is one.
///
/// # Errors
/// When it can't be opened, is not ELF or is another one.
pub(crate) fn checked(path: &Path, recorded: Option<BuildId>) -> Result<Located, ModuleStatus> {
    let bytes = MappedFile::open(path).map_err(|error| open_status(path, &error))?;
    let image = Image::parse(&bytes).map_err(|error| unreadable(path, &error))?;
    let found = image.build_id();
    match recorded {
        Some(recorded) if Some(recorded) != found => Err(ModuleStatus::BuildIdDiffers {
            path: path.into(),
            recorded,
            found,
        }),
        _ => Ok(Located {
            path: path.into(),
            bytes,
        }),
    }
}

/// The kernel's own: ours is that of another kernel's processes only if the build id says so.
fn vdso_image(module: &Module, options: &SymbolOptions) -> Result<Located, ModuleStatus> {
    if let (None, Some(status)) = (module.build_id, options.other_kernel()) {
        return Err(status);
    }
    let path = &module.path;
    let bytes = vdso::read().map_err(|error| unreadable(path, &error))?;
    let found = Image::parse(&bytes).ok().and_then(|image| image.build_id());
    match module.build_id {
        Some(recorded) if Some(recorded) != found => Err(ModuleStatus::BuildIdDiffers {
            path: path.clone(),
            recorded,
            found,
        }),
        _ => Ok(Located {
            path: path.clone(),
            bytes,
        }),
    }
}

/// The status that a failure to open a file amounts to.
fn open_status(path: &Path, error: &prof_filemap::Error) -> ModuleStatus {
    match error.io_kind() {
        Some(kind) => io_status(path, kind, error),
        None => unreadable(path, error),
    }
}

/// The status that an I/O error on a file amounts to.
pub(crate) fn io_status(
    path: &Path,
    kind: io::ErrorKind,
    error: &dyn std::error::Error,
) -> ModuleStatus {
    let path = path.to_path_buf();
    match kind {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => ModuleStatus::Missing { path },
        io::ErrorKind::PermissionDenied => ModuleStatus::NoPermission { path },
        _ => unreadable(&path, error),
    }
}

fn unreadable(path: &Path, error: &dyn std::error::Error) -> ModuleStatus {
    ModuleStatus::Unreadable {
        path: path.to_path_buf(),
        reason: error.to_string(),
    }
}

/// Which of several failures the user should hear of: the highest.
fn relevance(status: &ModuleStatus) -> u8 {
    match status {
        ModuleStatus::BuildIdDiffers { .. }
        | ModuleStatus::OtherFile { .. }
        | ModuleStatus::OtherHost { .. } => 3,
        ModuleStatus::NoPermission { .. } => 2,
        ModuleStatus::Unreadable { .. } => 1,
        _ => 0,
    }
}
