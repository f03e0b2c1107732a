//! The code to annotate.

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::sync::Arc;

use prof_model::similar;
use rustc_hash::{FxHashMap, FxHashSet};

use super::Key;
use crate::error::Error;
use crate::filter::filtered_samples::FilteredSamples;
use crate::pattern::Pattern;
use crate::profile::Weight;
use crate::source::Sources;
use crate::symbolize::primitives::is_primitive;
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
        let found = files(shown, given);
        if !found.is_empty() {
            return Ok(Self::Files(found));
        }
        let pattern: Pattern = given.parse()?;
        let matching = named(&|name| pattern.matches(name));
        if !matching.is_empty() {
            return Ok(Self::Functions(matching));
        }
        let names = functions.iter().map(|&id| &*shown.symbolized()[id].name);
        let file = without_line(given).filter(|file| !files(shown, file).is_empty());
        Err(Error::NoSuchFunction {
            pattern: given.to_owned(),
            similar: file.map_or_else(|| similar(given, names), |file| vec![file.to_owned()]),
        })
    }

    /// The function in which most weight was sampled. If its source is not there, the function
    /// whose source is and that led to the most such code. Waits end in the kernel's scheduler,
    /// and waits and allocations in functions that serve whoever calls them: their sources explain
    /// none.
    pub(super) fn hottest<'p>(shown: &FilteredSamples<'p>, sources: &Sources) -> Self {
        let symbolized = shown.symbolized();
        let event = shown.event();
        let for_callers = !symbolized.profile().native && (event.has_waits() || event.allocates());
        let names_source = |location: &Location| {
            let function = &symbolized[location.function];
            let is_scheduler = event.has_waits() && function.kind == FunctionKind::Kernel;
            let is_called_for = for_callers && is_primitive(function);
            location.file.is_some() && !is_scheduler && !is_called_for
        };
        let mut found: FxHashMap<&str, bool> = FxHashMap::default();
        let mut own = Weights::new(symbolized.functions().len());
        // Of functions whose source is there; of those whose debug info names it at least.
        let mut nearest = [own.clone(), own.clone()];
        for (stack, weight) in shown.weighted_stacks() {
            let of_frame = |frame| shown.locations(frame).iter().copied();
            let locations = || shown.frames(stack).flat_map(of_frame);
            let is_there = |location: &&'p Location| {
                let location: &'p Location = location;
                let file = location.file.as_deref().filter(|_| names_source(location));
                file.is_some_and(|file| {
                    let known = found.entry(file);
                    *known.or_insert_with(|| sources.find(file).is_ok())
                })
            };
            own.add(locations().next(), weight);
            nearest[0].add(locations().find(is_there), weight);
            nearest[1].add(locations().find(|location| names_source(location)), weight);
        }
        let is_function = |id: &FunctionId| symbolized[*id].kind != FunctionKind::Missing;
        let all = || symbolized.function_ids().filter(is_function);
        let hottest = own.heaviest(all());
        let nearest = nearest.iter().find(|weights| !weights.are_none());
        let target = match (nearest, hottest) {
            (Some(nearest), Some(hottest)) if !nearest.has(hottest) => nearest.heaviest(all()),
            _ => hottest,
        };
        Self::Functions(target.into_iter().collect())
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

/// Weights by function.
#[derive(Clone)]
struct Weights(Vec<Weight>);

impl Weights {
    fn new(functions: usize) -> Self {
        Self(vec![Weight::default(); functions])
    }

    fn add(&mut self, location: Option<&Location>, weight: Weight) {
        if let Some(location) = location {
            self.0[location.function.index()] += weight;
        }
    }

    fn are_none(&self) -> bool {
        self.0.iter().all(|weight| weight.samples == 0)
    }

    fn has(&self, function: FunctionId) -> bool {
        self.0[function.index()].samples > 0
    }

