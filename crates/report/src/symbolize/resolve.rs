//! From addresses to functions, each distinct address once.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use prof_model::{FileOffset, ModuleId, StackEnd};
use prof_symbols::{EmbeddedSymbols, Resolved, Source, SymbolFrame, Symbolizer, Watch};
use rustc_hash::FxHashMap;

use super::entries::Entries;
use super::functions::{Function, FunctionId, Functions};
use super::naming::{self, ModuleNaming};
use super::plan::{JIT, KERNEL, Plan, UNKNOWN};
use super::{Location, SymbolizedProfile};
use crate::profile::{Frame, FrameId, FunctionKind, Profile, StackId};
use crate::thousands::grouped;

/// Names every frame; `naming` says how well modules could be named.
pub(super) fn symbolize(
    profile: Profile,
    symbolizer: &Symbolizer,
    watch: Watch<'_>,
    naming: impl FnOnce(&Profile, &Plan, &[Resolved]) -> Vec<ModuleNaming>,
) -> SymbolizedProfile {
    let plan = Plan::new(&profile);
    let answers = symbolizer.resolve_watched(&plan.queries(&profile), watch);
    let naming = naming(&profile, &plan, &answers);
    let start = |id| {
        let at = plan.position(id)?;
        answers.get(at.place)?.unnamed_start(at.address)
    };
    with_names(profile, |id| plan.answer(id, &answers), start, naming)
}

/// Names to be kept with a recording.
#[derive(Clone, Debug)]
pub struct StoredNames {
    /// The names.
    pub symbols: EmbeddedSymbols,
    /// How well modules could be named.
    pub naming: Vec<ModuleNaming>,
}

impl StoredNames {
    /// Names all that a profile has.
    pub fn new(profile: &Profile, symbolizer: &Symbolizer, watch: Watch<'_>) -> Self {
        let plan = Plan::new(profile);
        let queries = plan.queries(profile);
        let answers = symbolizer.resolve_watched(&queries, watch);
        let mut symbols = EmbeddedSymbols::new(&queries, &answers);
        for (module, addresses) in skipped_callers(profile) {
            symbols.add_skipped_callers(&profile.modules[module], addresses);
        }
        Self {
            symbols,
            naming: naming::of_modules(profile, &plan, &answers),
        }
    }

    /// Names only what `wanted` asks for. The names of the rest are looked for when the recording
    /// is reported.
    pub fn some(
        profile: &Profile,
        symbolizer: &Symbolizer,
        wanted: impl Fn(Source<'_>) -> bool,
        watch: Watch<'_>,
    ) -> EmbeddedSymbols {
        let plan = Plan::new(profile);
        let mut queries = plan.queries(profile);
        queries.retain(|query| wanted(query.source));
        let answers = symbolizer.resolve_watched(&queries, watch);
        EmbeddedSymbols::some(&queries, &answers)
    }
}

/// The innermost addresses of stacks that lack the caller there, by their files.
fn skipped_callers(profile: &Profile) -> BTreeMap<ModuleId, Vec<u64>> {
    let mut found: BTreeMap<ModuleId, Vec<u64>> = BTreeMap::new();
    let skipped = profile.samples.iter();
    let skipped = skipped.filter(|sample| sample.end == StackEnd::SkippedCaller);
    let stacks: BTreeSet<StackId> = skipped.map(|sample| sample.stack).collect();
    for stack in stacks {
        let callers = std::iter::successors(Some(stack), |&id| profile.stacks.prefix(id));
        let frames = callers.map(|id| profile.frames[profile.stacks.frame(id)]);
        let user = frames.take_while(|frame| *frame != Frame::LeftOut(1));
        if let Some(Frame::Module { module, offset }) = user.last() {
            found.entry(module).or_default().push(offset.0);
        }
    }
    found
}

/// Expands every frame into the functions that `names` has for it, innermost first. What has no
/// name is called by where its function begins, if `start` knows that.
pub(super) fn with_names<'a>(
    profile: Profile,
    names: impl Fn(FrameId) -> &'a [SymbolFrame],
    start: impl Fn(FrameId) -> Option<u64>,
    naming: Vec<ModuleNaming>,
) -> SymbolizedProfile {
    let mut named = FrameNames::default();
    for (id, _) in profile.frames.iter() {
        named.set(&profile, id, names(id), start(id));
    }
    SymbolizedProfile::assembled(profile, Arc::new(named), naming)
}

/// The name of all waits, where running and waiting are in one view.
pub(crate) const OFF_CPU: &str = "[off-CPU]";

/// The names of a profile's frames.
#[derive(Clone, Debug, Default)]
pub(super) struct FrameNames {
    functions: Functions,
    /// The locations of all frames, those of one together, innermost first.
    locations: Vec<Location>,
    /// By frame number: where its locations are.
    ranges: Vec<Range<u32>>,
    entries: Entries,
    /// Short names of modules, to be shared by their functions.
    modules: FxHashMap<ModuleId, Arc<str>>,
}

