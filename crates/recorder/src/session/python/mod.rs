//! Python frames in call chains, and what the file says of their functions.
//!
//! A function stands in a recording as a mapping of its own, whose path has its name and file, far
//! above all addresses of programs: each address in it is a line. So every reader of perf.data
//! opens the file, and shows the function's name as that of a module.

pub(crate) mod late;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;

use prof_model::{AbsoluteAddress, NoPython, Pid, PythonFunction, StackEnd, StackNote};
use prof_perfdata::{Attr, CpuMode, Mmap, Record, Sample, Stamp, context, encode};
use prof_runtimes::python::{Function, Interpreter, Library, PythonStack};
use prof_unwinder::{FRAME_LIMIT, Target};

use crate::live::maps_interpreter;
use crate::live::python::{PythonReader, SinceSample};
use crate::live::readings::LiveReadings;
use crate::queue::message::{PythonReading, SampledThread};
use crate::session::mappings::KnownMappings;
use crate::session::runtime_finder::{RuntimeFinder, RuntimeKind};

/// Knows the interpreters of processes, and the functions that were seen.
#[derive(Debug)]
pub(crate) struct PythonFrames {
    interpreters: RuntimeFinder<Library, Arc<Interpreter>>,
    /// The numbers of functions, by the paths that stand for them.
    functions: HashMap<String, u64>,
    /// Paths by function, which are made once.
    paths: HashMap<Arc<Function>, u64>,
    /// Where the reading threads find the interpreters.
    readings: Arc<LiveReadings>,
    /// For threads that still wait.
    reader: PythonReader,
    /// The records of functions that are still to be written.
    maps: Vec<u8>,
}

impl PythonFrames {
    /// Functions of a recording, at most.
    const FUNCTIONS: usize = 1 << 17;

    pub(crate) fn new(readings: Arc<LiveReadings>) -> Self {
        Self {
            interpreters: RuntimeFinder::new(RuntimeKind {
                is_named: Library::is_named,
                read: Library::read,
                at: |library, start, offset, memory| {
                    library.at(start, offset, memory).map(Arc::new)
                },
                // Where its data is not mapped yet, a version that publishes its layout is not
                // readable.
                is_final: |interpreter| interpreter.is_readable(),
            }),
            functions: HashMap::new(),
            paths: HashMap::new(),
            reader: PythonReader::new(Arc::clone(&readings)),
            readings,
            maps: Vec::new(),
        }
    }

    /// Finds the interpreter of a process as soon as it is mapped or inherited, because all samples
    /// before lack their frames. The record was followed.
    pub(crate) fn follow(&mut self, record: &Record<'_>, mappings: &KnownMappings) {
        let pid = match record {
            Record::Mmap(mmap) if maps_interpreter(record) => mmap.pid,
            Record::Fork(task) if self.interpreters.get(task.parent_pid).is_some() => task.pid,
            _ => return,
        };
        if let Some(target) = mappings.target(pid) {
            self.interpreter(&target);
        }
    }

    /// What a thread runs that has waited since it was sampled, if its process runs Python. This is
    /// wrong if it has returned meanwhile.
    pub(crate) fn read_blocked(
        &mut self,
        target: &Target<'_>,
        sample: &Sample<'_>,
    ) -> Option<PythonReading> {
        self.interpreter(target)?;
        let thread = SampledThread::of(sample)?;
        self.reader.read(&thread, SinceSample::Stopped)
    }

    /// Adds the Python frames to the user's part of a chain. Returns whether it has them, or `None`
    /// if no evaluation loop is on the stack.
    pub(crate) fn add(
        &mut self,
        target: &Target<'_>,
        reading: Option<&PythonReading>,
        chain: &mut Vec<u64>,
        note: &mut StackNote,
    ) -> Option<Result<(), NoPython>> {
        let interpreter = self.interpreter(target)?;
        let first = chain.iter().position(|&entry| entry == context::USER)? + 1;
        let is_loop = |&at: &usize| interpreter.evaluates_at(chain[at]);
        let loops: Vec<_> = (first..chain.len()).filter(is_loop).collect();
        let &innermost = loops.first()?;
        let stack = match reading {
            Some(reading) => reading.stack.as_ref().map_err(|&reason| reason),
            None if !interpreter.is_readable() => Err(NoPython::UnknownVersion),
            None => Err(NoPython::NotRead),
        };
        let room = (first + FRAME_LIMIT).saturating_sub(chain.len());
        let stack = match self.functions.len() < Self::FUNCTIONS {
            true => stack.and_then(|stack| fit(stack, &loops, *note, room)),
            false => Err(NoPython::TooDeep),
        };
        match stack {
            Ok(stack) => {
                self.insert(stack, &loops, chain, note);
                Some(Ok(()))
            }
            Err(reason) => {
                // Where no stack has Python frames, the verdict says it once.
                if room > 0 && reason != NoPython::UnknownVersion {
                    let mark = self.address(PythonFunction::missing(reason).path());
                    insert_at(innermost, &[mark], chain, note);
                }
                Some(Err(reason))
            }
        }
    }

