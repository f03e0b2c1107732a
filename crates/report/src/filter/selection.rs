//! A [`Filter`] applied to one profile: its patterns are matched against each name once.

use prof_symbols::is_async_plumbing;

use crate::error::Error;
use crate::filter::Filter;
use crate::pattern::Pattern;
use crate::profile::{Event, Profile, Sample};
use crate::symbolize::{
    Function, FunctionId, FunctionKind, Languages, Location, SymbolizedProfile,
};

/// The samples and frames of a profile that a filter lets through.
pub(crate) struct Selection<'a> {
    filter: &'a Filter,
    /// The event to select, if only one.
    event: Option<u16>,
    /// The event that repeats the samples of others.
    view: Option<u16>,
    /// By thread name id: whether `comm` matches.
    names: Vec<bool>,
    /// By function id.
    functions: Vec<FunctionFilter>,
    /// First and last time that is let through.
    times: (u64, u64),
}

/// The filter's verdict on a function.
#[derive(Clone, Copy)]
struct FunctionFilter {
    wanted: bool,
    unwanted: bool,
    hidden: bool,
}

/// The result of a walk down a stack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    wanted: bool,
    unwanted: bool,
}

impl<'a> Selection<'a> {
    /// The selection from the event that the filter names, or from the main one.
    pub(crate) fn new(symbolized: &SymbolizedProfile, filter: &'a Filter) -> Result<Self, Error> {
        let event = choose_event(symbolized, filter.event.as_deref())?;
        Self::of(symbolized, filter, Some(event))
    }

    /// The selection from the event that the filter names, or from all that were recorded.
    pub(crate) fn of_all_events(
        symbolized: &SymbolizedProfile,
        filter: &'a Filter,
    ) -> Result<Self, Error> {
        match filter.event {
            Some(_) => Self::new(symbolized, filter),
            None => Self::of(symbolized, filter, None),
        }
    }

    fn of(
        symbolized: &SymbolizedProfile,
        filter: &'a Filter,
        event: Option<u16>,
    ) -> Result<Self, Error> {
        let profile = symbolized.profile();
        check_missing_data(filter, profile)?;
        let matches = |pattern: &Option<Pattern>, name: &str| {
            pattern.as_ref().is_none_or(|pattern| pattern.matches(name))
        };
        let names = profile
            .names
            .iter()
            .map(|(_, name)| matches(&filter.comm, name))
            .collect();
        let languages = (!filter.languages.is_empty()).then(|| Languages::of(symbolized));
        let in_language = |id| {
            let language = languages.as_ref().map(|languages| languages.get(id));
            language.is_none_or(|it| it.is_some_and(|it| filter.languages.contains(&it)))
        };
        let functions = symbolized
            .function_ids()
            .map(|id| FunctionFilter::of(&symbolized[id], filter, in_language(id)))
            .collect();
        let first = profile.samples.iter().map(|sample| sample.time).min();
        let at = |time: std::time::Duration| {
            let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            first.unwrap_or(0).saturating_add(nanoseconds)
        };
        Ok(Self {
            filter,
            event,
            view: profile.view(),
            names,
            functions,
            times: (
                filter.since.map_or(0, at),
                filter
                    .until
                    .map_or(u64::MAX, |until| at(until).saturating_sub(1)),
            ),
        })
    }

