//! Interpreted frames in call chains, and what the file says of their functions.
//!
//! A function stands in a recording as a mapping of its own, whose path has its name and file, far
//! above all addresses of programs: each address in it is a line. So every reader of perf.data
//! opens the file, and shows the function's name as that of a module.

pub(crate) mod late;
mod placing;

use std::collections::HashMap;
use std::ffi::OsStr;
use std::sync::Arc;

use prof_model::{
    AbsoluteAddress, InterpretedFunction, InterpretedLanguage, MissingFrames, ModuleId, ModuleKind,
    Pid, StackEnd, StackNote,
};
use prof_perfdata::{Attr, CpuMode, Mmap, Record, Sample, Stamp, context, encode};
use prof_runtimes::{Function, InterpretedFrame, Interpreter, Language, Library};
use prof_unwinder::Target;

use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::maps_interpreter;
use crate::live::readings::LiveReadings;
use crate::queue::message::{InterpretedReading, SampledThread};
use crate::session::frame_limit;
use crate::session::mappings::KnownMappings;
use crate::session::runtime_finder::{RuntimeFinder, RuntimeKind};
use crate::stack_outcome::InterpretedOutcome;
use placing::{Insertion, fit, insert};

/// Knows the interpreters of processes, and the functions that were seen.
#[derive(Debug)]
pub(crate) struct InterpretedFrames {
    interpreters: RuntimeFinder<Library, Arc<Interpreter>>,
    /// The numbers of functions, by the paths that stand for them.
    functions: HashMap<String, u64>,
    /// Paths by function, which are made once.
    paths: HashMap<(InterpretedLanguage, Arc<Function>), u64>,
    /// Where the reading threads find the interpreters.
    readings: Arc<LiveReadings>,
    /// For threads that still wait.
    reader: InterpreterReader,
    /// The records of functions that are still to be written.
    maps: Vec<u8>,
}

impl InterpretedFrames {
    /// Functions of a recording, at most.
    const FUNCTIONS: usize = 1 << 17;

