//! Sums as a profile.

use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use prof_model::{BuildId, FileOffset, InterpretedLanguage, Module, StackEnd};
use prof_report::Profile;
use prof_report::profile::{
    Event, Frame, FrameId, FunctionKind, MissingData, NamedFrame, Sample, StackId, Unit,
};
use prof_symbols::SymbolFrame;
use rustc_hash::FxHashMap;

use super::Selection;
use super::scan::{EventName, Found, MOST_TEXT};
use crate::dataset::{Partition, read_bounded, table_prefix};
use crate::error::Error;
use crate::store::Store;
use crate::table::{self, Groups, StackHash, StackRow, Table, Texts};

/// Looks up the frames of the stacks, and makes a profile.
///
/// # Errors
/// The store cannot be reached, or a file is damaged.
pub(crate) fn of_sums(
    store: &Store,
    selection: &Selection,
    found: &Found,
) -> Result<Profile, Error> {
    let mut frames = Frames::of(found);
    frames.look_up(store, selection)?;
    Ok(frames.profile_of(found))
}

/// How many samples of an event have stacks that the data set lacks.
pub(crate) fn without_frames(profile: &Profile, event: u16) -> u64 {
    let is_missing = |sample: &Sample| {
        let frame = profile.frames[profile.stacks.frame(sample.stack)];
        sample.event == event && frame == MISSING
    };
    let missing = profile.samples.iter().filter(is_missing);
    missing.fold(0, |sum, sample| sum.saturating_add(sample.count))
}

fn event(EventName { name, unit }: &EventName) -> Event {
    let of_name = Unit::of_event(name);
    Event {
        name: name.to_string(),
        unit: match of_name.name() == &**unit {
            true => of_name,
            false if &**unit == Unit::Nanoseconds.name() => Unit::Nanoseconds,
            false if &**unit == Unit::Unstated.name() => Unit::Unstated,
            false => Unit::Count(unit.to_string().into()),
        },
    }
}

/// The most stacks and functions of a profile, which take some two gigabytes.
const MOST_FUNCTIONS: usize = 1 << 25;

/// The stack of the row with the most symbols.
struct Chosen {
    named: i32,
    stack: StackId,
}

/// Frames in the order of their first use.
#[derive(Default)]
pub(crate) struct Frames {
    profile: Profile,
    /// The stacks that samples have.
    needed: HashSet<StackHash>,
    chosen: FxHashMap<StackHash, Chosen>,
    texts: Texts,
    /// Functions of frames that differ.
    functions: usize,
}

impl Frames {
    /// The hashes of the stacks with samples.
    pub(crate) fn of(found: &Found) -> Self {
        Self {
            needed: found.sums.keys().map(|&(_, stack)| stack).collect(),
            ..Self::default()
        }
    }

    /// The profile of the samples, when all files were read.
    pub(crate) fn profile_of(self, found: &Found) -> Profile {
        let Self {
            mut profile,
            chosen,
            ..
        } = self;
        profile.events = found.events.iter().map(event).collect();
        let name = profile.names.intern("");
        // Sorted, so that a query has one result.
        let mut sums: Vec<_> = found.sums.iter().collect();
        sums.sort_unstable_by_key(|&(key, _)| key);
        for (&(event, stack), weight) in sums {
            let stack = match chosen.get(&stack) {
                Some(chosen) => chosen.stack,
                None => nothing(&mut profile),
            };
            profile.samples.push(Sample {
                time: 0,
                pid: 0,
                tid: 0,
                cpu: None,
                event,
                period: weight.value,
                count: weight.samples,
                name,
                stack,
                end: StackEnd::NotRecorded,
                remote_read: 0,
            });
            profile.quality.samples = profile.quality.samples.saturating_add(weight.samples);
        }
        profile.missing_data = MissingData {
            times: true,
            threads: true,
            quality: true,
        };
        profile
    }

    fn look_up(&mut self, store: &Store, selection: &Selection) -> Result<(), Error> {
        for entry in store.list(&table_prefix(Table::Stacks))? {
            let partition = Partition::of(&entry.path);
            if !partition.is_some_and(|partition| selection.has_day(&partition)) {
                continue;
            }
            let Some(bytes) = read_bounded(store, &entry)? else {
                return Err(Error::Changed { path: entry.path });
            };
            self.read(bytes)
                .map_err(|source| Error::table(&entry.path, source))?;
            if self.is_full() {
                return Err(Error::TooMuch {
                    most: MOST_FUNCTIONS,
                });
            }
        }
        Ok(())
    }

