//! The code to annotate.

use std::collections::BTreeSet;
use std::sync::Arc;

use prof_model::similar;
use rustc_hash::FxHashSet;

use super::Key;
use crate::error::Error;
use crate::filter::filtered_samples::FilteredSamples;
use crate::pattern::Pattern;
use crate::profile::Weight;
use crate::symbolize::{FunctionId, FunctionKind, Location};

/// The code to annotate.
pub(super) enum Target {
    /// Functions, each for itself.
    Functions(FxHashSet<FunctionId>),
    /// Source files, by the compiler's paths.
    Files(BTreeSet<Arc<str>>),
}

impl Target {
    /// The target that a user gives by this text.
    ///
    /// # Errors
    /// [`Error::NoSuchFunction`], [`Error::InvalidPattern`].
    pub(super) fn find(shown: &FilteredSamples<'_>, given: &str) -> Result<Self, Error> {
        let functions = functions(shown);
        let named = |matches: &dyn Fn(&str) -> bool| -> FxHashSet<FunctionId> {
            let all = functions.iter().copied();
            all.filter(|&id| matches(&shown.symbolized()[id].name))
                .collect()
        };
        let exact = named(&|name| name == given);
        if !exact.is_empty() {
            return Ok(Self::Functions(exact));
        }
        let files = files(shown, given);
        if !files.is_empty() {
            return Ok(Self::Files(files));
        }
        let pattern: Pattern = given.parse()?;
        let matching = named(&|name| pattern.matches(name));
        if !matching.is_empty() {
            return Ok(Self::Functions(matching));
        }
        let names = functions.iter().map(|&id| &*shown.symbolized()[id].name);
        Err(Error::NoSuchFunction {
            pattern: given.to_owned(),
            similar: similar(given, names),
        })
    }

    /// The function in which most weight was sampled.
    pub(super) fn hottest(shown: &FilteredSamples<'_>) -> Self {
        let symbolized = shown.symbolized();
        let mut own = vec![Weight::default(); symbolized.functions().len()];
        for (stack, weight) in shown.weighted_stacks() {
            let innermost = shown.frames(stack).next();
            if let Some(location) = innermost.and_then(|frame| shown.locations(frame).first()) {
                own[location.function.index()] += weight;
            }
        }
        let is_function = |id: &FunctionId| symbolized[*id].kind != FunctionKind::Missing;
        let hottest = symbolized
            .function_ids()
            .filter(is_function)
            .max_by_key(|id| (own[id.index()], std::cmp::Reverse(*id)));
        Self::Functions(hottest.into_iter().collect())
    }

    /// The listing that a location belongs to, if it is any of this target's.
    pub(super) fn key(&self, location: &Location) -> Option<Key> {
        match self {
            Self::Functions(functions) => functions.contains(&location.function).then(|| Key {
                function: Some(location.function),
                file: location.file.clone(),
            }),
            Self::Files(files) => {
                let file = location.file.as_ref()?;
                files.contains(file).then(|| Key {
                    function: None,
                    file: Some(Arc::clone(file)),
                })
            }
        }
    }
}

/// The functions on the stacks that are shown, in the order of their numbers.
fn functions(shown: &FilteredSamples<'_>) -> Vec<FunctionId> {
    let functions: BTreeSet<FunctionId> = shown
        .all_locations()
        .map(|location| location.function)
        .filter(|&id| shown.symbolized()[id].kind != FunctionKind::Missing)
        .collect();
    functions.into_iter().collect()
}

/// The source files whose paths are `given` or end in it.
fn files(shown: &FilteredSamples<'_>, given: &str) -> BTreeSet<Arc<str>> {
    let ends_so = |file: &&Arc<str>| {
        let rest = file.strip_suffix(given);
        rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
    };
    let files = shown.all_locations().filter_map(|l| l.file.as_ref());
    // An empty name would be the end of all.
    let files = files.filter(|_| !given.is_empty());
    files.filter(ends_so).cloned().collect()
}