    fn insert(
        &mut self,
        stack: &PythonStack,
        loops: &[usize],
        chain: &mut Vec<u64>,
        note: &mut StackNote,
    ) {
        for (number, &at) in loops.iter().enumerate().rev() {
            let frames = stack.of_activation(number).iter();
            let addresses: Vec<_> = frames
                .map(|frame| {
                    let known = self.paths.get(&frame.function).copied();
                    let base = known.unwrap_or_else(|| {
                        let base = self.address(path(&frame.function));
                        self.paths.insert(Arc::clone(&frame.function), base);
                        base
                    });
                    PythonFunction::address(base, frame.line)
                })
                .collect();
            insert_at(at, &addresses, chain, note);
        }
    }

    /// The address that stands for the function with this path.
    fn address(&mut self, path: String) -> u64 {
        let next = self.functions.len() as u64;
        let number = *self.functions.entry(path).or_insert(next);
        PythonFunction::start(number)
    }

    /// Maps the functions in the chain of a sample that its process has not mapped yet: adds the
    /// records that must be [written](Self::take_maps) before the sample.
    pub(crate) fn map(
        &mut self,
        sample: &Sample<'_>,
        chain: &[u64],
        attr: &Attr,
        mappings: &mut KnownMappings,
    ) {
        let Some(target) = mappings.target(sample.pid) else {
            return;
        };
        for (address, path) in self.unmapped(&target, chain) {
            let mmap = mmap(sample, address, &path);
            // The path is short.
            let _ = encode::mmap2(&mut self.maps, attr, &mmap);
            mappings.follow(&Record::Mmap(mmap));
        }
    }

    /// The records of functions since the last call.
    pub(crate) fn take_maps(&mut self) -> Option<Vec<u8>> {
        let has_maps = !self.maps.is_empty();
        has_maps.then(|| std::mem::take(&mut self.maps))
    }

    /// The functions in the chain that the process has not mapped yet: where, and their paths.
    fn unmapped(&self, target: &Target<'_>, chain: &[u64]) -> Vec<(u64, String)> {
        let space = target.process.space();
        let addresses = chain.iter().filter(|&&at| PythonFunction::holds(at));
        let mut starts: Vec<_> = addresses
            .map(|&at| PythonFunction::address(at, None))
            .filter(|&start| space.find(AbsoluteAddress(start)).is_none())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        if starts.is_empty() {
            return Vec::new();
        }
        let functions = self.functions.iter();
        let placed = functions.map(|(path, &number)| (PythonFunction::start(number), path));
        placed
            .filter(|(start, _)| starts.binary_search(start).is_ok())
            .map(|(start, path)| (start, path.clone()))
            .collect()
    }

    /// The interpreter of a process, if it has one.
    fn interpreter(&mut self, target: &Target<'_>) -> Option<Arc<Interpreter>> {
        let has_looked = self.interpreters.find(target);
        let interpreter = self.interpreters.get(target.pid).cloned();
        if has_looked {
            let readable = interpreter.clone().filter(|it| it.is_readable());
            self.readings.learn(target.pid, readable);
        }
        interpreter
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        if self.interpreters.forget(pid) {
            self.readings.learn(pid, None);
        }
    }
}

/// The stack, if its activations are those of the native stack.
fn fit<'s>(
    stack: &'s PythonStack,
    loops: &[usize],
    note: StackNote,
    room: usize,
) -> Result<&'s PythonStack, NoPython> {
    let (native, known) = (loops.len(), stack.activations.len());
    let fits = native == known || (note.end != StackEnd::Root && native < known);
    match (note.elided, stack.frames.len() <= room) {
        (0, true) if fits => Ok(stack),
        (0, true) => Err(NoPython::Mismatch),
        _ => Err(NoPython::TooDeep),
    }
}

/// Inserts frames before the one at `at`; those read after the sample keep their place.
fn insert_at(at: usize, frames: &[u64], chain: &mut Vec<u64>, note: &mut StackNote) {
    let late = chain.len().saturating_sub(note.remote_read.into());
    if at >= late {
        let more = u16::try_from(frames.len()).unwrap_or(u16::MAX);
        note.remote_read = note.remote_read.saturating_add(more);
    }
    chain.splice(at..at, frames.iter().copied());
    let first = chain.iter().position(|&entry| entry == context::USER);
    if note.elided > 0 && first.is_some_and(|first| at <= first + note.elided_at as usize) {
        note.elided_at += frames.len() as u32;
    }
}

fn path(function: &Function) -> String {
    let function = PythonFunction {
        name: function.name.clone(),
        file: function.file.clone(),
        first_line: function.first_line,
    };
    function.path()
}

/// The record of a function that is first seen with this sample.
pub(super) fn mmap<'a>(sample: &Sample<'_>, address: u64, path: &'a str) -> Mmap<'a> {
    Mmap {
        stamp: Stamp {
            pid: Some(sample.pid),
            tid: Some(sample.tid),
            time: sample.time,
            ..Stamp::default()
        },
        mode: CpuMode::User,
        pid: sample.pid,
        tid: sample.tid,
        address,
        length: PythonFunction::LINES,
        file_offset: 0,
        executable: true,
        protection: None,
        flags: None,
        build_id: None,
        identity: None,
        path: OsStr::new(path),
    }
}
