//! Symbols for a recording in progress.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};

use anyhow::Result;
use prof_model::{Module, Pid};
use prof_recorder::LiveNames;
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
    /// The names of run-time code.
    names: LiveNames,
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

    /// With these names of run-time code.
    pub(crate) fn new(names: LiveNames) -> Self {
        Self {
            names,
            ..Self::default()
        }
    }

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
                Symbolizer::new(options).with_places(LivePlaces {
                    living: self.living.clone(),
                    names: self.names.clone(),
                })
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

    fn read(&self) -> RwLockReadGuard<'_, ProcessFiles> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is known of processes while they are recorded.
#[derive(Debug)]
struct LivePlaces {
    living: Shared,
    names: LiveNames,
}

impl Places for LivePlaces {
    fn candidates(&self, module: &Module) -> Vec<PathBuf> {
        let living = self.living.read();
        living.candidates(module)
    }

    fn jitdumps(&self, pid: Pid) -> Vec<PathBuf> {
        let living = self.living.read();
        living.jitdumps(pid)
    }

    fn perf_map(&self, pid: Pid) -> Option<Cow<'_, str>> {
        let map = self.names.perf_map(pid)?;
        Some(Cow::Owned(map.as_ref().to_owned()))
    }
}
