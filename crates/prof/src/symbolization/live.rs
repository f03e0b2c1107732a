//! Symbols for a recording in progress.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use anyhow::Result;
use prof_model::{Module, Pid};
use prof_report::Profile;
use prof_symbols::{AmbiguousPaths, Places, Symbolizer};

use super::places::ProcessFiles;
use super::{Detail, options};
use crate::flags::SymbolFlags;

/// Symbolizes functions by the symbol tables of this machine: debug info and downloads take too
/// long for the next picture.
#[derive(Default)]
pub(crate) struct LiveSymbols {
    symbolizer: Option<Symbolizer>,
    living: Shared,
    /// The processes that were examined.
    pids: BTreeSet<Pid>,
    looked: Option<Instant>,
    /// The number of modules that the symbolizer knows the files of.
    modules: usize,
}

impl LiveSymbols {
    /// How often new processes are examined.
    const INTERVAL: Duration = Duration::from_secs(5);

    /// A symbolizer for this profile.
    ///
    /// # Errors
    ///
    /// There are none.
    pub(crate) fn symbolizer(&mut self, profile: &Profile) -> Result<&Symbolizer> {
        let is_due = self.looked.is_none_or(|at| at.elapsed() >= Self::INTERVAL);
        if is_due {
            let pids: BTreeSet<Pid> = profile.samples.iter().map(|it| it.pid).collect();
            if !pids.is_subset(&self.pids) {
                self.living.look(profile);
                self.looked = Some(Instant::now());
            }
            self.pids = pids;
        }
        let known = std::mem::replace(&mut self.modules, profile.modules.len());
        let symbolizer = match self.symbolizer.take() {
            Some(mut symbolizer) => {
                if known != self.modules {
                    symbolizer.set_ambiguous_paths(AmbiguousPaths::of(&profile.modules));
                }
                symbolizer
            }
            None => {
                let options = options(profile, &SymbolFlags::offline(), Detail::Functions)?;
                Symbolizer::new(options).with_places(self.living.clone())
            }
        };
        Ok(self.symbolizer.insert(symbolizer))
    }
}

/// The files of living processes at the last examination.
#[derive(Clone, Debug, Default)]
struct Shared(Arc<RwLock<ProcessFiles>>);

impl Shared {
    fn look(&self, profile: &Profile) {
        let living = ProcessFiles::of(profile);
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = living;
    }
}

impl Places for Shared {
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        living.candidates(module)
    }

    fn jitdumps(&self, pid: Pid) -> Vec<PathBuf> {
        let living = self.0.read().unwrap_or_else(PoisonError::into_inner);
        living.jitdumps(pid)
    }
}
