//! The front door: queries in, answers out, in parallel.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use prof_model::{Module, ModuleKind};
use rayon::prelude::*;

use crate::embedded::EmbeddedSymbols;
use crate::files::ModuleFiles;
use crate::jit;
use crate::kernel::{KernelError, KernelSymbols};
use crate::locate;
use crate::module;
use crate::names::Names;
use crate::options::{NoOtherPlaces, Places, SymbolOptions};
use crate::query::{Detail, Query, Resolved, Source, SymbolFrame};
use crate::status::ModuleStatus;

/// Names addresses.
///
/// It keeps the kernel's symbols once read, nothing else: each module's file is opened, asked for
/// all addresses at once and closed again.
pub struct Symbolizer {
    options: SymbolOptions,
    places: Box<dyn Places>,
    embedded: Option<EmbeddedSymbols>,
    kernel: OnceLock<Result<KernelSymbols, KernelError>>,
}

/// How far [`Symbolizer::resolve_watched`] has come.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Progress {
    /// So many of all addresses are done.
    Resolved {
        /// Addresses done.
        done: usize,
        /// Addresses asked for.
        total: usize,
    },
    /// Debug info is being downloaded.
    Download {
        /// The module's short name.
        module: String,
        /// Bytes so far.
        received: u64,
        /// Bytes in all, if the server says.
        total: Option<u64>,
    },
}

/// Eyes and a hand on a long run.
#[derive(Clone, Copy, Default)]
pub struct Watch<'a> {
    /// Called now and then, from any thread.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
    /// Set it to skip all downloads from then on; what is on this machine is still used.
    pub skip_downloads: Option<&'a AtomicBool>,
}

impl Symbolizer {
    /// A symbolizer that knows files by their recorded paths.
    pub fn new(options: SymbolOptions) -> Self {
        Self {
            options,
            places: Box::new(NoOtherPlaces),
            embedded: None,
            kernel: OnceLock::new(),
        }
    }

    /// Looks for files in these places first.
    pub fn with_places(self, places: impl Places + 'static) -> Self {
        Self {
            places: Box::new(places),
            ..self
        }
    }

    /// Takes names from a recording that carries them. For modules that it does not carry, files
    /// are looked at only where their build id shows that they are the right ones: the recording
    /// may be another machine's.
    pub fn with_embedded(self, symbols: EmbeddedSymbols) -> Self {
        Self {
            embedded: Some(symbols),
            ..self
        }
    }

    /// Names all addresses of all queries. The answers come in the order of the queries.
    pub fn resolve(&self, queries: &[Query<'_>]) -> Vec<Resolved> {
        self.resolve_watched(queries, Watch::default())
    }

    /// As [`resolve`](Self::resolve), telling how far it is.
    pub fn resolve_watched(&self, queries: &[Query<'_>], watch: Watch<'_>) -> Vec<Resolved> {
        let total = queries.iter().map(|query| query.addresses.len()).sum();
        let finished = AtomicUsize::new(0);
        let done = |count: usize| {
            let done = finished.fetch_add(count, Ordering::Relaxed) + count;
            if let Some(progress) = watch.progress {
                progress(Progress::Resolved { done, total });
            }
        };
        queries
            .par_iter()
            .map(|query| self.answer(query, &done))
            .collect()
    }

    fn answer(&self, query: &Query<'_>, done: &(dyn Fn(usize) + Sync)) -> Resolved {
        let count = query.addresses.len();
        if count == 0 {
            return Resolved::unnamed(ModuleStatus::Named, 0);
        }
        if let Some(embedded) = &self.embedded {
            if let Some(resolved) = embedded.answer(query) {
                return resolved;
            }
            if !is_same_anywhere(query.source) {
                return Resolved::unnamed(ModuleStatus::NotEmbedded, count);
            }
        }
        match query.source {
            Source::File(module) if module.kind == ModuleKind::Kernel => {
                self.kernel(query.addresses)
            }
            Source::File(module) => self.file(module, query.addresses, done),
            Source::Kernel => self.kernel(query.addresses),
            Source::Jit { pid } => {
                jit::resolve(pid, query.addresses, self.places.as_ref(), &self.options)
            }
        }
    }

    fn file(&self, module: &Module, offsets: &[u64], done: &(dyn Fn(usize) + Sync)) -> Resolved {
        match locate::module_file(module, self.places.as_ref()) {
            Ok(main) => {
                let files = ModuleFiles::find(main, &self.options);
                module::resolve(&files, offsets, &self.options, done)
            }
            Err(status) => Resolved::unnamed(status, offsets.len()),
        }
    }

    fn kernel(&self, addresses: &[u64]) -> Resolved {
        let path = &self.options.kallsyms;
        let symbols = self.kernel.get_or_init(|| KernelSymbols::read(path));
        let symbols = match symbols {
            Ok(symbols) => symbols,
            Err(KernelError::Hidden) => {
                return Resolved::unnamed(ModuleStatus::KernelHidden, addresses.len());
            }
            Err(KernelError::Io(error)) => {
                let status = locate::io_status(path, error.kind(), error);
                return Resolved::unnamed(status, addresses.len());
            }
        };
        let mut names = Names::new(self.options.demangle);
        let mut resolved = Resolved::unnamed(ModuleStatus::Named, 0);
        resolved.detail = Detail::Functions;
        resolved.file = Some(path.clone());
        for &address in addresses {
            resolved.push(symbols.find(address).map(|name| SymbolFrame {
                function: names.function(name.as_bytes()),
                file: None,
                line: None,
                inlined: false,
            }));
        }
        resolved
    }
}

/// Whether what is found on this machine can be told from another machine's.
fn is_same_anywhere(source: Source<'_>) -> bool {
    matches!(source, Source::File(module) if module.build_id.is_some())
}