impl FrameNames {
    pub(super) fn functions(&self) -> &Functions {
        &self.functions
    }

    pub(super) fn locations(&self, frame: FrameId) -> &[Location] {
        let Range { start, end } = self.ranges[frame.index()];
        &self.locations[start as usize..end as usize]
    }

    pub(super) fn entries(&self) -> &Entries {
        &self.entries
    }

    /// Names a frame, or names it anew: by the functions of `answer`, innermost first, or else by
    /// where its function begins, if that is known.
    pub(super) fn set(
        &mut self,
        profile: &Profile,
        id: FrameId,
        answer: &[SymbolFrame],
        start: Option<u64>,
    ) {
        let first = self.locations.len() as u32;
        match (profile.frames[id], start) {
            (Frame::Named(named), _) => {
                self.add(
                    profile,
                    Frame::Named(named),
                    &profile.named[named].functions,
                );
            }
            (Frame::Module { module, .. }, Some(start)) => {
                let offset = FileOffset(start);
                self.add(profile, Frame::Module { module, offset }, answer);
            }
            (frame, _) => self.add(profile, frame, answer),
        }
        let locations = first..self.locations.len() as u32;
        // The last location of a frame is the physical function.
        if let Some(physical) = self.locations.last() {
            let name = &self.functions[physical.function].name;
            self.entries.set(id, name);
        }
        if self.ranges.len() <= id.index() {
            self.ranges.resize(id.index() + 1, 0..0);
        }
        self.ranges[id.index()] = locations;
    }

    fn add(&mut self, profile: &Profile, frame: Frame, answer: &[SymbolFrame]) {
        let (module, kind) = self.owner(profile, frame);
        for symbol in answer {
            let function = self.functions.intern(Function {
                name: Arc::clone(&symbol.function),
                module: Arc::clone(&module),
                kind,
            });
            self.locations.push(Location {
                function,
                file: symbol.file.clone(),
                line: symbol.line,
                inlined: symbol.inlined,
            });
        }
        if answer.is_empty() {
            let function = self.unnamed(profile, frame, module, kind);
            self.locations.push(Location {
                function,
                file: None,
                line: None,
                inlined: false,
            });
        }
    }

    /// The name of the module a frame is in, and the kind of its code.
    fn owner(&mut self, profile: &Profile, frame: Frame) -> (Arc<str>, FunctionKind) {
        match frame {
            Frame::Module { module, .. } => {
                let name = self
                    .modules
                    .entry(module)
                    .or_insert_with(|| Arc::from(profile.modules[module].short_name().as_str()));
                (Arc::clone(name), FunctionKind::User)
            }
            Frame::Kernel(_) => (Arc::from(KERNEL), FunctionKind::Kernel),
            Frame::Jit { .. } => (Arc::from(JIT), FunctionKind::Jit),
            Frame::Unknown(_) => (Arc::from(UNKNOWN), FunctionKind::User),
            Frame::Named(id) => {
                let named = &profile.named[id];
                (Arc::clone(&named.module), named.kind)
            }
            Frame::OnCpu | Frame::OffCpu => (Arc::from(""), FunctionKind::State),
            Frame::Cut(_) | Frame::LeftOut(_) => (Arc::from(""), FunctionKind::Missing),
        }
    }

    fn unnamed(
        &mut self,
        profile: &Profile,
        frame: Frame,
        module: Arc<str>,
        kind: FunctionKind,
    ) -> FunctionId {
        let name = match frame {
            Frame::Module {
                offset: FileOffset(offset),
                ..
            } => format!("{module}+{offset:#x}"),
            Frame::Kernel(address) => {
                let start = profile.kernel.text.unwrap_or(0);
                format!("{KERNEL}+{:#x}", address.wrapping_sub(start))
            }
            // Such addresses differ from run to run and from process to process.
            Frame::Jit { .. } => JIT.into(),
            Frame::Unknown(_) => UNKNOWN.into(),
            Frame::Cut(end) => cut_label(end),
            Frame::LeftOut(count) => left_out_label(count),
            Frame::Named(_) => "[no name]".into(),
            Frame::OnCpu => "[on-CPU]".into(),
            Frame::OffCpu => OFF_CPU.into(),
        };
        self.functions.intern(Function {
            name: name.into(),
            module,
            kind,
        })
    }
}

/// The frame that stands for missing callers in a view.
fn cut_label(end: StackEnd) -> String {
    match end {
        StackEnd::NotSeen => "[wait, stack not seen]".into(),
        _ => format!("[truncated: {}]", end.describe()),
    }
}

/// What stands in a view for frames left out of the middle. Rounded down to a power of ten, so
/// that stacks which differ only in this number still share what they called.
fn left_out_label(count: u32) -> String {
    match count.checked_ilog10() {
        Some(digits @ 1..) => format!(
            "[... over {} frames left out ...]",
            grouped(10_u64.pow(digits))
        ),
        _ if count == 1 => "[... one frame left out ...]".into(),
        _ => "[... a few frames left out ...]".into(),
    }
}
