//! The files that together contain the symbols of one module.

pub(crate) mod locate;
mod minidebug;
mod separate;
mod vdso;

use std::path::Path;

use prof_filemap::MappedFile;

use crate::debuginfod::{Client, Kind, Problem};
use crate::files::locate::Located;
use crate::image::Image;
use crate::options::SymbolOptions;
use crate::status::ModuleStatus;

/// The bytes of all files with symbols of one module.
pub(crate) struct SymbolFiles {
    /// The file that ran.
    main: Located,
    /// Its separate debug file.
    debug: Option<Located>,
    /// The file that several debug files share (`dwz -m`).
    sup: Option<Located>,
    /// The symbol table within the file that ran (`.gnu_debugdata`), unpacked.
    mini: Option<MappedFile>,
    /// The package of its split DWARF (`.dwp`).
    package: Option<Located>,
    /// Why the download of missing files failed, if it did.
    downloads: Option<Problem>,
}

/// The same, parsed.
pub(crate) struct Images<'a> {
    pub(crate) main: Image<'a>,
    pub(crate) debug: Option<Image<'a>>,
    pub(crate) sup: Option<Image<'a>>,
    pub(crate) package: Option<Image<'a>>,
    mini: Option<Image<'a>>,
}

impl SymbolFiles {
    /// Looks for what belongs to `main`. What can't be found or used is left out.
    pub(crate) fn find(main: Located, options: &SymbolOptions) -> Self {
        let mut this = Self {
            main,
            debug: None,
            sup: None,
            mini: None,
            package: None,
            downloads: None,
        };
        let Ok(image) = Image::parse(&this.main.bytes) else {
            return this;
        };
        if !image.has_dwarf() {
            this.debug = separate::debug_file(&this.main.path, &image, options);
        }
        if !image.has_symbol_table() && this.debug.is_none() {
            this.mini = minidebug::unpack(&image).map(MappedFile::from);
        }
        this.sup = this.on_dwarf(|path, image| separate::supplementary_file(path, image, options));
        this.package = separate::split_package(&this.main.path)
            .or_else(|| separate::split_package(&this.debug.as_ref()?.path));
        this
    }

    /// Whether DWARF (or, if inlined frames are not requested, a symbol table) is missing.
    pub(crate) fn want_debug_info(&self, options: &SymbolOptions) -> bool {
        // Not the vdso: debug info for it is not published.
        let is_file = self.main.path.is_absolute();
        is_file
            && self.images().is_ok_and(|images| {
                if options.inlines {
                    images.with_dwarf().is_none()
                } else {
                    !images.have_symbol_table()
                }
            })
    }

    /// Downloads the debug file, and the one that it shares with others.
    pub(crate) fn download_debug_info(&mut self, client: &Client<'_>) {
        let Some(id) = parsed(&self.main).and_then(|image| image.build_id()) else {
            return;
        };
        let name = self.main.path.file_name().unwrap_or_default();
        let name = name.to_string_lossy().into_owned();
        let fetch = |id| {
            let path = client.fetch(id, Kind::DebugInfo, &name)?;
            locate::checked(&path, Some(id)).map_err(|status| Problem::Failed(status.reason()))
        };
        match fetch(id) {
            Ok(debug) => self.debug = Some(debug),
            Err(problem) => self.downloads = Some(problem),
        }
        let shared = self.on_dwarf(|_, image| separate::supplementary_id(image));
        if let (Some(id), None) = (shared, &self.sup) {
            self.sup = fetch(id).ok();
        }
    }

    /// Calls `work` on the file that has DWARF, or should have it.
    fn on_dwarf<T>(&self, work: impl FnOnce(&Path, &Image<'_>) -> Option<T>) -> Option<T> {
        let file = self.debug.as_ref().unwrap_or(&self.main);
        work(&file.path, &parsed(file)?)
    }

    /// Parses them all.
    ///
    /// # Errors
    /// When the file that ran can't be parsed.
    pub(crate) fn images(&self) -> Result<Images<'_>, ModuleStatus> {
        let main = Image::parse(&self.main.bytes).map_err(|error| ModuleStatus::Unreadable {
            path: self.main.path.clone(),
            reason: error.to_string(),
        })?;
        Ok(Images {
            main,
            debug: self.debug.as_ref().and_then(parsed),
            sup: self.sup.as_ref().and_then(parsed),
            package: self.package.as_ref().and_then(parsed),
            mini: self.mini.as_ref().and_then(|mini| Image::parse(mini).ok()),
        })
    }

    /// The file that ran.
    pub(crate) fn path(&self) -> &Path {
        &self.main.path
    }

    /// The file that most names come from.
    pub(crate) fn path_of_names(&self) -> &Path {
        &self.debug.as_ref().unwrap_or(&self.main).path
    }

    /// Why the debug file could not be downloaded, unless there is none.
    pub(crate) fn download_problem(&self) -> Option<String> {
        let problem = self.downloads.as_ref();
        problem
            .filter(|problem| **problem != Problem::NotFound)
            .map(Problem::to_string)
    }

    /// The status when there is neither a full symbol table nor DWARF in any of them.
    pub(crate) fn stripped(&self, images: &Images<'_>) -> ModuleStatus {
        ModuleStatus::Stripped {
            path: self.main.path.clone(),
            build_id: images.main.build_id(),
            downloads: self.downloads.as_ref().map(Problem::to_string),
        }
    }
}

fn parsed(file: &Located) -> Option<Image<'_>> {
    Image::parse(&file.bytes).ok()
}

impl<'a> Images<'a> {
    /// The images whose symbol tables belong to the module.
    pub(crate) fn with_symbols(&self) -> impl Iterator<Item = &Image<'a>> + Clone {
        let own = std::iter::once(&self.main);
        own.chain(self.debug.iter()).chain(self.mini.iter())
    }

    /// Whether any of them has more than the dynamic linker's symbols.
    pub(crate) fn have_symbol_table(&self) -> bool {
        self.with_symbols().any(Image::has_symbol_table)
    }

    /// The one with DWARF.
    pub(crate) fn with_dwarf(&self) -> Option<&Image<'a>> {
        [Some(&self.main), self.debug.as_ref()]
            .into_iter()
            .flatten()
            .find(|image| image.has_dwarf())
    }
}
