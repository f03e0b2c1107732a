//! pprof's profile.proto.
//!
//! Each of its sample types becomes an event, the default one first; `samples` is the number of
//! samples of the others. Names that the profile has are kept; what has an address in a mapping
//! instead is looked up like the code of recordings.

mod frames;
mod survey;

use prof_model::{Pid, Tid};
use prost::Message;
use rustc_hash::FxHashMap;

use super::imported::{Imported, ImportedThread};
use crate::error::InputError;
use crate::format::pprof::message::{self, Label};
use crate::profile::{Event, FrameId, Profile, Unit, Weight};
use frames::Locations;
use survey::survey;

/// Reads a profile that is unpacked already; `None` if it is none.
pub(in crate::load) fn read(bytes: &[u8]) -> Option<Result<Profile, InputError>> {
    let tables = match survey(bytes)? {
        Ok(()) => message::Tables::decode(bytes).map_err(|_| InputError::DamagedPprof),
        Err(error) => Err(error),
    };
    Some(tables.and_then(|tables| {
        check_strings(&tables)?;
        Reader::new(&tables).read(bytes)
    }))
}

/// Refuses a profile with a part of its strings, as of a file that was cut off.
fn check_strings(tables: &message::Tables) -> Result<(), InputError> {
    let exists = |index: i64| {
        let index = usize::try_from(index).ok();
        index.is_some_and(|index| index < tables.string_table.len())
    };
    let mut types = tables.sample_type.iter();
    let mut functions = tables.function.iter();
    // The format demands that the first string is empty.
    let is_whole = tables.string_table.first().is_some_and(String::is_empty)
        && types.all(|kind| exists(kind.kind) && exists(kind.unit))
        && functions.all(|function| exists(function.name) && exists(function.filename));
    is_whole.then_some(()).ok_or(InputError::DamagedPprof)
}

/// So many bytes of names are looked at. They are in a file once, however long they are, and as
/// often as anything refers to them.
const MOST_TEXTS: u64 = 4 << 30;

struct Reader<'a> {
    message: &'a message::Tables,
    types: Vec<Type>,
    /// Which of a sample's values is the number of samples.
    samples: Option<usize>,
    imported: Imported,
    frames: FxHashMap<u64, FrameId>,
    /// The numbers of threads that have names only.
    unnumbered: FxHashMap<(Pid, &'a str), Tid>,
    /// Bytes of text that may still be referred to.
    texts_left: u64,
}

/// A sample type that is an event.
struct Type {
    /// Which of a sample's values is of this type.
    position: usize,
    /// The factor of values.
    factor: u64,
}

impl<'a> Reader<'a> {
    fn new(message: &'a message::Tables) -> Self {
        let texts = |position: &usize| {
            let kind = &message.sample_type[*position];
            (text(message, kind.kind), text(message, kind.unit))
        };
        let positions = 0..message.sample_type.len();
        let samples = positions.clone().find(|position| {
            message.sample_type.len() > 1 && texts(position) == ("samples", "count")
        });
        let mut positions: Vec<usize> = positions.filter(|at| Some(*at) != samples).collect();
        let default = text(message, message.default_sample_type);
        let main = positions
            .iter()
            .position(|position| texts(position).0 == default)
            .unwrap_or(positions.len() - 1);
        positions[..=main].rotate_right(1);
        let (events, types) = positions
            .into_iter()
            .map(|position| event(position, texts(&position)))
            .unzip();
        Self {
            message,
            types,
            samples,
            imported: Imported::new(events),
            frames: FxHashMap::default(),
            unnumbered: FxHashMap::default(),
            texts_left: MOST_TEXTS,
        }
    }

