//! Split DWARF: units whose functions are in a file of their own (`.dwo`), or in a package of
//! such files (`.dwp`).
//!
//! The program has a skeleton of each unit with the path and the id of its file. A package lies
//! beside the program, as `program.dwp`.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use addr2line::SplitDwarfLoad;
use gimli::{DwarfPackageSections, EndianSlice, RunTimeEndian, SectionId};
use prof_filemap::MappedFile;

use super::{Reader, Sections};
use crate::arena::Arena;
use crate::image::Image;

/// The places of one program's split DWARF.
pub(crate) struct SplitFiles<'data> {
    /// The directory of the program.
    home: PathBuf,
    package: Option<Package<'data>>,
    /// The parts that were read so far.
    read: Arena<Sections<'static>>,
    /// The parts that are gone, or are another build's.
    missing: Mutex<BTreeSet<PathBuf>>,
}

struct Package<'data> {
    sections: DwarfPackageSections<Cow<'data, [u8]>>,
    endian: RunTimeEndian,
}

/// The units that were loaded so far, by id.
#[derive(Default)]
pub(super) struct SplitUnits<'a>(Mutex<HashMap<u64, Unit<'a>>>);

type Unit<'a> = Option<Arc<gimli::Dwarf<Reader<'a>>>>;

impl<'data> SplitFiles<'data> {
    /// For the program at `path`, whose package, if it has one, is `package`.
    pub(crate) fn new(path: &Path, package: Option<&Image<'data>>) -> Self {
        Self {
            home: path.parent().map(Path::to_path_buf).unwrap_or_default(),
            package: package.map(Package::read),
            read: Arena::default(),
            missing: Mutex::default(),
        }
    }

    /// The parts whose functions and lines are missing, in words.
    pub(crate) fn problem(&self) -> Option<String> {
        let missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
        let first = missing.first()?.display();
        Some(match missing.len() {
            1 => format!("{first} is gone or of another build; keep it, or pack such files (dwp)"),
            more => format!(
                "{more} .dwo files are gone or of another build ({first}, ...); keep them, or pack \
                 them beside the program (dwp)"
            ),
        })
    }

    fn note_missing(&self, load: &SplitDwarfLoad<Reader<'_>>) {
        if let (Some(path), Some(compiled_in)) = (&load.path, &load.comp_dir) {
            let mut missing = self.missing.lock().unwrap_or_else(PoisonError::into_inner);
            missing.insert(text(compiled_in).join(text(path)));
        }
    }

    fn load(&self, load: &SplitDwarfLoad<Reader<'_>>) -> Option<&Sections<'static>> {
        let path = text(load.path.as_ref()?);
        let compiled_in = text(load.comp_dir.as_ref()?);
        let beside = path.file_name().map(|name| self.home.join(name));
        [Some(compiled_in.join(&path)), beside]
            .into_iter()
            .flatten()
            .find_map(|path| {
                let bytes = MappedFile::open(path).ok()?;
                let sections = Sections::read_split(&Image::parse(&bytes).ok()?);
                self.read.store(sections)
            })
    }
}

impl<'a> SplitUnits<'a> {
    /// The split part of a unit; `None` if it can't be found or is another build's.
    pub(super) fn find(
        &self,
        load: &SplitDwarfLoad<Reader<'a>>,
        files: &'a SplitFiles<'_>,
    ) -> Unit<'a> {
        let id = load.dwo_id.0;
        if let Some(known) = self.units().get(&id) {
            return known.clone();
        }
        let found = files
            .package
            .as_ref()
            .and_then(|package| package.find(load))
            .or_else(|| from_file(load, files));
        if found.is_none() {
            files.note_missing(load);
        }
        self.units().insert(id, found.clone());
        found
    }

    fn units(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Unit<'a>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn from_file<'a>(load: &SplitDwarfLoad<Reader<'a>>, files: &'a SplitFiles<'_>) -> Unit<'a> {
    let mut dwarf = files.load(load)?.dwarf();
    dwarf.make_dwo(&load.parent);
    let header = dwarf.units().next().ok().flatten()?;
    let unit = dwarf.unit(header).ok()?;
    (unit.dwo_id == Some(load.dwo_id)).then(|| Arc::new(dwarf))
}

impl<'data> Package<'data> {
    fn read(image: &Image<'data>) -> Self {
        let load = |id: SectionId| {
            let name = id.dwo_name().unwrap_or(id.name());
            Ok::<_, gimli::Error>(image.section(name))
        };
        Self {
            // The loader has no error to give.
            sections: DwarfPackageSections::load(load).unwrap_or_default(),
            endian: super::endian(image),
        }
    }

    fn find<'a>(&'a self, load: &SplitDwarfLoad<Reader<'a>>) -> Unit<'a> {
        let slice = |section: &'a Cow<'_, [u8]>| EndianSlice::new(section, self.endian);
        let empty = EndianSlice::new(&[], self.endian);
        let package = self.sections.borrow(slice, empty).ok()?;
        let found = package.find_cu(load.dwo_id, &load.parent).ok().flatten()?;
        Some(Arc::new(found))
    }
}

fn text(reader: &Reader<'_>) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(reader.slice()).into()
}