    /// Whether there is more than a query holds.
    fn is_full(&self) -> bool {
        self.profile.stacks.len() + self.functions > MOST_FUNCTIONS
            || self.texts.bytes() > MOST_TEXT
    }

    /// If a stack has several rows, the first with the most symbols counts.
    pub(crate) fn read(&mut self, bytes: Bytes) -> parquet::errors::Result<()> {
        let file = Groups::of(Table::Stacks, bytes)?;
        for group in 0..file.len() {
            let ids = file.stack_ids(group)?;
            let named = file.named(group)?;
            let mut rows = ids.iter().zip(&named);
            if !rows.any(|(id, &named)| self.is_better(id, named)) {
                continue;
            }
            for row in file.stacks(group, &mut self.texts)? {
                if self.is_better(&row.stack, row.named) {
                    let (named, stack) = (row.named, self.stack(&row));
                    self.chosen.insert(row.stack, Chosen { named, stack });
                }
            }
            if self.is_full() {
                break;
            }
        }
        Ok(())
    }

    fn is_better(&self, id: &StackHash, named: i32) -> bool {
        let chosen = self.chosen.get(id);
        self.needed.contains(id) && chosen.is_none_or(|chosen| named > chosen.named)
    }

    fn stack(&mut self, row: &StackRow) -> StackId {
        let mut stack = None;
        // Inlined functions follow the one that they are inlined into.
        for physical in row.frames.chunk_by(|_, next| next.inlined) {
            let known = self.profile.frames.len();
            let frame = self.frame(physical);
            if self.profile.frames.len() > known {
                self.functions += physical.len();
            }
            stack = Some(self.profile.stacks.intern(stack, frame));
        }
        stack.unwrap_or_else(|| nothing(&mut self.profile))
    }

    fn frame(&mut self, functions: &[Arc<table::Frame>]) -> FrameId {
        if let [unnamed] = functions
            && let Some(frame) = self.code(unnamed)
        {
            return self.profile.frames.intern(frame);
        }
        let function = |frame: &Arc<table::Frame>| SymbolFrame {
            function: Arc::clone(&frame.function),
            file: frame.file.clone(),
            line: frame.line.and_then(|line| u32::try_from(line).ok()),
            inlined: frame.inlined,
        };
        let physical = functions.first();
        let named = NamedFrame {
            module: physical.map_or_else(|| "".into(), |frame| Arc::clone(&frame.module)),
            kind: physical.map_or(FunctionKind::Missing, |frame| kind(&frame.kind)),
            functions: functions.iter().rev().map(function).collect(),
        };
        let id = self.profile.named.intern(named);
        self.profile.frames.intern(Frame::Named(id))
    }

    /// A frame that was stored without a symbol, as code: it can be symbolized with the file of
    /// this build id. One named by its function's address was symbolized with its file.
    fn code(&mut self, frame: &table::Frame) -> Option<Frame> {
        let address = frame.address?;
        let place = format!("{}+{address:#x}", frame.module);
        if *frame.function != *place || kind(&frame.kind) != FunctionKind::User {
            return None;
        }
        let module = Module {
            build_id: Some(build_id(frame.build_id.as_deref()?)?),
            ..Module::from_path(&*frame.module)
        };
        Some(Frame::Module {
            module: self.profile.modules.intern(module),
            offset: FileOffset(address.cast_unsigned()),
        })
    }
}

/// From hexadecimal digits.
fn build_id(digits: &str) -> Option<BuildId> {
    let digits = digits.as_bytes().chunks(2);
    let byte = |digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
    BuildId::new(&digits.map(byte).collect::<Option<Vec<u8>>>()?)
}

/// Stands for the frames of a stack that the data set lacks.
const MISSING: Frame = Frame::Cut(StackEnd::NotRecorded);

/// Stands for a stack that nothing is known of.
fn nothing(profile: &mut Profile) -> StackId {
    let frame = profile.frames.intern(MISSING);
    profile.stacks.intern(None, frame)
}

fn kind(name: &str) -> FunctionKind {
    const KINDS: [FunctionKind; 8] = [
        FunctionKind::User,
        FunctionKind::Kernel,
        FunctionKind::Jit,
        FunctionKind::Interpreted(InterpretedLanguage::Python),
        FunctionKind::Interpreted(InterpretedLanguage::Php),
        FunctionKind::Interpreted(InterpretedLanguage::Ruby),
        FunctionKind::Missing,
        FunctionKind::State,
    ];
    let known = KINDS.into_iter().find(|kind| kind.name() == name);
    known.unwrap_or(FunctionKind::User)
}
