//! The front door: queries in, answers out, in parallel.

use std::sync::atomic::{AtomicUsize, Ordering};

use prof_model::{Module, ModuleKind};
use rayon::prelude::*;

use crate::ambiguous_paths::AmbiguousPaths;
use crate::download;
use crate::embedded::{EmbeddedSymbols, Stored};
use crate::files::SymbolFiles;
use crate::files::locate;
use crate::found::Found;
use crate::jit;
use crate::kernel::Kernel;
use crate::module;
use crate::options::{Demangle, NoOtherPlaces, Places, SymbolOptions};
use crate::progress::{Progress, Watch};
use crate::query::{Query, Resolved, Source};
use crate::status::ModuleStatus;

/// Names addresses.
///
/// It keeps the kernel's symbols once read, nothing else: each module's file is opened, asked for
/// all addresses at once and closed again.
pub struct Symbolizer {
    pub(crate) options: SymbolOptions,
    pub(crate) places: Box<dyn Places>,
    embedded: Option<EmbeddedSymbols>,
    pub(crate) kernel: Kernel,
}

impl Symbolizer {
    /// A symbolizer that knows files by their recorded paths.
    pub fn new(options: SymbolOptions) -> Self {
        Self {
            options,
            places: Box::new(NoOtherPlaces),
            embedded: None,
            kernel: Kernel::default(),
        }
    }

    /// Looks for files in these places first.
    pub fn with_places(self, places: impl Places + 'static) -> Self {
        Self {
            places: Box::new(places),
            ..self
        }
    }

    /// Takes names from a recording that carries them. For what it has no names for, files are
    /// looked at only where their build id shows that they are the right ones: the recording may
    /// be another machine's. (Unless it carries only what would not have been found again.)
    pub fn with_embedded(self, symbols: EmbeddedSymbols) -> Self {
        Self {
            embedded: Some(symbols),
            ..self
        }
    }

    /// Replaces the paths that are several files, for a recording in progress.
    pub fn set_ambiguous_paths(&mut self, paths: AmbiguousPaths) {
        self.options.ambiguous_paths = paths;
    }

    /// Names all addresses of all queries. The answers come in the order of the queries.
    pub fn resolve(&self, queries: &[Query<'_>]) -> Vec<Resolved> {
        self.resolve_watched(queries, Watch::default())
    }

    /// As [`resolve`](Self::resolve), reporting its progress.
    pub fn resolve_watched(&self, queries: &[Query<'_>], watch: Watch<'_>) -> Vec<Resolved> {
        let total = queries.iter().map(|query| query.addresses.len()).sum();
        let finished = AtomicUsize::new(0);
        let done = |count: usize| {
            let done = finished.fetch_add(count, Ordering::Relaxed) + count;
            if let Some(progress) = watch.progress {
                progress(Progress::Resolved { done, total });
            }
        };
        let mut found: Vec<Found> = queries.par_iter().map(|query| self.find(query)).collect();
        if let Some(debuginfod) = &self.options.debuginfod {
            download::missing(&mut found, debuginfod, &self.options, watch);
        }
        queries
            .par_iter()
            .zip(found)
            .map(|(query, found)| {
                let mut resolved = self.answer(query, found, &done);
                if self.options.demangle == Demangle::Short {
                    resolved.shorten();
                }
                resolved
            })
            .collect()
    }

    /// Finds out who can answer a query, and opens the files for it.
    fn find(&self, query: &Query<'_>) -> Found {
        if query.addresses.is_empty() {
            return Found::Answer(Resolved::unnamed(ModuleStatus::Named, 0));
        }
        let Some(embedded) = &self.embedded else {
            return self.find_here(query.source);
        };
        match embedded.answer(query, &self.options.ambiguous_paths) {
            Some(stored) if !stored.has_names() => self.find_better(query.source, stored.resolved),
            Some(stored) if !stored.missing.is_empty() && self.is_same_anywhere(query.source) => {
                Found::Partly(Box::new((stored, self.find_here(query.source))))
            }
            Some(stored) => Found::Answer(stored.resolved),
            None if !embedded.is_whole() || self.is_same_anywhere(query.source) => {
                self.find_here(query.source)
            }
            None => {
                let count = query.addresses.len();
                Found::Answer(Resolved::unnamed(ModuleStatus::NotEmbedded, count))
            }
        }
    }

    fn find_here(&self, source: Source<'_>) -> Found {
        match source {
            Source::File(module) if module.kind == ModuleKind::Kernel => Found::Kernel,
            Source::Kernel => Found::Kernel,
            Source::Jit { pid } => Found::Jit(pid),
            Source::File(module) => Found::Files(match self.files(module) {
                Ok(files) => Ok(Box::new(files)),
                Err(status) => Err((status, module.build_id)),
            }),
        }
    }

    /// Where there were no names when the recording was archived, this machine may have them, or
    /// a server.
    fn find_better(&self, source: Source<'_>, archived: Resolved) -> Found {
        match self.is_same_anywhere(source) {
            true => Found::Unnamed(Box::new((archived, self.find_here(source)))),
            false => Found::Answer(archived),
        }
    }

    /// Whether symbols found on this machine are the same on any machine.
    fn is_same_anywhere(&self, source: Source<'_>) -> bool {
        match source {
            Source::File(module) => module.build_id.is_some(),
            Source::Kernel => self.options.recorded_kernel.build_id.is_some(),
            Source::Jit { .. } => false,
        }
    }

    /// The files with symbols of a module, downloaded if they are not on this machine. Files
    /// downloaded for symbols are not downloaded again.
    pub(crate) fn files_from_anywhere(
        &self,
        module: &Module,
    ) -> Result<Box<SymbolFiles>, ModuleStatus> {
        let mut found = [self.find_here(Source::File(module))];
        if let Some(debuginfod) = &self.options.debuginfod {
            download::missing(&mut found, debuginfod, &self.options, Watch::default());
        }
        let [found] = found;
        match found {
            Found::Files(Ok(files)) => Ok(files),
            Found::Files(Err((status, _))) => Err(status),
            _ => Err(ModuleStatus::NotEmbedded),
        }
    }

    /// The files with symbols of a module on this machine.
    fn files(&self, module: &Module) -> Result<SymbolFiles, ModuleStatus> {
        let main = locate::module_file(module, self.places.as_ref(), &self.options)?;
        Ok(SymbolFiles::find(main, &self.options))
    }

    fn answer(&self, query: &Query<'_>, found: Found, done: &(dyn Fn(usize) + Sync)) -> Resolved {
        let addresses = query.addresses;
        match found {
            Found::Answer(resolved) => resolved,
            Found::Partly(parts) => {
                let (Stored { resolved, missing }, found) = *parts;
                let rest = Query {
                    addresses: &missing,
                    ..*query
                };
                let rest = self.answer(&rest, found, done);
                resolved.completed(addresses, &missing, &rest)
            }
            Found::Unnamed(parts) => match *parts {
                (archived, Found::Files(Err(_))) => archived,
                (_, found) => self.answer(query, found, done),
            },
            Found::Kernel => self.kernel.resolve(addresses, &self.options),
            Found::Jit(pid) => jit::resolve(pid, addresses, self.places.as_ref(), &self.options),
            Found::Files(Ok(files)) => module::resolve(&files, addresses, &self.options, done),
            Found::Files(Err((status, _))) => Resolved::unnamed(status, addresses.len()),
        }
    }
}
