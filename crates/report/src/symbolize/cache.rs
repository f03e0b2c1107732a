//! Names that are kept from one profile to the next, for recordings that are still being made.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use prof_symbols::{Query, SymbolFrame, Symbolizer};
use rustc_hash::{FxHashMap, FxHashSet};

use super::SymbolizedProfile;
use super::plan::Place;
use super::resolve::with_names;
use crate::profile::Profile;

/// Names that were found. Profiles of one recording must be named by the same cache.
#[derive(Debug, Default)]
pub struct NameCache {
    places: BTreeMap<Place, Known>,
    /// Addresses in all places.
    len: usize,
}

/// What is known of a place.
#[derive(Debug, Default)]
struct Known {
    names: FxHashMap<u64, Names>,
    /// How often it was asked, and when it may be again: each time, its file is read anew.
    asked: u32,
    due: Option<Instant>,
}

/// The names of an address, innermost first; none if it has no name.
#[derive(Debug)]
struct Names {
    frames: Box<[SymbolFrame]>,
    /// Where its function begins, if it has no name.
    start: Option<u64>,
}

impl NameCache {
    /// A place is left alone so many times as long as it took to answer, times how often it was
    /// asked: new addresses become rare.
    const REST: u32 = 8;
    /// In the long run, so many times as long.
    const LONGEST_REST: u32 = 100;
    /// Naming one profile takes hardly longer.
    const MOST_TIME: Duration = Duration::from_millis(300);
    /// So many addresses that nothing has any more are kept.
    const SPARE: usize = 20_000;

    /// Names every frame of `profile`. New addresses of files that are slow to read have no names
    /// for a while.
    pub fn symbolize(&mut self, profile: Profile, symbolizer: &Symbolizer) -> SymbolizedProfile {
        let places: Vec<Option<(Place, u64)>> = (profile.frames.iter())
            .map(|(_, frame)| Place::of(frame, &profile))
            .collect();
        self.drop_unused(&places);
        let begin = Instant::now();
        for (place, addresses) in self.missing(&places) {
            if begin.elapsed() > Self::MOST_TIME {
                break;
            }
            self.ask(place, &addresses, &profile, symbolizer);
        }
        let names = |id: crate::profile::FrameId| {
            let (place, address) = places[id.index()]?;
            self.places.get(&place)?.names.get(&address)
        };
        with_names(
            profile,
            |id| names(id).map_or(&[][..], |names| &names.frames),
            |id| names(id)?.start,
            Vec::new(),
        )
    }

    /// Addresses without an answer, of those places that may be asked.
    fn missing(&self, places: &[Option<(Place, u64)>]) -> BTreeMap<Place, Vec<u64>> {
        let now = Instant::now();
        let mut missing: BTreeMap<Place, Vec<u64>> = BTreeMap::new();
        for &(place, address) in places.iter().flatten() {
            let known = self.places.get(&place);
            let is_due = known.is_none_or(|known| known.due.is_none_or(|due| due <= now));
            if is_due && known.is_none_or(|known| !known.names.contains_key(&address)) {
                missing.entry(place).or_default().push(address);
            }
        }
        for addresses in missing.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
        missing
    }

    fn ask(&mut self, place: Place, addresses: &[u64], profile: &Profile, symbolizer: &Symbolizer) {
        let begin = Instant::now();
        let source = place.source(profile);
        let answers = symbolizer.resolve(&[Query { source, addresses }]);
        let known = self.places.entry(place).or_default();
        for (index, &address) in addresses.iter().enumerate() {
            let frames = answers.first().map_or(&[][..], |it| it.frames(index));
            // What is compiled while it runs may get its name later.
            if frames.is_empty() && matches!(place, Place::Jit(_)) {
                continue;
            }
            let start = answers.first().and_then(|it| it.unnamed_start(index));
            let frames = frames.into();
            let before = known.names.insert(address, Names { frames, start });
            self.len += usize::from(before.is_none());
        }
        known.asked = known.asked.saturating_add(1);
        // The kernel's names are kept by who was asked.
        if place != Place::Kernel {
            let rest = known
                .asked
                .saturating_mul(Self::REST)
                .min(Self::LONGEST_REST);
            let now = Instant::now();
            known.due = now.checked_add((now - begin) * rest);
        }
    }

    /// Forgets what this profile does not ask for, once that is much.
    fn drop_unused(&mut self, places: &[Option<(Place, u64)>]) {
        if self.len <= 2 * places.len() + Self::SPARE {
            return;
        }
        let used: FxHashSet<(Place, u64)> = places.iter().flatten().copied().collect();
        for (place, known) in &mut self.places {
            known
                .names
                .retain(|&address, _| used.contains(&(*place, address)));
        }
        self.places.retain(|_, known| !known.names.is_empty());
        self.len = self.places.values().map(|known| known.names.len()).sum();
    }
}
