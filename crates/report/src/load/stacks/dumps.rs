//! Unwinding of the stack copies that a file may hold, on all cores.
//!
//! ```text
//!   records in order ─▶ sample with a copy: waits ─┐           unwound, many at once
//!                       later samples: wait, too  ─┴─▶ enough ─▶ ▒▒▒▒▒▒▒▒ ─▶ in order again
//! ```
//! What waits keeps its process as it was then, so that processes can be followed meanwhile.

use std::sync::{Arc, Mutex, PoisonError};

use prof_model::{Modules, Process, StackEnd, StackNote};
use prof_perfdata::{HeldRecord, Record, Recording, Sample};
use prof_unwinder::{FrameEngine, Framehop, StackDump, Target, Unwinder, UserState};
use rayon::prelude::*;

use super::chain::Chain;
use super::files::RecordedFiles;
use super::stack_check::Opinion;
use crate::load::events::EventTraits;
use crate::load::{LoadOptions, StackCopies};
use crate::profile::ThreadNameId;

/// Samples that wait, and unwinders with what they learnt of modules.
pub(in crate::load) struct Dumps {
    copies: StackCopies,
    files: RecordedFiles,
    waiting: Vec<Waiting>,
    /// The bytes of all that waits.
    size: usize,
    idle: Mutex<Vec<Engines>>,
}

/// A sample that is to be unwound.
pub(in crate::load) struct Waiting {
    record: HeldRecord,
    pub(in crate::load) context: Context,
}

/// What is remembered of a sample that waits.
pub(in crate::load) struct Context {
    pub(in crate::load) process: Option<Arc<Process>>,
    pub(in crate::load) name: ThreadNameId,
    /// The bytes of its copy.
    pub(in crate::load) copied: usize,
}

/// A sample, its frames, and whether they were unwound just now.
pub(in crate::load) struct Finished<'a> {
    pub(in crate::load) sample: Sample<'a>,
    pub(in crate::load) chain: Chain,
    pub(in crate::load) unwound: bool,
    /// framehop's result, if requested.
    pub(in crate::load) second: Option<SecondOpinion>,
}

/// framehop's answer to a sample.
pub(in crate::load) struct SecondOpinion {
    frames: Vec<u64>,
    end: StackEnd,
}

impl SecondOpinion {
    pub(in crate::load) fn opinion(&self) -> Opinion<'_> {
        Opinion {
            frames: &self.frames,
            end: self.end,
        }
    }
}

/// The unwinder.
struct Engines {
    prof: Unwinder,
    framehop: Option<Framehop>,
    /// framehop's answers are compared, not taken.
    compares: bool,
}

impl Engines {
    fn new(copies: StackCopies, files: &RecordedFiles) -> Self {
        Self {
            prof: Unwinder::new(files.clone()),
            framehop: copies.are_needed().then(|| Framehop::new(files.clone())),
            compares: copies == StackCopies::Check,
        }
    }
}

impl Dumps {
    /// Enough for many cores; few enough that what waits takes little memory.
    const MOST_WAITING: usize = 1 << 14;
    const MOST_BYTES: usize = 64 << 20;
    /// So many are unwound by one thread in one go.
    const CHUNK: usize = 64;

    /// `None` if copies are not to be unwound.
    pub(in crate::load) fn new(options: &LoadOptions) -> Option<Self> {
        let copies = options.stack_copies;
        (copies != StackCopies::Ignore).then(|| Self {
            copies,
            files: RecordedFiles::of(options),
            waiting: Vec::new(),
            size: 0,
            idle: Mutex::default(),
        })
    }

    /// Whether this sample has to wait: it has a copy, or is later than one that has.
    pub(in crate::load) fn delay(&self, sample: &Sample<'_>) -> bool {
        sample.user_stack.is_some() || !self.waiting.is_empty()
    }