    pub(crate) fn new(readings: Arc<LiveReadings>) -> Self {
        Self {
            interpreters: RuntimeFinder::new(RuntimeKind {
                is_named: Library::is_named,
                read: |file, _| Library::read(file),
                at: |library, start, offset, memory| {
                    library.at(start, offset, memory).map(Arc::new)
                },
                // Where its data is not mapped yet, a version that publishes its layout is not
                // readable.
                is_final: |interpreter| interpreter.is_readable(),
            }),
            functions: HashMap::new(),
            paths: HashMap::new(),
            reader: InterpreterReader::new(Arc::clone(&readings)),
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

    /// What a thread runs that has waited since it was sampled, if its process runs an interpreter.
    /// This is wrong if it has returned meanwhile.
    pub(crate) fn read_blocked(
        &mut self,
        target: &Target<'_>,
        sample: &Sample<'_>,
    ) -> Option<InterpretedReading> {
        self.interpreter(target)?;
        let thread = SampledThread::of(sample)?;
        self.reader.read(&thread, SinceSample::Stopped)
    }

    /// Adds the interpreted frames to the user's part of a chain. Returns whether it has them, or
    /// `None` if no evaluation loop is on the stack.
    pub(crate) fn add(
        &mut self,
        target: &Target<'_>,
        reading: Option<&InterpretedReading>,
        chain: &mut Vec<u64>,
        note: &mut StackNote,
    ) -> Option<InterpretedOutcome> {
        let interpreter = self.interpreter(target)?;
        let first = chain.iter().position(|&entry| entry == context::USER)? + 1;
        let is_loop = |&at: &usize| interpreter.evaluates_at(chain[at]);
        let loops: Vec<_> = (first..chain.len()).filter(is_loop).collect();
        let innermost = *loops.first()?;
        let stack = match reading {
            Some(reading) => reading.stack.as_ref().map_err(|&reason| reason),
            None if !interpreter.is_readable() => Err(MissingFrames::UnknownVersion),
            None => Err(MissingFrames::NotRead),
        };
        let language = language(&interpreter);
        let stack = match self.functions.len() < Self::FUNCTIONS {
            true => stack.and_then(|stack| fit(stack, loops, *note)),
            false => Err(MissingFrames::TooDeep),
        };
        let added = stack.map(|(stack, loops, waiting)| {
            let of_loops = loops.iter().enumerate().map(|(number, &at)| {
                let frames = stack.of_activation(number + waiting);
                (at, self.addresses(language, frames))
            });
            let mut insertions: Vec<Insertion> = of_loops.collect();
            if note.end == StackEnd::Root {
                let others = self.addresses(language, stack.of_other_stacks());
                insertions.push((chain.len(), others));
            }
            insert(&insertions, chain, note);
            let module = self.interpreters.get(target.pid).map(|(_, module)| module);
            if language == InterpretedLanguage::Ruby {
                leave_out_compiled(target, module, chain, note);
            }
            leave_out_interpreter(target, (&interpreter, module), chain, note);
        });
        // Where no stack has interpreted frames, the verdict says it once.
        if let Err(reason) = added
            && reason != MissingFrames::UnknownVersion
        {
            let mark = self.address(InterpretedFunction::missing(language, reason).path());
            insert(&[(innermost, vec![mark])], chain, note);
        }
        Some((language, added))
    }

    /// The addresses that stand for frames.
    fn addresses(
        &mut self,
        language: InterpretedLanguage,
        frames: &[InterpretedFrame],
    ) -> Vec<u64> {
        let address = |frame: &InterpretedFrame| {
            let key = (language, Arc::clone(&frame.function));
            let known = self.paths.get(&key).copied();
            let base = known.unwrap_or_else(|| {
                let base = self.address(path(language, &frame.function));
                self.paths.insert(key, base);
                base
            });
            InterpretedFunction::address(base, frame.line)
        };
        frames.iter().map(address).collect()
    }

    /// The address that stands for the function with this path.
    fn address(&mut self, path: String) -> u64 {
        let next = self.functions.len() as u64;
        let number = *self.functions.entry(path).or_insert(next);
        InterpretedFunction::start(number)
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
        let addresses = chain.iter().filter(|&&at| InterpretedFunction::holds(at));
        let mut starts: Vec<_> = addresses
            .map(|&at| InterpretedFunction::address(at, None))
            .filter(|&start| space.find(AbsoluteAddress(start)).is_none())
            .collect();
        starts.sort_unstable();
        starts.dedup();
        if starts.is_empty() {
            return Vec::new();
        }
        let functions = self.functions.iter();
        let placed = functions.map(|(path, &number)| (InterpretedFunction::start(number), path));
        placed
            .filter(|(start, _)| starts.binary_search(start).is_ok())
            .map(|(start, path)| (start, path.clone()))
            .collect()
    }

    /// The interpreter of a process, if it has one.
    fn interpreter(&mut self, target: &Target<'_>) -> Option<Arc<Interpreter>> {
        let has_looked = self.interpreters.find(target);
        let interpreter = self.interpreters.get(target.pid).map(|it| Arc::clone(it.0));
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

/// Leaves out the functions of the interpreter itself, which reports replace by those that it runs,
/// if there are too many frames: those that called the innermost evaluation loop, then those that
/// it has called. By that loop, reports know the interpreter.
fn leave_out_interpreter(
    target: &Target<'_>,
    (interpreter, module): (&Interpreter, Option<ModuleId>),
    chain: &mut Vec<u64>,
    note: &mut StackNote,
) {
    for keeps_inner in [true, false] {
        if frame_limit::excess(chain) == 0 {
            return;
        }
        let function = chain.iter().position(|&at| InterpretedFunction::holds(at));
        let mut after = function.unwrap_or(0)..chain.len();
        let innermost = after.find(|&at| interpreter.evaluates_at(chain[at]));
        let outermost = chain.len().saturating_sub(1);
        frame_limit::remove(chain, note, |index, address| {
            let mapping = target.process.space().find(AbsoluteAddress(address));
            let is_its = mapping.is_some_and(|mapping| Some(mapping.module) == module);
            let is_inner = innermost.is_some_and(|innermost| index < innermost);
            let is_kept = Some(index) == innermost || keeps_inner && is_inner;
            is_its && !is_kept && index != outermost
        });
    }
}

/// Leaves out the frames of code that YJIT has compiled, which the interpreter's own functions
/// call: Ruby's frames have their functions. The line of the innermost one is unknown, because such
/// code does not keep it.
fn leave_out_compiled(
    target: &Target<'_>,
    interpreter: Option<ModuleId>,
    chain: &mut Vec<u64>,
    note: &mut StackNote,
) {
    let mut removed = vec![false; chain.len()];
    let mut is_called_by_ruby = false;
    for (at, &address) in chain.iter().enumerate().rev() {
        let mapping = target.process.space().find(AbsoluteAddress(address));
        let module = mapping.map(|mapping| mapping.module);
        let is_compiled =
            module.is_some_and(|module| target.modules[module].kind == ModuleKind::Anonymous);
        let is_function = InterpretedFunction::holds(address);
        removed[at] = is_called_by_ruby && is_compiled && !is_function;
        let is_its = module.is_some() && module == interpreter;
        is_called_by_ruby = is_function || is_called_by_ruby && (is_compiled || is_its);
    }
    let user = chain.iter().position(|&entry| entry == context::USER);
    let is_innermost = user.is_some_and(|user| removed.get(user + 1) == Some(&true));
    frame_limit::remove(chain, note, |index, _| removed[index]);
    let mut functions = chain.iter_mut();
    if is_innermost && let Some(function) = functions.find(|it| InterpretedFunction::holds(**it)) {
        *function = InterpretedFunction::address(*function, None);
    }
}

fn language(interpreter: &Interpreter) -> InterpretedLanguage {
    match interpreter.language {
        Language::Python(_) => InterpretedLanguage::Python,
        Language::Php(_) => InterpretedLanguage::Php,
        Language::Ruby(_) => InterpretedLanguage::Ruby,
    }
}

fn path(language: InterpretedLanguage, function: &Function) -> String {
    let function = InterpretedFunction {
        language,
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
        length: InterpretedFunction::LINES,
        file_offset: 0,
        executable: true,
        protection: None,
        flags: None,
        build_id: None,
        identity: None,
        path: OsStr::new(path),
    }
}
