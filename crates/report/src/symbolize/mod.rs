//! A profile with names: every frame expanded into the functions that were inlined there.

mod cache;
mod entries;
mod functions;
mod language;
mod languages;
mod naming;
mod plan;
pub(crate) mod primitives;
mod resolve;

use std::ops::Index;
use std::sync::Arc;

use prof_model::{Quality, Verdict};
use prof_symbols::{Symbolizer, Watch};

use crate::profile::{FrameId, Profile, StackId};

pub use crate::profile::FunctionKind;
pub use cache::NameCache;
pub use functions::{Function, FunctionId};
pub use language::Language;
pub use languages::Languages;
pub use naming::{Doubt, ModuleNaming};
pub(crate) use plan::{JIT, KERNEL, UNKNOWN};
pub(crate) use resolve::OFF_CPU;
pub use resolve::StoredNames;

use resolve::FrameNames;

/// A profile whose frames have names. Views work on this.
#[derive(Clone, Debug)]
pub struct SymbolizedProfile {
    profile: Profile,
    quality: Quality,
    /// Shared with a [`NameCache`], which names more frames of the next profile.
    named: Arc<FrameNames>,
    naming: Vec<ModuleNaming>,
}

/// The position in one function of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// The function.
    pub function: FunctionId,
    /// The source file, if known.
    pub file: Option<Arc<str>>,
    /// The line in it, from 1; for a function with others inlined into it, the line of the call.
    pub line: Option<u32>,
    /// Whether the compiler inlined the function into the next location's.
    pub inlined: bool,
}

impl SymbolizedProfile {
    /// Names every frame of `profile`, each distinct address once.
    pub fn new(profile: Profile, symbolizer: &Symbolizer) -> Self {
        resolve::symbolize(profile, symbolizer, Watch::default(), |_, _, _| Vec::new())
    }

    /// As [`new`](Self::new), reporting its progress, and how well each module could be
    /// [named](Self::naming).
    pub fn watched(profile: Profile, symbolizer: &Symbolizer, watch: Watch<'_>) -> Self {
        resolve::symbolize(profile, symbolizer, watch, naming::of_modules)
    }

    fn assembled(mut profile: Profile, named: Arc<FrameNames>, naming: Vec<ModuleNaming>) -> Self {
        profile.clean_texts();
        Self {
            quality: named.entries().mark_whole(&mut profile),
            named,
            naming,
            profile,
        }
    }

    /// Leaves all frames without names but those that came with some: they are files and offsets.
    pub fn without_names(profile: Profile) -> Self {
        resolve::with_names(profile, |_| &[], |_| None, Vec::new())
    }

    /// Takes the names of each frame, innermost first, from `names`; there may be none.
    #[cfg(test)]
    pub(crate) fn with_names<'a>(
        profile: Profile,
        names: impl Fn(FrameId) -> &'a [prof_symbols::SymbolFrame],
    ) -> Self {
        resolve::with_names(profile, names, |_| None, Vec::new())
    }

    /// The profile without names.
    pub fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Losses and how stacks ended. Better informed than the profile's own: stacks that frame
    /// pointers led to a function that is an entry count as whole.
    pub fn quality(&self) -> &Quality {
        &self.quality
    }

    /// The verdict on the recording, with how much of it has names if that is known.
    pub fn verdict(&self) -> Verdict {
        let sum = |of: fn(&ModuleNaming) -> u64| self.naming.iter().map(of).sum::<u64>();
        let unnamed = sum(|naming| naming.unnamed_innermost);
        Verdict::new(&self.quality).with_names(unnamed, sum(|naming| naming.samples))
    }

    /// The locations of a frame, innermost first: inlined functions, then the physical one. At
    /// least one.
    pub fn locations(&self, frame: FrameId) -> &[Location] {
        self.named.locations(frame)
    }

    /// The callers of a stack, as [`Stacks::prefix`](crate::profile::Stacks::prefix), but
    /// without the mark of a cut where the stack turned out to reach its root.
    pub fn prefix(&self, id: StackId) -> Option<StackId> {
        self.named.entries().prefix(&self.profile, id)
    }

    /// All functions, by the number of their ids.
    pub fn functions(&self) -> &[Function] {
        self.named.functions().as_slice()
    }

    /// The ids of all functions, in the order of their numbers.
    pub(crate) fn function_ids(&self) -> impl Iterator<Item = FunctionId> + use<> {
        (0..self.functions().len() as u32).map(FunctionId::from_number)
    }

    /// How well each module could be named, the one with the most weight first; nothing if that was
    /// not asked for.
    pub fn naming(&self) -> &[ModuleNaming] {
        &self.naming
    }
}

impl Index<FunctionId> for SymbolizedProfile {
    type Output = Function;

    fn index(&self, id: FunctionId) -> &Function {
        &self.named.functions()[id]
    }
}