    fn read(mut self, bytes: &[u8]) -> Result<Profile, InputError> {
        /// Each sample and frame of a stack takes some fifty bytes of memory, and may take one in
        /// a file.
        const MOST: usize = 1 << 26;
        self.locations()?;
        for sample in survey::samples(bytes) {
            let sample = message::Sample::decode(sample).map_err(|_| InputError::DamagedPprof)?;
            if sample.value.iter().any(|&value| value < 0) {
                return Err(InputError::NegativeValue);
            }
            self.sample(&sample)?;
            let profile = self.imported.profile();
            if profile.samples.len().max(profile.stacks.len()) > MOST {
                return Err(InputError::PprofTooLarge);
            }
        }
        self.imported.profile().header.command_line = comments(self.message);
        Ok(self.imported.finish())
    }

    fn sample(&mut self, sample: &message::Sample) -> Result<(), InputError> {
        let outermost_first = sample.location_id.iter().rev();
        let frames: Option<Vec<FrameId>> = outermost_first
            .map(|id| self.frames.get(id).copied())
            .collect();
        let is_complete = sample.value.len() == self.message.sample_type.len();
        let Some(frames) = frames.filter(|_| is_complete) else {
            self.imported.malformed();
            return Ok(());
        };
        let stack = self.imported.stack(frames.into_iter());
        let (mut thread, process) = thread(self.message, &sample.label);
        self.refer_to(thread.name)?;
        self.refer_to(process)?;
        if thread.tid == 0 && !thread.name.is_empty() {
            thread.tid = self.number(&thread);
        }
        self.name_process(thread.pid, process);
        let value = |position: usize| sample.value.get(position).map_or(0, |&v| v.unsigned_abs());
        let count = self.samples.map_or(1, value).max(1);
        for (event, kind) in self.types.iter().enumerate() {
            let weight = Weight {
                value: value(kind.position).saturating_mul(kind.factor),
                samples: count,
            };
            if weight.value > 0 {
                self.imported.push(event, stack, weight, &thread);
            }
        }
        Ok(())
    }

    /// Without a number, all processes are one, which then has no name.
    fn name_process(&mut self, pid: Pid, name: &str) {
        let name = if pid == 0 { "" } else { name };
        if pid == 0 || !name.is_empty() {
            let profile = self.imported.profile();
            let name = profile.names.intern(name);
            profile.main_names.insert(pid, name);
        }
    }

    /// The number of a thread that has a name only: below zero, where no real one is.
    fn number(&mut self, thread: &ImportedThread<'a>) -> Tid {
        let next = self.unnumbered.len() + 1;
        let number = self.unnumbered.entry((thread.pid, thread.name));
        *number.or_insert_with(|| Tid::try_from(next).map_or(Tid::MIN, |next| -next))
    }

    /// Takes note that a text is looked at once more.
    fn refer_to(&mut self, text: &str) -> Result<(), InputError> {
        let left = self.texts_left.checked_sub(text.len() as u64);
        self.texts_left = left.ok_or(InputError::PprofTooLarge)?;
        Ok(())
    }

    /// Makes a frame of each location.
    fn locations(&mut self) -> Result<(), InputError> {
        let message = self.message;
        let mut locations = Locations::of(message);
        for location in &message.location {
            for text in locations.texts(location) {
                self.refer_to(text)?;
            }
            let profile = self.imported.profile();
            let frame = locations.frame(location, profile);
            let frame = profile.frames.intern(frame);
            self.frames.insert(location.id, frame);
        }
        Ok(())
    }
}

/// The words of the command line, which prof keeps in comments.
fn comments(message: &message::Tables) -> Vec<String> {
    /// In bytes. Many comments may be one long text.
    const MOST: usize = 1 << 20;
    let mut left = MOST;
    let texts = message.comment.iter().map(|&index| text(message, index));
    let fitting = texts.map_while(|text| {
        left = left.checked_sub(text.len() + 1)?;
        Some(text.to_owned())
    });
    fitting.collect()
}

fn text(message: &message::Tables, index: i64) -> &str {
    let text = usize::try_from(index).ok();
    text.and_then(|index| message.string_table.get(index))
        .map_or("", String::as_str)
}

