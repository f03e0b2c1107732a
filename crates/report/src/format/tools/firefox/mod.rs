//! The processed format of the Firefox Profiler, to be opened at profiler.firefox.com.
//!
//! Names, source files, lines and inlined functions are in the file, so that nothing has to be
//! looked up when it is opened. Threads live from their creation to their end, both with a marker,
//! or if that is not recorded, from their first sample or to their last.

mod file;
mod markers;
mod stacks;
mod tables;

use std::collections::BTreeMap;
use std::io::Write;

use prof_model::{Pid, Tid};

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Event, Sample, ThreadLifetime, Unit};
use crate::symbolize::SymbolizedProfile;

use super::threads::{self, Threads};
use file::{File, Meta, SampleUnits, Samples, Thread, VERSION};
use markers::Markers;
use stacks::Stacks;

/// Writes the samples that `filter` lets through as a profile for profiler.firefox.com. Weights
/// are milliseconds for clocks, and the number of events for the rest.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`], [`Error::Write`].
pub fn write(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    out: impl Write,
) -> Result<(), Error> {
    let shown = FilteredSamples::new(symbolized, filter)?;
    crate::format::write_json(&file(&shown), out)
}

fn file<'p>(shown: &FilteredSamples<'p>) -> File<'p> {
    let mut stacks = Stacks::new(shown);
    let threads = Threads::new(shown);
    let clock = Clock::new(shown);
    let thread_lifetimes = shown.symbolized().profile().thread_lifetimes.by_thread();
    let thread_lifetimes = |pid, tid| {
        thread_lifetimes
            .get(&(pid, tid))
            .map_or(&[][..], Vec::as_slice)
    };
    let starts = process_starts(&threads, thread_lifetimes);
    let thread = |thread: &threads::ThreadSamples<'p>| {
        let own = thread_lifetimes(thread.pid, thread.tid);
        let first = thread.samples.first().map_or(0, |sample| sample.time);
        let born = own.first().and_then(|life| life.start).unwrap_or(first);
        let died = own.last().and_then(|life| life.end);
        let last = thread.samples.last().map(|sample| sample.time);
        let main = thread.pid == thread.tid;
        Thread {
            process_type: "default",
            process_startup_time: starts.get(&thread.pid).map_or(0.0, |&t| clock.time(t)),
            process_shutdown_time: died.filter(|_| main).map(|time| clock.time(time)),
            register_time: clock.time(born.min(first)),
            unregister_time: died.or(last).map(|time| clock.time(time)),
            paused_ranges: [],
            name: thread.name,
            is_main_thread: main,
            process_name: threads.process_name(thread.pid),
            pid: thread.pid.to_string(),
            tid: thread.tid,
            samples: samples(&thread.samples, &clock, &mut stacks),
            markers: Markers::of(thread, own, &clock, &mut stacks),
        }
    };
    let threads = threads.iter().map(thread).collect();
    let (shared, libs) = stacks.finish();
    File {
        meta: meta(shown),
        libs,
        shared,
        threads,
        pages: [],
    }
}

fn process_starts<'l>(
    threads: &Threads<'_>,
    thread_lifetimes: impl Fn(Pid, Tid) -> &'l [ThreadLifetime],
) -> BTreeMap<Pid, u64> {
    let mut starts = BTreeMap::new();
    for thread in threads.iter() {
        let first = thread.samples.first().map_or(0, |sample| sample.time);
        let life = thread_lifetimes(thread.pid, thread.pid).first();
        let first = life.and_then(|life| life.start).unwrap_or(first);
        let start = starts.entry(thread.pid).or_insert(first);
        *start = first.min(*start);
    }
    starts
}

