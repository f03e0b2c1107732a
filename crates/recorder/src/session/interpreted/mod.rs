//! Interpreted frames in call chains, and what the file says of their functions.
//!
//! A function stands in a recording as a mapping of its own, whose path has its name and file, far
//! above all addresses of programs: each address in it is a line. So every reader of perf.data
//! opens the file, and shows the function's name as that of a module.

mod functions;
pub(crate) mod late;
mod placing;
mod written_names;

use std::ffi::OsStr;
use std::sync::Arc;

use prof_model::{
    AbsoluteAddress, Budget, InterpretedFunction, InterpretedLanguage, MissingFrames, ModuleId,
    ModuleKind, Pid, StackEnd, StackNote, Tid,
};
use prof_perfdata::{Attr, CpuMode, Mmap, Record, Sample, Stamp, context, encode};
use prof_runtimes::{InterpretedFrame, Interpreter, Language, Library};
use prof_unwinder::Target;

use crate::live::interpreted::{InterpreterReader, SinceSample};
use crate::live::maps_interpreter;
use crate::live::readings::LiveReadings;
use crate::queue::message::{InterpretedReading, SampledThread};
use crate::session::frame_limit;
use crate::session::mappings::KnownMappings;
use crate::session::read_budget::ReadBudget;
use crate::session::runtime_finder::{RuntimeFinder, RuntimeKind};
use crate::stack_outcome::InterpretedOutcome;
use functions::{Shown, ShownFunctions};
use placing::{Insertion, fit, insert};

/// Knows the interpreters of processes, and the functions that were seen.
#[derive(Debug)]
pub(crate) struct InterpretedFrames {
    interpreters: RuntimeFinder<Library, Arc<Interpreter>>,
    functions: ShownFunctions,
    budget: Budget,
    /// Where the reading threads find the interpreters.
    readings: Arc<LiveReadings>,
    /// For threads that still wait.
    reader: InterpreterReader,
    /// The records of functions that are still to be written.
    maps: Vec<u8>,
}

impl InterpretedFrames {
    pub(crate) fn new(readings: Arc<LiveReadings>, budget: Budget, reading: ReadBudget) -> Self {
        let kind = RuntimeKind {
            is_named: Library::is_named,
            read: |file, _, most| Library::read(file, most),
            at: |library, start, offset, memory, _| library.at(start, offset, memory).map(Arc::new),
            // Where its data is not mapped yet, a version that publishes its layout is not
            // readable.
            is_final: |interpreter: &Arc<Interpreter>| interpreter.is_readable(),
        };
        Self {
            interpreters: RuntimeFinder::new(kind, budget.clone(), reading),
            functions: ShownFunctions::new(budget.clone()),
            budget,
            reader: InterpreterReader::new(Arc::clone(&readings)),
            readings,
            maps: Vec::new(),
        }
    }

    /// Finds the interpreter of a process as soon as it is mapped or inherited, because all samples
    /// before lack their frames. The record was followed.
    pub(crate) fn follow(&mut self, record: &Record<'_>, mappings: &KnownMappings) {
        match record {
            Record::Fork(task) if task.pid != task.parent_pid && !task.existed => {
                self.functions.inherit(task.parent_pid, task.pid);
            }
            Record::Comm(comm) if comm.exec => self.functions.forget(comm.pid),
            _ => {}
        }
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
        (reading, now): (Option<&InterpretedReading>, u64),
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
        let stack = stack.and_then(|stack| fit(stack, loops, *note));
        let added = stack.map(|(stack, loops, waiting)| {
            let of_loops = loops.iter().enumerate().map(|(number, &at)| {
                let frames = stack.of_activation(number + waiting);
                (at, self.addresses((target.pid, now), language, frames))
            });
            let mut insertions: Vec<Insertion> = of_loops.collect();
            if note.end == StackEnd::Root {
                let others = stack.of_other_stacks();
                let others = self.addresses((target.pid, now), language, others);
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
            let missing = Shown::Missing(language, reason);
            let mark = self.functions.address(target.pid, missing, now);
            insert(&[(innermost, vec![mark])], chain, note);
        }
        Some((language, added))
    }

    /// The addresses that stand for frames.
    fn addresses(
        &mut self,
        (pid, now): (Pid, u64),
        language: InterpretedLanguage,
        frames: &[InterpretedFrame],
    ) -> Vec<u64> {
        let address = |frame: &InterpretedFrame| {
            let function = Shown::Function(language, Arc::clone(&frame.function));
            let base = self.functions.address(pid, function, now);
            InterpretedFunction::address(base, frame.line)
        };
        frames.iter().map(address).collect()
    }

    /// Maps the functions that were first seen with this sample: adds the records that must be
    /// [written](Self::take_maps) before it.
    pub(crate) fn map(&mut self, sample: &Sample<'_>, attr: &Attr) {
        for (address, path) in self.functions.take_new() {
            // The path is short.
            let _ = encode::mmap2(&mut self.maps, attr, &mmap(sample, address, &path));
        }
    }

    /// Passes the records of all functions of a process to `each`.
    pub(crate) fn synthesize(&self, pid: Pid, each: &mut dyn FnMut(&Record<'_>)) {
        for (address, path) in self.functions.all(pid) {
            each(&Record::Mmap(mapping((pid, pid), address, &path)));
        }
    }

    /// The records of functions since the last call.
    pub(crate) fn take_maps(&mut self) -> Option<Vec<u8>> {
        let has_maps = !self.maps.is_empty();
        has_maps.then(|| std::mem::take(&mut self.maps))
    }

    /// The interpreter of a process, if it has one.
    fn interpreter(&mut self, target: &Target<'_>) -> Option<Arc<Interpreter>> {
        let has_looked = self.interpreters.find(target);
        let interpreter = self.interpreters.get(target.pid).map(|it| Arc::clone(it.0));
        if has_looked {
            let readable = interpreter.clone().filter(|it| it.is_readable());
            let account = || self.budget.account(target.pid);
            let known = readable.map(|interpreter| (interpreter, account()));
            self.readings.learn(target.pid, known);
        }
        interpreter
    }

    /// Forgets the functions of a process: the file has them, and gets them again if they are seen
    /// again.
    pub(crate) fn forget_functions(&mut self, pid: Pid) {
        self.functions.forget(pid);
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.functions.forget(pid);
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

/// Who and when, for a record as if it came right before a sample.
pub(super) fn stamp(sample: &Sample<'_>) -> Stamp {
    Stamp {
        pid: Some(sample.pid),
        tid: Some(sample.tid),
        time: sample.time,
        ..Stamp::default()
    }
}

/// The record of a function that is first seen with this sample.
pub(super) fn mmap<'a>(sample: &Sample<'_>, address: u64, path: &'a str) -> Mmap<'a> {
    Mmap {
        stamp: stamp(sample),
        ..mapping((sample.pid, sample.tid), address, path)
    }
}

/// The record of a function of a process.
fn mapping((pid, tid): (Pid, Tid), address: u64, path: &str) -> Mmap<'_> {
    Mmap {
        stamp: Stamp::default(),
        mode: CpuMode::User,
        pid,
        tid,
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
