//! Samples as text, in the format of `perf script -F +pid`.
//!
//! ```text
//! comm pid/tid [cpu] seconds.microseconds:  period event:
//!         address function (module)
//!         address function (inlined)
//! ```
//! `stackcollapse-perf.pl`, inferno and the Firefox Profiler's importer read it. Addresses are
//! positions in the file for code of a file, absolute otherwise; offsets into functions are not
//! printed.

use std::borrow::Cow;
use std::io::{BufWriter, Write};

use prof_model::printable;
use rustc_hash::FxHashMap;

use crate::error::Error;
use crate::filter::Filter;
use crate::filter::filtered_samples::FilteredSamples;
use crate::profile::{Frame, FrameId, Profile, Sample, StackId};
use crate::symbolize::SymbolizedProfile;

/// Writes the samples that `filter` lets through as text, in time order: of all events, unless it
/// names one.
///
/// # Errors
/// [`Error::NoSamples`], [`Error::NoSuchEvent`], [`Error::Write`].
pub fn write(
    symbolized: &SymbolizedProfile,
    filter: &Filter,
    out: impl Write,
) -> Result<(), Error> {
    let shown = FilteredSamples::of_all_events(symbolized, filter)?;
    let mut out = BufWriter::new(out);
    let mut stacks = FxHashMap::default();
    for sample in shown.samples() {
        let stack = stacks
            .entry(sample.stack)
            .or_insert_with(|| lines(sample.stack, &shown));
        writeln!(out, "{}", headline(sample, &shown))?;
        writeln!(out, "{stack}")?;
    }
    Ok(out.flush()?)
}

fn headline(sample: &Sample, shown: &FilteredSamples<'_>) -> String {
    let profile = shown.symbolized().profile();
    let comm = match printable(&profile.names[sample.name]) {
        // Readers take the first word that is not a number for the name.
        comm if comm.is_empty() => Cow::Borrowed("[no name]"),
        comm => comm,
    };
    let cpu = sample
        .cpu
        .map_or_else(String::new, |cpu| format!(" [{cpu:03}]"));
    format!(
        "{comm} {pid}/{tid}{cpu} {seconds}.{micros:06}: {period} {event}: ",
        pid = sample.pid,
        tid = sample.tid,
        seconds = sample.time / 1_000_000_000,
        micros = sample.time / 1_000 % 1_000_000,
        period = sample.period,
        event = profile.events[usize::from(sample.event)].name,
    )
}

/// The lines of a stack, innermost function first.
fn lines(stack: StackId, shown: &FilteredSamples<'_>) -> String {
    use std::fmt::Write as _;
    let symbolized = shown.symbolized();
    let mut text = String::new();
    for frame in shown.frames(stack) {
        let (address, module) = place(frame, symbolized.profile());
        for location in shown.locations(frame) {
            let name = printable(&symbolized[location.function].name);
            let module: &str = if location.inlined { "inlined" } else { &module };
            // Writing to a `String` cannot fail.
            let _ = writeln!(text, "\t{address:16x} {name} ({module})");
        }
    }
    text
}

/// Address and module of a frame, the way perf names modules.
fn place(frame: FrameId, profile: &Profile) -> (u64, String) {
    match profile.frames[frame] {
        Frame::Module { module, offset } => {
            let path = profile.modules[module].path.to_string_lossy();
            // Readers expect the module after the last space.
            (offset.0, printable(&path).replace(' ', "_"))
        }
        Frame::Kernel(address) => (address, "[kernel.kallsyms]".into()),
        Frame::Jit { pid, address } => (address, format!("/tmp/perf-{pid}.map")),
        Frame::Unknown(address) => (address, "[unknown]".into()),
        Frame::Named(id) => match &*profile.named[id].module {
            "" => (0, "[unknown]".into()),
            module => (0, printable(module).replace(' ', "_")),
        },
        Frame::Cut(_) | Frame::LeftOut(_) | Frame::OnCpu | Frame::OffCpu => (0, "[unknown]".into()),
    }
}
