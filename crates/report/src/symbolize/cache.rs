//! Names that are kept from one profile to the next, for recordings that are still being made.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prof_symbols::{Query, SymbolFrame, Symbolizer};
use rustc_hash::FxHashSet;

use super::SymbolizedProfile;
use super::plan::LookupSpace;
use super::resolve::FrameNames;
use crate::profile::{Frame, FrameId, Profile};

/// Names that were found. Profiles of one recording must be named by the same cache, and the last
/// one should be dropped before the next one comes: its names are shared then, not copied.
#[derive(Debug, Default)]
pub struct NameCache {
    places: BTreeMap<LookupSpace, Known>,
    /// Names in all places.
    len: usize,
    /// The frames of the last profile, by number, and what they are called.
    frames: Vec<Frame>,
    named: Arc<FrameNames>,
    /// Those without an answer yet, in the order of their numbers.
    unanswered: Vec<Unanswered>,
    /// How often files were read again, and until when they are left alone.
    rounds: u32,
    rests_until: Option<Instant>,
}

/// A frame that may get a name.
#[derive(Clone, Copy, Debug)]
struct Unanswered {
    frame: FrameId,
    place: LookupSpace,
    address: u64,
}

/// The symbols of an address range, by its first address.
#[derive(Debug, Default)]
struct Known(BTreeMap<u64, AddressNames>);

impl Known {
    fn find(&self, address: u64) -> Option<(u64, &AddressNames)> {
        let (&start, names) = self.0.range(..=address).next_back()?;
        (address < names.end).then_some((start, names))
    }
}

/// The names of addresses, innermost first; none if they have no name.
#[derive(Debug)]
struct AddressNames {
    frames: Box<[SymbolFrame]>,
    /// The function's start, if it has no name.
    start: Option<u64>,
    /// The first address that may have others.
    end: u64,
}

impl NameCache {
    /// To name new addresses of a file, it is read anew. After that, all are left alone for so many
    /// times as long as it took, times how often that was: new addresses become rare.
    const REST: u32 = 8;
    /// In the long run, so many times as long.
    const LONGEST_REST: u32 = 200;
    /// Naming one profile takes hardly longer.
    const MOST_TIME: Duration = Duration::from_millis(300);
    /// So many names that nothing has any more are kept.
    const SPARE: usize = 20_000;

    /// Names every frame of `profile`. New addresses of files that were read before have no names
    /// for a while.
    pub fn symbolize(&mut self, profile: Profile, symbolizer: &Symbolizer) -> SymbolizedProfile {
        let known = self.known_frames(&profile);
        self.drop_unused(&profile);
        for (frame, what) in profile.frames.iter().skip(known) {
            self.frames.push(what);
            match LookupSpace::of(what, &profile) {
                Some((place, address)) => self.unanswered.push(Unanswered {
                    frame,
                    place,
                    address,
                }),
                None => Arc::make_mut(&mut self.named).set(&profile, frame, &[], None),
            }
        }
        self.ask_all(&profile, symbolizer);
        self.set_names(&profile, known);
        SymbolizedProfile::assembled(profile, Arc::clone(&self.named), Vec::new())
    }

    /// How many frames this profile has in common with the last one, which it mostly extends.
    /// Otherwise frames have got other numbers, and none is known.
    fn known_frames(&mut self, profile: &Profile) -> usize {
        let frames = profile.frames.iter().map(|(_, frame)| frame);
        let is_extended = self.frames.len() <= profile.frames.len()
            && frames
                .zip(&self.frames)
                .all(|(frame, known)| frame == *known);
        if !is_extended {
            self.frames.clear();
            self.named = Arc::default();
            self.unanswered.clear();
        }
        self.frames.len()
    }

    /// Names what is new, and what has got an answer at last.
    fn set_names(&mut self, profile: &Profile, known: usize) {
        let named = Arc::make_mut(&mut self.named);
        let places = &self.places;
        self.unanswered.retain(|it| {
            let found = places.get(&it.place);
            let found = found.and_then(|known| known.find(it.address));
            let found = found.map(|(_, names)| names);
            if found.is_some() || it.frame.index() >= known {
                let frames = found.map_or(&[][..], |names| &names.frames);
                let start = found.and_then(|names| names.start);
                named.set(profile, it.frame, frames, start);
            }
            found.is_none()
        });
    }

    /// Names what may be asked for now.
    fn ask_all(&mut self, profile: &Profile, symbolizer: &Symbolizer) {
        let begin = Instant::now();
        let rests = self.rests_until.is_some_and(|end| begin < end);
        let mut reads_again = false;
        for (place, addresses) in self.missing(rests) {
            if begin.elapsed() > Self::MOST_TIME {
                break;
            }
            reads_again |= self.is_read_again(place);
            self.ask(place, &addresses, profile, symbolizer);
        }
        if reads_again {
            self.rounds = self.rounds.saturating_add(1);
            let times = self.rounds.saturating_mul(Self::REST);
            let rest = begin.elapsed() * times.min(Self::LONGEST_REST);
            self.rests_until = Instant::now().checked_add(rest);
        }
    }

    /// Whether asking costs as much as it did before. The symbolizer keeps the kernel's names.
    fn is_read_again(&self, place: LookupSpace) -> bool {
        place != LookupSpace::Kernel && self.places.contains_key(&place)
    }

