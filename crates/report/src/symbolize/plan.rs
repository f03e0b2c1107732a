//! Which addresses to ask for, each once, and where their answers are.

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
        let frames = profile.frames.iter();
        let mut asked: Vec<(LookupSpace, u64, FrameId)> = frames
            .filter_map(|(id, frame)| {
                let (place, address) = LookupSpace::of(frame, profile)?;
                Some((place, address, id))
            })
            .collect();
        asked.sort_unstable();
        let mut places: Vec<(LookupSpace, Vec<u64>)> = Vec::new();
        let mut positions = vec![None; profile.frames.len()];
        for (place, address, id) in asked {
            if places.last().is_none_or(|(last, _)| *last != place) {
                places.push((place, Vec::new()));
            }
            let number = places.len() - 1;
            let addresses = &mut places[number].1;
            if addresses.last() != Some(&address) {
                addresses.push(address);
            }
            positions[id.index()] = Some(Position {
                place: number,
                address: addresses.len() - 1,
            });
        }
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