fn event(position: usize, (name, unit): (&str, &str)) -> (Event, Type) {
    let (unit, factor) = match unit {
        "nanoseconds" => (Unit::Nanoseconds, 1),
        "microseconds" => (Unit::Nanoseconds, 1_000),
        "milliseconds" => (Unit::Nanoseconds, 1_000_000),
        "seconds" => (Unit::Nanoseconds, 1_000_000_000),
        "count" if Unit::of_event(name) != Unit::of_event("") => (Unit::of_event(name), 1),
        "count" => (Unit::Count(name.to_owned().into()), 1),
        unit => (Unit::Count(unit.to_owned().into()), 1),
    };
    let event = Event {
        name: name.to_owned(),
        unit,
    };
    (event, Type { position, factor })
}

/// The thread that a sample's labels name, and the name of its process.
fn thread<'a>(message: &'a message::Tables, labels: &[Label]) -> (ImportedThread<'a>, &'a str) {
    let mut thread = ImportedThread::default();
    let mut process = "";
    for label in labels {
        let number = i32::try_from(label.num).unwrap_or(0);
        match text(message, label.key) {
            "tid" | "thread_id" => thread.tid = number,
            "pid" | "process_id" => thread.pid = number,
            "thread" | "comm" => thread.name = text(message, label.str),
            "process" => process = text(message, label.str),
            _ => {}
        }
    }
    if thread.name.is_empty() {
        thread.name = process;
    }
    (thread, process)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::Read;

    use flate2::read::GzDecoder;

    use super::*;
    use crate::format::pprof;
    use crate::symbolize::SymbolizedProfile;
    use crate::testing::{demo, everything};

    fn written(symbolized: &SymbolizedProfile) -> message::Profile {
        let mut packed = Vec::new();
        pprof::write(symbolized, &everything(), &mut packed).unwrap();
        let mut bytes = Vec::new();
        GzDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap();
        message::Profile::decode(&bytes[..]).unwrap()
    }

    /// The threads of a profile, and their milliseconds.
    fn check(profile: &Profile, expected: &[(&str, u64)]) {
        let mut threads: BTreeMap<(&str, Tid), u64> = BTreeMap::new();
        for sample in profile.samples.iter() {
            let thread = (&profile.names[sample.name], sample.tid);
            *threads.entry(thread).or_default() += sample.period / 1_000_000;
        }
        let tids: std::collections::HashSet<_> = threads.keys().map(|(_, tid)| *tid).collect();
        assert_eq!(tids.len(), threads.len(), "{threads:?}");
        let threads: Vec<_> = threads.iter().map(|((name, _), &ms)| (*name, ms)).collect();
        assert_eq!(threads, expected);
    }

    /// As programs of Go write them (`pprof.Do`).
    #[test]
    fn threads_that_have_names_and_no_numbers_stay_apart() {
        let mut original = written(&demo());
        let key = |message: &message::Profile, label: &Label| {
            message.string_table[usize::try_from(label.key).unwrap()].clone()
        };
        let strings = original.clone();
        for sample in &mut original.sample {
            let is_number = |label: &Label| ["pid", "tid"].contains(&&*key(&strings, label));
            sample.label.retain(|label| !is_number(label));
        }
        let threads = [
            ("child", 55),
            ("demo", 880),
            ("kworker", 35),
            ("worker", 30),
        ];
        let profile = read(&original.encode_to_vec()).unwrap().unwrap();
        check(&profile, &threads);
        // The numbers, processes and times that were made up are not written.
        let again = written(&SymbolizedProfile::with_names(profile, |_| &[]));
        assert_eq!(again.duration_nanos, 0);
        for label in again.sample.iter().flat_map(|sample| &sample.label) {
            let is_known = ["thread", "language"].contains(&&*key(&again, label));
            assert!(is_known || (label.str, label.num) == (0, 0), "{label:?}");
        }
        check(&read(&again.encode_to_vec()).unwrap().unwrap(), &threads);
    }
}