fn meta(shown: &FilteredSamples<'_>) -> Meta {
    let header = &shown.symbolized().profile().header;
    let command = header.command_line.join(" ");
    Meta {
        interval: match shown.event().unit {
            Unit::Nanoseconds => milliseconds(shown.usual_period()),
            Unit::Count(_) | Unit::Unstated => 1.0,
        },
        start_time: 0.0,
        process_type: 0,
        categories: stacks::categories(),
        product: if command.is_empty() {
            "prof".into()
        } else {
            command.clone()
        },
        stackwalk: 1,
        debug: false,
        version: 24,
        preprocessed_profile_version: VERSION,
        abi: header.arch.clone(),
        oscpu: header.os_release.as_ref().map(|os| format!("Linux {os}")),
        arguments: (!command.is_empty()).then_some(command),
        imported_from: "prof",
        symbolicated: true,
        marker_schema: [markers::schema()],
        sample_units: SampleUnits {
            time: "ms",
            event_delay: "ms",
            thread_cpu_delta: use_of_cpu(shown.event()).unwrap_or("ns"),
        },
        uses_only_one_stack_type: true,
        source_code_is_not_on_searchfox: true,
    }
}

/// The unit of the event's periods as CPU usage of a thread, if they are.
fn use_of_cpu(event: &Event) -> Option<&'static str> {
    match &event.unit {
        Unit::Nanoseconds => Some("ns"),
        Unit::Count(name) if name == "cycles" => Some("variable CPU cycles"),
        Unit::Count(_) | Unit::Unstated => None,
    }
}

/// Time since the recording's first sample, and the meaning of weights.
struct Clock<'p> {
    zero: u64,
    event: &'p Event,
}

impl<'p> Clock<'p> {
    fn new(shown: &FilteredSamples<'p>) -> Self {
        let samples = &shown.symbolized().profile().samples;
        Self {
            zero: samples.iter().map(|sample| sample.time).min().unwrap_or(0),
            event: shown.event(),
        }
    }

    fn time(&self, nanoseconds: u64) -> f64 {
        milliseconds(nanoseconds.saturating_sub(self.zero))
    }

    fn is_clock(&self) -> bool {
        self.event.unit == Unit::Nanoseconds
    }

    fn weight(&self, sample: &Sample) -> f64 {
        if self.is_clock() {
            milliseconds(sample.period)
        } else {
            sample.period as f64
        }
    }

    /// When a thread cannot have run: it comes from a sample much later than the period before
    /// says.
    fn idle_until(&self, before: &Sample, sample: &Sample) -> Option<u64> {
        let busy_since = sample.time.saturating_sub(sample.period);
        let is_idle = busy_since > before.time.saturating_add(sample.period);
        (self.is_clock() && is_idle).then_some(busy_since)
    }
}

fn milliseconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e6
}

fn samples(samples: &[Sample], clock: &Clock<'_>, stacks: &mut Stacks<'_, '_>) -> Samples {
    let mut columns = Samples {
        weight_type: match &clock.event.unit {
            Unit::Nanoseconds => "tracing-ms",
            Unit::Count(counted) if counted == "bytes" => "bytes",
            Unit::Count(_) | Unit::Unstated => "samples",
        },
        thread_cpu_delta: use_of_cpu(clock.event).map(|_| Vec::new()),
        ..Samples::default()
    };
    let mut before: Option<&Sample> = None;
    for sample in samples {
        // Without this the graph would spread the sample over all the time the thread slept.
        if let Some(time) = before.and_then(|before| clock.idle_until(before, sample)) {
            columns.push(None, clock.time(time), 0.0, 0);
        }
        let stack = stacks.index(sample.stack);
        let weight = clock.weight(sample);
        columns.push(stack, clock.time(sample.time), weight, sample.period);
        before = Some(sample);
    }
    columns
}

impl Samples {
    fn push(&mut self, stack: Option<usize>, time: f64, weight: f64, cpu_delta: u64) {
        self.length += 1;
        self.stack.push(stack);
        self.time.push(time);
        self.weight.push(weight);
        if let Some(deltas) = &mut self.thread_cpu_delta {
            deltas.push(cpu_delta);
        }
    }
}