    /// The filter.
    pub(crate) fn filter(&self) -> &'a Filter {
        self.filter
    }

    /// The index of the selected event; if all are, of the first one.
    pub(crate) fn event(&self) -> u16 {
        self.event.unwrap_or_default()
    }

    /// Whether the sample passes, except for its stack.
    pub(crate) fn has(&self, sample: &Sample) -> bool {
        let any = |list: &[i32], value| list.is_empty() || list.contains(&value);
        let cpus = &self.filter.cpus;
        let is_of_event = match self.event {
            Some(event) => sample.event == event,
            None => self.view != Some(sample.event),
        };
        is_of_event
            && self.names[sample.name.index()]
            && any(&self.filter.pids, sample.pid)
            && any(&self.filter.tids, sample.tid)
            && (cpus.is_empty() || sample.cpu.is_some_and(|cpu| cpus.contains(&cpu)))
            && (self.times.0..=self.times.1).contains(&sample.time)
    }

    /// Whether a location is shown.
    pub(crate) fn shows(&self, location: &Location) -> bool {
        !(self.functions[location.function.index()].hidden
            || self.filter.no_inline && location.inlined)
    }

    /// The result for a stack after a call of `function`.
    pub(crate) fn see(&self, seen: Seen, function: FunctionId) -> Seen {
        let called = self.functions[function.index()];
        Seen {
            wanted: seen.wanted || called.wanted,
            unwanted: seen.unwanted || called.unwanted,
        }
    }

    /// Whether a stack in which all this was seen is let through.
    pub(crate) fn accepts(&self, seen: Seen) -> bool {
        let Filter {
            function,
            module,
            languages,
            ..
        } = self.filter;
        let wants = function.is_some() || module.is_some() || !languages.is_empty();
        (seen.wanted || !wants) && !seen.unwanted
    }
}

/// Rejects conditions on data that the profile lacks.
fn check_missing_data(filter: &Filter, profile: &Profile) -> Result<(), Error> {
    let missing_data = profile.missing_data;
    let timed = filter.since.is_some() || filter.until.is_some();
    let threaded = filter.comm.is_some() || !filter.pids.is_empty() || !filter.tids.is_empty();
    let (asked, lacking) = match () {
        () if timed && missing_data.times => ("--since and --until", "times"),
        () if threaded && missing_data.threads => ("--comm, --pid and --tid", "threads"),
        () if !filter.cpus.is_empty() && profile.samples.iter().all(|it| it.cpu.is_none()) => {
            ("--cpu", "CPUs")
        }
        () => return Ok(()),
    };
    Err(Error::Lacking { asked, lacking })
}

impl FunctionFilter {
    fn of(function: &Function, filter: &Filter, language_matches: bool) -> Self {
        let matches = |pattern: &Option<Pattern>, name: &str, otherwise| {
            pattern
                .as_ref()
                .map_or(otherwise, |pattern| pattern.matches(name))
        };
        let kernel = function.kind == FunctionKind::Kernel;
        let plumbing = filter.fold_async && is_async_plumbing(&function.name);
        Self {
            wanted: function.kind != FunctionKind::Missing
                && language_matches
                && matches(&filter.function, &function.name, true)
                && matches(&filter.module, &function.module, true),
            unwanted: matches(&filter.ignore, &function.name, false),
            hidden: matches(&filter.hide, &function.name, false)
                || filter.no_kernel && kernel
                || plumbing,
        }
    }
}

/// The requested event, by its whole name or by that without modifiers; or else all time if the
/// recording has it, or the first one that has samples.
fn choose_event(symbolized: &SymbolizedProfile, asked: Option<&str>) -> Result<u16, Error> {
    let profile = symbolized.profile();
    let is_asked = |event: &Event| match asked {
        Some(asked) => event.name == asked || event.name.split(':').next() == Some(asked),
        None => true,
    };
    profile
        .events
        .iter()
        .zip(profile.sample_counts())
        .enumerate()
        .filter(|(_, (event, _))| is_asked(event))
        .min_by_key(|(index, (event, count))| {
            let is_other = asked.is_some_and(|asked| event.name != asked);
            let is_part = event.name != Event::WALL_CLOCK;
            (is_other, *count == 0, is_part, *index)
        })
        .map(|(index, _)| index as u16)
        .ok_or_else(|| Error::NoSuchEvent {
            asked: asked.unwrap_or("any").to_owned(),
            known: profile.events.iter().map(|e| e.name.clone()).collect(),
        })
}