    /// Adds a sample; returns whether it is time to unwind.
    pub(in crate::load) fn add(&mut self, record: HeldRecord, context: Context) -> bool {
        self.size += context.copied;
        self.waiting.push(Waiting { record, context });
        self.waiting.len() >= Self::MOST_WAITING || self.size >= Self::MOST_BYTES
    }

    /// Takes the waiting samples, in order.
    pub(in crate::load) fn take(&mut self) -> Vec<Waiting> {
        self.size = 0;
        std::mem::take(&mut self.waiting)
    }

    /// Unwinds these, in their order.
    pub(in crate::load) fn unwind<'a>(
        &self,
        waiting: &[Waiting],
        recording: &'a Recording,
        traits: &EventTraits,
        modules: &Modules,
    ) -> impl Iterator<Item = Option<Finished<'a>>> + use<'a> {
        let chunks = waiting.par_chunks(Self::CHUNK).map(|chunk| {
            let idle = self.idle().pop();
            let mut engines = idle.unwrap_or_else(|| Engines::new(self.copies, &self.files));
            let mut scratch = Chain::default();
            let finish = |waiting: &Waiting| {
                let Record::Sample(sample) = recording.held(&waiting.record) else {
                    return None;
                };
                scratch.read(&sample, traits.of(sample.event));
                let process = waiting.context.process.as_deref();
                let (unwound, second) =
                    unwind(&mut engines, &sample, process, modules, &mut scratch);
                Some(Finished {
                    sample,
                    chain: scratch.clone(),
                    unwound,
                    second,
                })
            };
            let finished: Vec<_> = chunk.iter().map(finish).collect();
            self.idle().push(engines);
            finished
        });
        let chunks: Vec<_> = chunks.collect();
        chunks.into_iter().flatten()
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<Engines>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Waiting {
    pub(in crate::load) fn release(self, recording: &mut Recording) {
        recording.release(self.record);
    }
}

/// Puts the unwound user stack of `sample` into `chain`, if there is a copy to unwind; otherwise
/// leaves the chain alone and returns false. With it comes framehop's answer, if that is compared.
fn unwind(
    engines: &mut Engines,
    sample: &Sample<'_>,
    process: Option<&Process>,
    modules: &Modules,
    chain: &mut Chain,
) -> (bool, Option<SecondOpinion>) {
    let Some(stack) = sample.user_stack else {
        return (false, None);
    };
    let saved = sample.user_registers();
    let at_sample = sample.interrupt_registers();
    let in_kernel = sample.mode.is_kernel();
    let entry = engines
        .prof
        .entry(saved.as_ref(), at_sample.as_ref(), in_kernel);
    let (Some(saved), Some(registers)) = (saved, entry.registers(saved)) else {
        chain.note = StackNote::new(StackEnd::NoUserState);
        return (true, None);
    };
    let Some(start) = saved.stack_pointer() else {
        return (false, None);
    };
    let unknown = Process::default();
    let process = process.unwrap_or(&unknown);
    let target = Target {
        pid: sample.pid,
        process,
        modules,
    };
    let user = UserState {
        registers: &registers,
        dump: StackDump {
            start,
            bytes: stack.bytes,
            full: stack.is_full(),
        },
    };
    chain.user.clear();
    let unwound = match &mut engines.framehop {
        Some(framehop) if !engines.compares => {
            framehop.unwind_dump(&target, &user, &mut chain.user)
        }
        _ => (engines.prof).unwind_dump(&target, &user, &mut chain.user),
    };
    let compared = engines.framehop.as_mut().filter(|_| engines.compares);
    let second = compared.map(|framehop| {
        let mut frames = Vec::new();
        let end = framehop.unwind_dump(&target, &user, &mut frames).end;
        SecondOpinion { frames, end }
    });
    chain.note = entry.finish(unwound, chain.kernel.len(), sample.ip, &mut chain.user);
    (true, second.filter(|second| second.end.counts()))
}
