//! How well modules could be named.

use std::fs;
use std::os::unix::fs::MetadataExt;

use prof_symbols::{Host, ModuleStatus, Resolved};
use rustc_hash::FxHashMap;

use super::language::{Language, runtimes};
use super::plan::{LookupSpace, Plan};
use crate::profile::Profile;

/// How well a module could be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNaming {
    /// The module's short name, `[kernel]`, or `[jit] (process 123)`.
    pub module: String,
    /// Whether names were found, and why not.
    pub status: ModuleStatus,
    /// What its process runs, if this is run-time code that its runtime has not named.
    pub runtime: Option<Language>,
    /// Why debug info is missing: it was not downloaded, although servers were to be asked, or
    /// parts of it are gone.
    pub downloads: Option<String>,
    /// Why the names may be those of another file, if no build id tells whether it is the one that
    /// ran.
    pub doubt: Option<Doubt>,
    /// How many of the samples were taken in this module.
    pub samples: u64,
    /// How many of the samples have a frame of this module, at any depth, that has no name.
    pub unnamed_samples: u64,
    /// How many of the samples were taken in code of this module that has no name.
    pub unnamed_innermost: u64,
    /// How many distinct addresses were seen in it.
    pub addresses: usize,
    /// How many of these have a name.
    pub named: usize,
}

/// Why names may be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doubt {
    /// The file is newer than the last sample.
    Newer,
    /// The recording is of another machine, or says nothing of its machine.
    Elsewhere,
}

/// The symbolization of each module, those with the most unnamed samples first.
pub(super) fn of_modules(
    profile: &Profile,
    plan: &Plan,
    answers: &[Resolved],
) -> Vec<ModuleNaming> {
    let counts = Counts::new(profile, plan, answers);
    let lacks_map = |answer: &Resolved| matches!(answer.status(), ModuleStatus::NoJitMap { .. });
    let runtimes = match answers.iter().any(lacks_map) {
        true => runtimes(profile),
        false => FxHashMap::default(),
    };
    let runtime = |answer: &Resolved| match answer.status() {
        ModuleStatus::NoJitMap { pid, .. } => runtimes.get(pid).copied(),
        _ => None,
    };
    let host = Host::this();
    let mut naming: Vec<_> = plan
        .places()
        .zip(answers)
        .zip(counts.0)
        .map(|((place, answer), count)| ModuleNaming {
            module: place.name(profile),
            status: answer.status().clone(),
            runtime: runtime(answer),
            downloads: answer.download_problem().map(str::to_owned),
            doubt: doubt(profile, &host, place, answer),
            samples: count.innermost,
            unnamed_samples: count.unnamed,
            unnamed_innermost: count.unnamed_innermost,
            addresses: answer.len(),
            named: answer.named(),
        })
        .collect();
    naming.sort_by(|a, b| {
        let key = |naming: &ModuleNaming| (naming.unnamed_samples, naming.samples);
        key(b).cmp(&key(a)).then_with(|| a.module.cmp(&b.module))
    });
    naming
}

/// Why the names of an answer may be those of another file.
fn doubt(profile: &Profile, host: &Host, place: LookupSpace, answer: &Resolved) -> Option<Doubt> {
    // Names that the recording carries are of no file.
    let file = answer.file()?;
    let is_proven = match place {
        // What the user, or a running process, points to is not at its path.
        LookupSpace::File(module) => {
            let module = &profile.modules[module];
            module.build_id.is_some() || file != module.path
        }
        LookupSpace::Kernel => profile.kernel.build_id.is_some(),
        LookupSpace::Jit(_) => true,
    };
    if is_proven {
        return None;
    }
    let recorded = profile.header.host();
    match is_newer(profile, place, answer) {
        Some(true) => Some(Doubt::Newer),
        _ if recorded.is_unknown() || recorded.differs(host) => Some(Doubt::Elsewhere),
        _ => None,
    }
}

/// Whether a file that has no build id was changed after the last sample; `None` if unknown.
fn is_newer(profile: &Profile, place: LookupSpace, answer: &Resolved) -> Option<bool> {
    let LookupSpace::File(module) = place else {
        return None;
    };
    let file = (answer.file()).filter(|_| profile.modules[module].build_id.is_none())?;
    let (_, last) = profile.samples.times()?;
    let recorded = i128::from(profile.clock_zero?) + i128::from(last);
    let found = fs::metadata(file).ok()?;
    let changed = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    Some(changed > recorded)
}

/// Samples by module.
struct Counts(Vec<Count>);

#[derive(Clone, Copy, Default)]
struct Count {
    innermost: u64,
    unnamed_innermost: u64,
    unnamed: u64,
}

impl Counts {
    fn new(profile: &Profile, plan: &Plan, answers: &[Resolved]) -> Self {
        let mut counts = vec![Count::default(); answers.len()];
        let mut samples = vec![0_u64; profile.stacks.len()];
        let view = profile.view();
        for sample in profile.samples.iter() {
            if view != Some(sample.event) {
                samples[sample.stack.index()] += sample.count;
            }
        }
        for (stack, samples) in profile.stacks.iter().zip(&samples) {
            let frame = profile.stacks.frame(stack);
            if let Some(at) = plan.position(frame) {
                let count = &mut counts[at.place];
                count.innermost += samples;
                if plan.answer(frame, answers).is_empty() {
                    count.unnamed_innermost += samples;
                }
            }
        }
        // A stack comes after the one that it extends, so this adds up those that extend it.
        for stack in profile.stacks.iter().rev() {
            if let Some(prefix) = profile.stacks.prefix(stack) {
                samples[prefix.index()] += samples[stack.index()];
            }
        }
        let unnamed_place = |stack| {
            let frame = profile.stacks.frame(stack);
            let place = plan.position(frame)?.place;
            plan.answer(frame, answers).is_empty().then_some(place)
        };
        // By place: how far the samples are counted already, with a caller of the same place.
        let mut counted = vec![0; answers.len()];
        for (position, (stack, extending)) in profile.stacks.nested().into_iter().enumerate() {
            let Some(place) = unnamed_place(stack) else {
                continue;
            };
            if position >= counted[place] {
                counts[place].unnamed += samples[stack.index()];
                counted[place] = position + 1 + extending;
            }
        }
        Self(counts)
    }
}