    /// The heaviest of these functions, of equal ones the first.
    fn heaviest(&self, functions: impl Iterator<Item = FunctionId>) -> Option<FunctionId> {
        functions.max_by_key(|id| (self.0[id.index()], Reverse(*id)))
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

/// The file in `FILE:LINE`, as other tools name places.
fn without_line(given: &str) -> Option<&str> {
    let (file, line) = given.rsplit_once(':')?;
    line.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(file)
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

#[cfg(test)]
mod tests {
    use prof_symbols::SymbolFrame;

    use super::*;
    use crate::filter::Filter;
    use crate::profile::{Event, Unit};
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::TestProfile;

    #[test]
    fn a_file_with_a_line_is_not_found_and_the_file_is_suggested() {
        let mut test = TestProfile::new();
        test.line("demo main 1");
        let answer = vec![SymbolFrame {
            function: Arc::from("main"),
            file: Some(Arc::from("/src/demo.c")),
            line: Some(10),
            inlined: false,
        }];
        let symbolized = SymbolizedProfile::with_names(test.profile, |_| &answer);
        let shown = FilteredSamples::new(&symbolized, &Filter::default()).unwrap();
        let check = |given, expected: &[&str]| match Target::find(&shown, given) {
            Err(Error::NoSuchFunction { similar, .. }) => assert_eq!(similar, expected),
            _ => panic!("{given} was found"),
        };
        check("demo.c:10", &["demo.c"]);
        check("src/demo.c:999", &["src/demo.c"]);
        check("other.c:10", &[]);
        check("demo.c:x", &[]);
        assert!(Target::find(&shown, "demo.c").is_ok());
    }

    /// The hottest of these stacks. Of functions with a dot, debug info names no source; of those
    /// that end in a colon, it names one that is not there.
    fn check(event: &str, lines: &[&str], expected: &str) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("demo.c"), "main\n").unwrap();
        let sources = Sources {
            directories: vec![directory.path().into()],
            ..Sources::default()
        };
        let mut test = TestProfile::new();
        test.profile.events[0] = Event {
            name: event.into(),
            unit: Unit::of_event(event),
        };
        lines.iter().for_each(|line| test.line(line));
        let answers: Vec<Vec<SymbolFrame>> = (test.names().iter())
            .map(|names| {
                let name = names.first().map_or("", String::as_str);
                let file = match name {
                    name if name.contains('.') => None,
                    name if name.ends_with(':') => Some("/src/missing.c"),
                    _ => Some("/src/demo.c"),
                };
                vec![SymbolFrame {
                    function: Arc::from(name),
                    file: file.map(Arc::from),
                    line: file.map(|_| 10),
                    inlined: false,
                }]
            })
            .collect();
        let symbolized = SymbolizedProfile::with_names(test.profile, |id| &answers[id.index()]);
        let shown = FilteredSamples::new(&symbolized, &Filter::default()).unwrap();
        let Target::Functions(functions) = Target::hottest(&shown, &sources) else {
            panic!("{event}: files are no functions");
        };
        let names = functions.iter().map(|&id| &*symbolized[id].name);
        assert_eq!(names.collect::<Vec<_>>(), [expected], "{event}: {lines:?}");
    }

    #[test]
    fn the_hottest_function_is_one_with_source_if_there_is_one() {
        let computing = "demo main;compute 50";
        let copying = "demo main;copy;libc.so.6!mem.copy 60";
        check("cpu-clock", &[computing, copying], "copy");
        check("cpu-clock", &["demo main;compute 70", copying], "compute");
        check("cpu-clock", &["demo main.o;copy.o 60"], "copy.o");
        check("cpu-clock", &["demo main;copy;libc.so.6!memcpy: 9"], "copy");
        check("cpu-clock", &["demo main:;copy:;mem.copy 9"], "copy:");
    }

    #[test]
    fn waits_are_explained_by_the_function_that_waits() {
        let waiting = "demo main;load;libc.so.6!read:;k:schedule 90";
        check(
            "offcpu-time",
            &[waiting, "demo main;rest;k:schedule 5"],
            "load",
        );
        check("wall-clock", &[waiting, "demo main;compute 50"], "load");
        check("offcpu-time", &["demo main.o;k:schedule 5"], "schedule");
        check("cpu-clock", &[waiting], "schedule");
        // Whether its source is there or not.
        let locking = "demo main;take;libc.so.6!__lll_lock_wait;k:schedule 9";
        check("offcpu-time", &[locking], "take");
        check(
            "alloc-bytes",
            &["demo main;grow;libc.so.6!malloc 9"],
            "grow",
        );
        check(
            "cpu-clock",
            &["demo main;grow;libc.so.6!malloc 9"],
            "malloc",
        );
    }
}
