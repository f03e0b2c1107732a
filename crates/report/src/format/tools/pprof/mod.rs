//! pprof's profile.proto, gzipped: for `go tool pprof`, Pyroscope, Parca, speedscope and others.
//!
//! Two values a sample: the number of samples, and their weight in the event's unit, which is shown
//! by default. Addresses are positions in files, placed so that each module has a range of its own:
//! several processes are merged, so there is no one true address.

mod locations;
pub(crate) mod message;

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use prost::Message;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Event, Sample, StackId, ThreadNameId, Unit, Weight};
use crate::symbolize::{Language, Languages, SymbolizedProfile};

use super::strings::StringTable;
use super::threads::Threads;
use locations::Locations;
use message::{Label, Profile, ValueType};

/// Writes the samples that `filter` lets through, those of one thread and stack as one, with the
/// labels `thread`, `process` (names), `tid` and `pid`, and `language`: that of the innermost
/// function that has one.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`], [`Error::Write`].
pub fn write(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    out: impl Write,
) -> Result<(), Error> {
    let shown = FilteredSamples::new(symbolized, filter)?;
    let message = message(&shown);
    // No time stamp in the header: the same profile gives the same bytes.
    let mut out = GzEncoder::new(out, Compression::default());
    out.write_all(&message.encode_to_vec())?;
    out.finish()?.flush()?;
    Ok(())
}

/// The samples as a message.
pub(in crate::format) fn message(shown: &FilteredSamples<'_>) -> Profile {
    Builder::new(shown).build()
}

/// The key by which samples are merged.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    stack: StackId,
    thread: (i32, i32),
    name: ThreadNameId,
}

struct Builder<'a, 'p> {
    shown: &'a FilteredSamples<'p>,
    languages: Languages,
    strings: StringTable,
}

impl<'a, 'p> Builder<'a, 'p> {
    fn new(shown: &'a FilteredSamples<'p>) -> Self {
        let mut strings = StringTable::default();
        // The first string is to be empty.
        strings.index("");
        Self {
            shown,
            languages: Languages::of(shown.symbolized()),
            strings,
        }
    }

    fn string(&mut self, text: &str) -> i64 {
        self.strings.index(text) as i64
    }

    fn build(mut self) -> Profile {
        let counted = self.value_type("samples", "count");
        let (kind, unit) = type_and_unit(self.shown.event());
        let weighed = self.value_type(kind, unit);
        let threads = Threads::new(self.shown);
        let mut locations = Locations::new(self.shown);
        let mut sample = Vec::new();
        for (key, weight) in merged(self.shown.samples()) {
            sample.push(message::Sample {
                location_id: locations.of_stack(key.stack, &mut self.strings),
                value: vec![signed(weight.samples), signed(weight.value)],
                label: self.labels(key, threads.process_name(key.thread.0)),
            });
        }
        let tables = locations.finish(&mut self.strings);
        let command = &self.shown.symbolized().profile().header.command_line;
        let comment = match command.as_slice() {
            [] => Vec::new(),
            words => vec![self.string(&words.join(" "))],
        };
        Profile {
            sample_type: vec![counted, weighed],
            sample,
            mapping: tables.mappings,
            location: tables.locations,
            function: tables.functions,
            time_nanos: self.shown.time_of_day().unwrap_or(0),
            duration_nanos: self.duration(),
            period_type: Some(weighed),
            // Pyroscope does not treat a profile without a period as one of time.
            period: signed(self.shown.usual_period()).max(1),
            comment,
            default_sample_type: weighed.kind,
            string_table: self.strings.into_strings(),
        }
    }

    /// Zero, which is none, if the samples have no times.
    fn duration(&self) -> i64 {
        match self.shown.symbolized().profile().missing_data.times {
            true => 0,
            false => signed(self.shown.duration()),
        }
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> ValueType {
        ValueType {
            kind: self.string(kind),
            unit: self.string(unit),
        }
    }

    fn labels(&mut self, key: Key, process: &str) -> Vec<Label> {
        let thread = &self.shown.symbolized().profile().names[key.name];
        let language = self.language(key.stack);
        let mut label = |name: &str, text: &str, number: i32| Label {
            key: self.string(name),
            str: if text.is_empty() {
                0
            } else {
                self.string(text)
            },
            num: number.into(),
        };
        let mut labels = vec![
            label("thread", thread, 0),
            label("process", process, 0),
            // A number below zero stands for an unknown one.
            label("tid", "", key.thread.1.max(0)),
            label("pid", "", key.thread.0),
        ];
        labels.extend(language.map(|language| label("language", language.name(), 0)));
        labels
    }

    fn language(&self, stack: StackId) -> Option<Language> {
        let frames = self.shown.frames(stack);
        let mut locations = frames.flat_map(|frame| self.shown.locations(frame));
        locations.find_map(|location| self.languages.get(location.function))
    }
}

/// Type and unit of an event, by other profilers' names for time on CPUs, off them, and both; all
/// other events keep their own.
fn type_and_unit(event: &Event) -> (&str, &str) {
    let unit = match &event.unit {
        Unit::Nanoseconds => "nanoseconds",
        Unit::Count(counted) if counted == "bytes" => "bytes",
        Unit::Count(_) | Unit::Unstated => "count",
    };
    let base = event.name.split(':').next();
    let kind = match base.unwrap_or_default() {
        "cpu-clock" | "task-clock" => "cpu",
        "offcpu-time" => "off-cpu",
        Event::WALL_CLOCK => "wall",
        _ => &event.name,
    };
    (kind, unit)
}

/// Samples of one thread and stack as one, in the order of the first of each.
fn merged(samples: &[Sample]) -> Vec<(Key, Weight)> {
    let mut merged: Vec<(Key, Weight)> = Vec::new();
    let mut places = FxHashMap::default();
    for sample in samples {
        let key = Key {
            stack: sample.stack,
            thread: (sample.pid, sample.tid),
            name: sample.name,
        };
        let place = *places.entry(key).or_insert_with(|| {
            merged.push((key, Weight::default()));
            merged.len() - 1
        });
        merged[place].1 += Weight::of(sample);
    }
    merged
}

/// The format's numbers are signed.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_and_units_of_events() {
        let check = |name: &str, expected| {
            let unit = Unit::of_event(name);
            let event = Event {
                name: name.into(),
                unit,
            };
            assert_eq!(type_and_unit(&event), expected);
        };
        check("cpu-clock:u", ("cpu", "nanoseconds"));
        check("task-clock", ("cpu", "nanoseconds"));
        check("offcpu-time", ("off-cpu", "nanoseconds"));
        check("cycles", ("cycles", "count"));
        check("cycles:u", ("cycles:u", "count"));
        check("alloc-bytes", ("alloc-bytes", "bytes"));
        check("alloc-calls", ("alloc-calls", "count"));
        check("sched:sched_switch", ("sched:sched_switch", "count"));
        let contention = Event {
            name: "delay".into(),
            unit: Unit::Nanoseconds,
        };
        assert_eq!(type_and_unit(&contention), ("delay", "nanoseconds"));
    }
}
