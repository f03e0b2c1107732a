//! The JSON of speedscope, one profile for each thread, the busiest first.
//!
//! Source: speedscope's file-format-schema.json. Samples follow each other in time order without
//! gaps: waiting time is not in them.

use std::cmp::Reverse;
use std::io::Write;

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{StackId, Unit};
use crate::symbolize::{FunctionId, SymbolizedProfile};

use super::threads::{ThreadSamples, Threads};

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
    let shown = FilteredSamples::new(symbolized, filter)?;
    let frames = Frames::new(&shown);
    crate::format::write_json(&file(&shown, &frames), out)
}

#[derive(Serialize)]
struct File<'a, 'p> {
    #[serde(rename = "$schema")]
    schema: &'static str,
    exporter: String,
    name: String,
    #[serde(rename = "activeProfileIndex")]
    active_profile_index: usize,
    shared: Shared<'a, 'p>,
    profiles: Vec<Profile<'a>>,
}

#[derive(Serialize)]
struct Shared<'a, 'p> {
    frames: &'a [Frame<'p>],
}

#[derive(Serialize)]
struct Frame<'p> {
    name: &'p str,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<&'p str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Profile<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: String,
    unit: &'static str,
    start_value: u64,
    end_value: u64,
    /// Outermost first.
    samples: Vec<&'a [u32]>,
    weights: Vec<u64>,
}

fn file<'a, 'p>(shown: &FilteredSamples<'p>, frames: &'a Frames<'p>) -> File<'a, 'p> {
    let mut profiles: Vec<Profile<'a>> = Threads::new(shown)
        .iter()
        .map(|thread| profile(thread, shown, frames))
        .collect();
    // The first one is shown first.
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
            frames: &frames.frames,
        },
        profiles,
    }
}

fn profile<'a>(
    thread: &ThreadSamples<'_>,
    shown: &FilteredSamples<'_>,
    frames: &'a Frames<'_>,
) -> Profile<'a> {
    let event = shown.event();
    let (unit, suffix) = match &event.unit {
        Unit::Nanoseconds => ("nanoseconds", String::new()),
        Unit::Count(counted) if counted == "bytes" => ("bytes", String::new()),
        // The format knows only units of time and memory.
        unit => ("none", format!(" ({})", unit.name())),
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
            .map(|sample| frames.of_stack(sample.stack))
            .collect(),
        weights,
    }
}

/// The frames of the file, one for each function, and the stacks of these frames.
struct Frames<'p> {
    frames: Vec<Frame<'p>>,
    numbers: FxHashMap<FunctionId, u32>,
    /// Positions in `frames`, outermost first.
    stacks: FxHashMap<StackId, Vec<u32>>,
}

impl<'p> Frames<'p> {
    fn new(shown: &FilteredSamples<'p>) -> Self {
        let mut frames = Self {
            frames: Vec::new(),
            numbers: FxHashMap::default(),
            stacks: FxHashMap::default(),
        };
        let files = shown.files();
        for sample in shown.samples() {
            if !frames.stacks.contains_key(&sample.stack) {
                frames.add(sample.stack, shown, &files);
            }
        }
        frames
    }

    fn of_stack(&self, stack: StackId) -> &[u32] {
        self.stacks.get(&stack).map_or(&[], Vec::as_slice)
    }

    fn add(&mut self, stack: StackId, shown: &FilteredSamples<'p>, files: &[Option<&'p str>]) {
        let mut numbers: Vec<u32> = Vec::new();
        for frame in shown.frames(stack) {
            for location in shown.locations(frame) {
                let function = location.function;
                let frame = Frame {
                    name: &shown.symbolized()[function].name,
                    file: files[function.index()],
                };
                numbers.push(self.number(function, frame));
            }
        }
        numbers.reverse();
        self.stacks.insert(stack, numbers);
    }

    fn number(&mut self, function: FunctionId, frame: Frame<'p>) -> u32 {
        let frames = &mut self.frames;
        *self.numbers.entry(function).or_insert_with(|| {
            frames.push(frame);
            frames.len() as u32 - 1
        })
    }
}
