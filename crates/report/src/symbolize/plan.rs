//! Which addresses to ask for, each once, and where their answers are.

use std::collections::BTreeMap;

use prof_model::{ModuleId, ModuleKind, Pid};
use prof_symbols::{Query, Resolved, Source, SymbolFrame};

use crate::profile::{Frame, FrameId, Profile};

/// The module of the kernel's functions.
pub(crate) const KERNEL: &str = "[kernel]";
/// The module of functions made at run time.
pub(crate) const JIT: &str = "[jit]";
/// The module, and the function, of code outside of all files.
pub(crate) const UNKNOWN: &str = "[unknown]";

/// All questions, and where the answer to each frame is.
pub(super) struct Plan {
    /// Sorted, distinct addresses by place, in the order of the places.
    places: Vec<(LookupSpace, Vec<u64>)>,
    /// By frame number.
    positions: Vec<Option<Position>>,
}

/// Where the answer to a frame is.
#[derive(Clone, Copy)]
pub(super) struct Position {
    /// The index of the place.
    pub(super) place: usize,
    /// The index of the address in it.
    pub(super) address: usize,
}

impl Plan {
    pub(super) fn new(profile: &Profile) -> Self {
        let mut by_place: BTreeMap<LookupSpace, Vec<u64>> = BTreeMap::new();
        for (_, frame) in profile.frames.iter() {
            if let Some((place, address)) = LookupSpace::of(frame, profile) {
                by_place.entry(place).or_default().push(address);
            }
        }
        let mut places: Vec<_> = by_place.into_iter().collect();
        for (_, addresses) in &mut places {
            addresses.sort_unstable();
            addresses.dedup();
        }
        let position = |frame| {
            let (place, address) = LookupSpace::of(frame, profile)?;
            let place = places
                .binary_search_by_key(&place, |(place, _)| *place)
                .ok()?;
            let address = places[place].1.binary_search(&address).ok()?;
            Some(Position { place, address })
        };
        let positions = profile
            .frames
            .iter()
            .map(|(_, frame)| position(frame))
            .collect();
        Self { places, positions }
    }

    pub(super) fn queries<'a>(&'a self, profile: &'a Profile) -> Vec<Query<'a>> {
        let query = |(place, addresses): &'a (LookupSpace, Vec<u64>)| Query {
            source: place.source(profile),
            addresses,
        };
        self.places.iter().map(query).collect()
    }

    /// The places, in the order of the questions.
    pub(super) fn places(&self) -> impl Iterator<Item = LookupSpace> {
        self.places.iter().map(|(place, _)| *place)
    }

    /// In which answer a frame's names are, and where in it.
    pub(super) fn position(&self, id: FrameId) -> Option<Position> {
        self.positions[id.index()]
    }

    pub(super) fn answer<'a>(&self, id: FrameId, answers: &'a [Resolved]) -> &'a [SymbolFrame] {
        self.position(id)
            .and_then(|at| Some(answers.get(at.place)?.frames(at.address)))
            .unwrap_or_default()
    }
}

/// Where to look a frame up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum LookupSpace {
    File(ModuleId),
    Kernel,
    Jit(Pid),
}

impl LookupSpace {
    pub(super) fn of(frame: Frame, profile: &Profile) -> Option<(Self, u64)> {
        match frame {
            Frame::Module { module, offset } => match profile.modules[module].kind {
                ModuleKind::File | ModuleKind::Vdso => Some((Self::File(module), offset.0)),
                _ => None,
            },
            Frame::Kernel(address) => Some((Self::Kernel, address)),
            Frame::Jit { pid, address } => Some((Self::Jit(pid), address)),
            _ => None,
        }
    }

    pub(super) fn source(self, profile: &Profile) -> Source<'_> {
        match self {
            Self::File(module) => Source::File(&profile.modules[module]),
            Self::Kernel => Source::Kernel,
            Self::Jit(pid) => Source::Jit { pid },
        }
    }

    pub(super) fn name(self, profile: &Profile) -> String {
        match self {
            Self::File(module) => profile.modules[module].short_name(),
            Self::Kernel => KERNEL.into(),
            Self::Jit(pid) => format!("{JIT} (process {pid})"),
        }
    }
}
