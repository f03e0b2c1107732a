//! Separate debug files: by build id, by `.gnu_debuglink`, and what `dwz` moved out of them.
//!
//! ```text
//!   /usr/bin/x ── build id ab12… ──────▶ DIR/.build-id/ab/12….debug       (build id checked)
//!        └────── .gnu_debuglink x.dbg ─▶ /usr/bin/x.dbg                    (build id or CRC
//!                                        /usr/bin/.debug/x.dbg              checked)
//!                                        DIR/usr/bin/x.dbg
//!   debug file ─ .gnu_debugaltlink ────▶ its path, or DIR/.build-id/…     (build id checked)
//! ```

use std::path::{Path, PathBuf};

use object::Object;
use prof_model::BuildId;

use crate::files::locate::{self, Located};
use crate::image::Image;
use crate::options::SymbolOptions;

/// The debug file of the file that ran, if there is one in these directories or beside it.
pub(crate) fn debug_file(
    path: &Path,
    image: &Image<'_>,
    options: &SymbolOptions,
) -> Option<Located> {
    let id = image.build_id();
    id.and_then(|id| by_build_id(id, &options.debug_dirs))
        .or_else(|| by_link(path, image, options))
}

/// The file that `dwz` moved into what several debug files share.
pub(crate) fn supplementary_file(
    path: &Path,
    image: &Image<'_>,
    options: &SymbolOptions,
) -> Option<Located> {
    let (link, _) = image.object().gnu_debugaltlink().ok().flatten()?;
    let id = supplementary_id(image)?;
    let link = as_path(link);
    let link = match (&options.symfs, link.strip_prefix("/")) {
        (Some(root), Ok(below)) => root.join(below),
        _ => relative_to(path, &link),
    };
    locate::checked(&link, Some(id))
        .ok()
        .or_else(|| by_build_id(id, &options.debug_dirs))
}

/// The build id of that file.
pub(crate) fn supplementary_id(image: &Image<'_>) -> Option<BuildId> {
    let (_, id) = image.object().gnu_debugaltlink().ok().flatten()?;
    BuildId::new(id)
}

/// The package of a program's split DWARF, `program.dwp`. Its units are checked by their own ids.
pub(crate) fn split_package(path: &Path) -> Option<Located> {
    let mut name = path.file_name()?.to_owned();
    name.push(".dwp");
    locate::checked(&path.with_file_name(name), None).ok()
}

fn by_build_id(id: BuildId, directories: &[PathBuf]) -> Option<Located> {
    directories
        .iter()
        .map(|directory| locate::by_build_id(directory, id, ".debug"))
        .find_map(|path| locate::checked(&path, Some(id)).ok())
}

fn by_link(path: &Path, image: &Image<'_>, options: &SymbolOptions) -> Option<Located> {
    let (name, crc) = image.object().gnu_debuglink().ok().flatten()?;
    let name = as_path(name);
    let real = path.canonicalize();
    let homes = [Some(path), real.as_deref().ok()]
        .into_iter()
        .flatten()
        .filter_map(Path::parent);
    homes
        .flat_map(|home| candidates(home, &name, options))
        .filter(|candidate| candidate != path && Some(candidate) != real.as_ref().ok())
        .find_map(|candidate| checked_link(&candidate, image.build_id(), crc))
}

fn candidates(home: &Path, name: &Path, options: &SymbolOptions) -> Vec<PathBuf> {
    // As the recorded machine had it.
    let root = options.symfs.as_deref().unwrap_or(Path::new("/"));
    let below_root = home
        .strip_prefix(root)
        .or_else(|_| home.strip_prefix("/"))
        .unwrap_or(home);
    let directories = options.debug_dirs.iter();
    [home.join(name), home.join(".debug").join(name)]
        .into_iter()
        .chain(directories.map(|d| d.join(below_root).join(name)))
        .collect()
}

/// Takes a candidate whose build id is the same; without build ids, whose checksum is the one in
/// the link.
fn checked_link(path: &Path, id: Option<BuildId>, crc: u32) -> Option<Located> {
    let located = locate::checked(path, None).ok()?;
    let theirs = Image::parse(&located.bytes).ok()?.build_id();
    let same = match (id, theirs) {
        (Some(ours), Some(theirs)) => ours == theirs,
        _ => crc32fast::hash(&located.bytes) == crc,
    };
    same.then_some(located)
}

fn relative_to(file: &Path, link: &Path) -> PathBuf {
    match file.parent() {
        Some(home) => home.join(link),
        None => link.to_path_buf(),
    }
}

fn as_path(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}
