//! The JSON of speedscope, one profile for each thread, the busiest first.
//!
//! Source: speedscope's file-format-schema.json. Samples follow each other in time order without
//! gaps: the time that a thread waited is not in them.

use std::cmp::Reverse;
use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::error::Error;
use crate::filter::Filter;
use crate::profile::{StackId, Unit};
use crate::shown::Shown;
use crate::symbolized::{FunctionId, SymbolizedProfile};

use super::threads::{Thread, Threads};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";

/// Writes the samples that `filter` lets through as a file for speedscope.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`], [`Error::Write`].
pub fn write(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    out: impl Write,
) -> Result<(), Error> {
    let shown = Shown::new(symbolized, filter)?;
    let file = file(&shown);
    super::write_json(&file, out)
}

#[derive(Serialize)]
struct File<'a> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: usize,
    shared: Shared<'a>,
    profiles: Vec<Profile>,
}

#[derive(Serialize)]
struct Shared<'a> {
    frames: Vec<Frame<'a>>,
}

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Outermost first.
    samples: Vec<Vec<usize>>,
    weights: Vec<u64>,
}

fn file<'p>(shown: &Shown<'p>) -> File<'p> {
    let mut frames = Frames::new(shown);
    let mut profiles: Vec<Profile> = Threads::new(shown)
        .iter()
        .map(|thread| profile(thread, shown, &mut frames))
        .collect();
    // The first one is what people see.
    profiles.sort_by_key(|profile| Reverse(profile.end_value));
    let command = shown.symbolized().profile().header.command_line.join(" ");
    File {
        schema: SCHEMA,
        exporter: format!("prof {}", env!("CARGO_PKG_VERSION")),
        name: if command.is_empty() {
            shown.event().name.clone()
        } else {
            command
        },
        active_profile_index: 0,
        shared: Shared {
            frames: frames.frames,
        },
        profiles,
    }
}

fn profile<'p>(thread: &Thread<'_>, shown: &Shown<'p>, frames: &mut Frames<'p>) -> Profile {
    let event = shown.event();
    let (unit, suffix) = match &event.unit {
        Unit::Nanoseconds => ("nanoseconds", String::new()),
        // The format knows no other units.
        Unit::Count(name) => ("none", format!(" ({name})")),
    };
    let weights: Vec<u64> = thread.samples.iter().map(|sample| sample.period).collect();
    Profile {
        kind: "sampled",
        name: format!("{} {}/{}{suffix}", thread.name, thread.pid, thread.tid),
        unit,
        start_value: 0,
        end_value: weights.iter().fold(0, |sum, &w| sum.saturating_add(w)),
        samples: thread
            .samples
            .iter()
            .map(|sample| frames.of_stack(sample.stack, shown))
            .collect(),
        weights,
    }
}

/// The frames of the file, one for each function.
struct Frames<'p> {
    frames: Vec<Frame<'p>>,
    numbers: FxHashMap<FunctionId, usize>,
    files: Vec<Option<&'p str>>,
}

impl<'p> Frames<'p> {
    fn new(shown: &Shown<'p>) -> Self {
        Self {
            frames: Vec::new(),
            numbers: FxHashMap::default(),
            files: shown.files(),
        }
    }

    fn of_stack(&mut self, stack: StackId, shown: &Shown<'p>) -> Vec<usize> {
        let mut numbers: Vec<usize> = Vec::new();
        for frame in shown.frames(stack) {
            for location in shown.locations(frame) {
                numbers.push(self.number(location.function, shown.symbolized()));
            }
        }
        numbers.reverse();
        numbers
    }

    fn number(&mut self, function: FunctionId, symbolized: &'p SymbolizedProfile) -> usize {
        let frames = &mut self.frames;
        let file = self.files[function.index()];
        *self.numbers.entry(function).or_insert_with(|| {
            frames.push(Frame {
                name: &symbolized[function].name,
                file,
            });
            frames.len() - 1
        })
    }
}