    /// Addresses without an answer; while all rest, only of places that were never read.
    fn missing(&self, rests: bool) -> BTreeMap<LookupSpace, Vec<u64>> {
        let mut missing: BTreeMap<LookupSpace, Vec<u64>> = BTreeMap::new();
        for it in &self.unanswered {
            let known = self.places.get(&it.place);
            if known.is_none_or(|known| known.find(it.address).is_none())
                && !(rests && self.is_read_again(it.place))
            {
                missing.entry(it.place).or_default().push(it.address);
            }
        }
        for addresses in missing.values_mut() {
            addresses.sort_unstable();
            addresses.dedup();
        }
        missing
    }

    fn ask(
        &mut self,
        place: LookupSpace,
        addresses: &[u64],
        profile: &Profile,
        symbolizer: &Symbolizer,
    ) {
        let source = place.source(profile);
        let answers = symbolizer.resolve(&[Query { source, addresses }]);
        let known = self.places.entry(place).or_default();
        for (index, &address) in addresses.iter().enumerate() {
            let frames = answers.first().map_or(&[][..], |it| it.frames(index));
            // What is compiled while it runs may get its name later.
            if frames.is_empty() && matches!(place, LookupSpace::Jit(_)) {
                continue;
            }
            let start = answers.first().and_then(|it| it.unnamed_start(index));
            let extent = answers.first().and_then(|it| it.extent(index));
            let extent = extent.unwrap_or(address..address.saturating_add(1));
            let names = AddressNames {
                frames: frames.into(),
                start,
                end: extent.end,
            };
            let before = known.0.insert(extent.start, names);
            self.len += usize::from(before.is_none());
        }
    }

    /// Forgets what this profile does not ask for, once that is much.
    fn drop_unused(&mut self, profile: &Profile) {
        if self.len <= 2 * profile.frames.len() + Self::SPARE {
            return;
        }
        let frames = profile.frames.iter();
        let used = frames.filter_map(|(_, frame)| {
            let (place, address) = LookupSpace::of(frame, profile)?;
            let (start, _) = self.places.get(&place)?.find(address)?;
            Some((place, start))
        });
        let used: FxHashSet<(LookupSpace, u64)> = used.collect();
        for (place, known) in &mut self.places {
            known.0.retain(|&start, _| used.contains(&(*place, start)));
        }
        self.places.retain(|_, known| !known.0.is_empty());
        self.len = self.places.values().map(|known| known.0.len()).sum();
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{FileOffset, Module};
    use prof_procfs::Task;
    use prof_symbols::SymbolOptions;

    use super::*;

    fn names(symbolized: &SymbolizedProfile) -> Vec<String> {
        let frames = symbolized.profile().frames.iter();
        let locations = frames.map(|(id, _)| symbolized.locations(id));
        locations
            .map(|locations| symbolized[locations[0].function].name.to_string())
            .collect()
    }

    #[test]
    fn profiles_that_grow_and_such_with_other_numbers_have_the_right_names() {
        let symbolizer = Symbolizer::new(SymbolOptions::default());
        let jit = Frame::Jit {
            pid: i32::MAX,
            address: 7,
        };
        let mut cache = NameCache::default();
        for frames in [
            &[Frame::Unknown(1), jit][..],
            &[Frame::Unknown(1), jit, Frame::OnCpu, Frame::Unknown(2)],
            &[Frame::Unknown(2), Frame::Unknown(1)],
            &[jit, Frame::Unknown(1), Frame::OffCpu],
            &[],
        ] {
            let mut profile = Profile::default();
            for &frame in frames {
                profile.frames.intern(frame);
            }
            let expected = names(&SymbolizedProfile::new(profile.clone(), &symbolizer));
            assert_eq!(names(&cache.symbolize(profile, &symbolizer)), expected);
        }
    }

    /// The place of this function's code in our own file.
    #[inline(never)]
    fn here() -> u64 {
        let address = std::hint::black_box(here as fn() -> u64) as usize as u64;
        let maps = Task::this_process().maps().unwrap();
        let mapping = maps.find(address).unwrap();
        address - mapping.addresses.start + mapping.file_offset
    }

    #[test]
    fn other_addresses_of_a_named_function_need_no_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("program");
        std::fs::copy(std::env::current_exe().unwrap(), &file).unwrap();
        let symbolizer = Symbolizer::new(SymbolOptions {
            inlines: false,
            ..SymbolOptions::default()
        });
        let profile = |offsets: &[u64]| {
            let mut profile = Profile::default();
            let module = profile.modules.intern(Module::from_path(&file));
            for &offset in offsets {
                let offset = FileOffset(offset);
                profile.frames.intern(Frame::Module { module, offset });
            }
            profile
        };
        let start = here();
        let mut cache = NameCache::default();
        let first = names(&cache.symbolize(profile(&[start]), &symbolizer));
        assert!(first[0].ends_with("::here"), "{first:?}");
        std::fs::remove_file(&file).unwrap();
        let both = names(&cache.symbolize(profile(&[start, start + 1]), &symbolizer));
        assert_eq!(both, [&*first[0], &*first[0]]);
        let before = names(&cache.symbolize(profile(&[start, start - 1]), &symbolizer));
        assert_ne!(before[1], first[0]);
    }
}
