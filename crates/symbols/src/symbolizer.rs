//! The front door: queries in, answers out, in parallel.

use std::sync::atomic::AtomicBool;

use crate::embedded::EmbeddedSymbols;
use crate::options::{NoOtherPlaces, Places, SymbolOptions};
use crate::query::{Query, Resolved, Source};
use crate::status::ModuleStatus;

/// Names addresses.
///
/// It keeps the kernel's symbols once read, nothing else: each module's file is opened, asked for
/// all addresses at once and closed again.
pub struct Symbolizer {
    #[expect(dead_code)]
    options: SymbolOptions,
    #[expect(dead_code)]
    places: Box<dyn Places>,
    #[expect(dead_code)]
    embedded: Option<EmbeddedSymbols>,
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
        }
    }

    /// Looks for files in these places first.
    pub fn with_places(self, places: impl Places + 'static) -> Self {
        Self {
            places: Box::new(places),
            ..self
        }
    }

    /// Takes names from a recording that carries them; files are not looked at.
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
    pub fn resolve_watched(&self, queries: &[Query<'_>], _watch: Watch<'_>) -> Vec<Resolved> {
        queries
            .iter()
            .map(|query| {
                let status = match query.source {
                    Source::File(module) => ModuleStatus::Missing {
                        path: module.path.clone(),
                    },
                    _ => ModuleStatus::KernelHidden,
                };
                Resolved::unnamed(status, query.addresses.len())
            })
            .collect()
    }
}
