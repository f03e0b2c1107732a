//! The profile: a recording's data, interned, before symbolization.
//!
//! ```text
//!   Samples (columns) ──stack──> Stacks (prefix, frame) ──frame──> Frames ──module──> Modules
//!        └─name─> ThreadNames
//! ```
//! Stacks are a prefix tree that grows from the outermost frame to the innermost: two samples
//! that differ only in their last call share all the rest.

mod event;
mod frames;
mod function_kind;
mod merge;
mod named;
mod process_names;
mod samples;
mod stack_check;
mod stacks;
mod thread_lifetimes;
mod thread_names;

use std::borrow::Cow;

use prof_model::{Modules, Pid, Quality, printable};
use prof_symbols::{Host, RecordedKernel};
use rustc_hash::FxHashMap;

use crate::error::Error;

pub use event::{Event, Unit};
pub use frames::{Frame, FrameId, Frames};
pub use function_kind::FunctionKind;
pub use named::{NamedFrame, NamedFrames, NamedId};
pub use samples::{Sample, Samples, Weight};
pub use stack_check::{Answer, CodePlace, Difference, StackCheck};
pub use stacks::{StackId, Stacks};
pub use thread_lifetimes::{ThreadLifetime, ThreadLifetimes};
pub use thread_names::{ThreadNameId, ThreadNames};
pub(crate) use thread_names::{is_unnamed, unnamed};

/// A recording in memory: each distinct frame and stack once, samples as columns.
#[derive(Clone, Debug, Default)]
pub struct Profile {
    /// Facts about the whole recording.
    pub header: Header,
    /// The sampled events; [`Sample::event`] is an index here.
    pub events: Vec<Event>,
    /// The files that code was mapped from.
    pub modules: Modules,
    /// Each distinct frame.
    pub frames: Frames,
    /// The frames among them that came with names.
    pub named: NamedFrames,
    /// Each distinct stack.
    pub stacks: Stacks,
    /// Thread names.
    pub names: ThreadNames,
    /// The last names of main threads, sampled or not, as far as the recording says.
    pub(crate) main_names: FxHashMap<Pid, ThreadNameId>,
    /// The samples, in time order.
    pub samples: Samples,
    /// When threads began and ended.
    pub thread_lifetimes: ThreadLifetimes,
    /// Losses and how stacks ended.
    pub quality: Quality,
    /// The kernel of the recording machine.
    pub kernel: RecordedKernel,
    /// The names that the recording carries, in the form of `prof_symbols::EmbeddedSymbols`; of
    /// several recordings, those of the first that has some.
    pub symbols: Option<Vec<u8>>,
    /// The time of day when the samples' clock showed zero, in nanoseconds since 1970, if known.
    pub clock_zero: Option<i64>,
    /// The data that it lacks.
    pub missing_data: MissingData,
    /// Whether the functions of interpreters and of the C library are of interest themselves.
    pub(crate) native: bool,
    /// How far two unwinders agree, if requested.
    pub stack_check: Option<StackCheck>,
}

impl Profile {
    /// Makes all texts of events and of the recording [`printable`]. Threads and functions become
    /// that when they are interned.
    pub(crate) fn clean_texts(&mut self) {
        let clean = |text: &mut String| {
            if let Cow::Owned(clean) = printable(text) {
                *text = clean;
            }
        };
        for event in &mut self.events {
            clean(&mut event.name);
            if let Unit::Count(unit) = &mut event.unit
                && let Cow::Owned(clean) = printable(unit)
            {
                *unit = clean.into();
            }
        }
        let header = &mut self.header;
        let known = [
            &mut header.hostname,
            &mut header.os_release,
            &mut header.arch,
        ];
        let known = known.into_iter().flatten();
        header.command_line.iter_mut().chain(known).for_each(clean);
    }

    /// The index of the event that has the samples of others once more: all time, on and off the
    /// CPUs.
    pub(crate) fn view(&self) -> Option<u16> {
        let has_parts = self.events.iter().any(Event::is_off_cpu);
        let is_view = |event: &Event| has_parts && event.name == Event::WALL_CLOCK;
        let index = self.events.iter().position(is_view)?;
        u16::try_from(index).ok()
    }

    /// How many samples there are of each event.
    pub fn sample_counts(&self) -> Vec<u64> {
        let mut counts = vec![0_u64; self.events.len()];
        for sample in self.samples.iter() {
            if let Some(count) = counts.get_mut(usize::from(sample.event)) {
                *count = count.saturating_add(sample.count);
            }
        }
        counts
    }
}

/// The data that a profile lacks, because its input format has no place for it. Recordings have all
/// of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MissingData {
    /// The times of samples; consecutive ones are generated.
    pub times: bool,
    /// Whether it has the threads and processes of samples.
    pub threads: bool,
    /// How stacks ended and what was lost, so that there can be no verdict.
    pub quality: bool,
}

impl MissingData {
    /// Refuses a view that needs times where there are none.
    ///
    /// # Errors
    /// [`Error::Lacking`].
    pub(crate) fn check_times(self, asked: &'static str) -> Result<(), Error> {
        match self.times {
            true => Err(Error::Lacking {
                asked,
                lacking: "times",
            }),
            false => Ok(()),
        }
    }
}

/// Facts about a whole recording.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Header {
    /// The command line of the recorder (`perf record …`), as it was typed, one argument each.
    pub command_line: Vec<String>,
    /// The machine's name.
    pub hostname: Option<String>,
    /// The kernel's release.
    pub os_release: Option<String>,
    /// The machine's architecture (`x86_64`).
    pub arch: Option<String>,
}

impl Header {
    /// The machine.
    pub fn host(&self) -> Host {
        Host {
            name: self.hostname.clone(),
            arch: self.arch.clone(),
            release: self.os_release.clone(),
        }
    }
}
