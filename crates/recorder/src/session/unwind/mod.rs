//! One sample's call chain: the kernel's part unchanged, the user's unwound.

mod deep_threads;
mod jit_runtimes;
mod module_files;
mod sample_memory;
mod stack_snapshot;
mod tail_change;

use std::collections::HashMap;

use prof_model::{Budget, MissingMemory, Pid, Process, StackEnd, StackNote, Tid, UserRegisters};
use prof_perfdata::{Sample, context};
use prof_runtimes::SyntheticCode;
use prof_unwinder::{StackDump, Target, Unwinder, UserState};

use crate::live_names::LiveNames;
use crate::queue::message::StackTail;
use crate::session::mappings::KnownMappings;
use crate::session::read_budget::ReadBudget;
use crate::session::unwind::deep_threads::{DeepThread, DeepThreads};
use crate::session::unwind::jit_runtimes::{JitNames, JitRuntime, JitRuntimes, jit_runtimes};
use crate::session::unwind::module_files::LiveFiles;
use crate::session::unwind::sample_memory::SampleMemory;
use crate::session::unwind::stack_snapshot::{SampledStack, StackSnapshot};
use crate::session::unwind::tail_change::{AcceptedStacks, Departure};

/// Unwinds samples into call chains.
pub(crate) struct ChainBuilder {
    users: UserUnwinder,
    /// For samples of unknown processes.
    unknown: Process,
    dropped_names: Vec<Pid>,
    /// Whether to unwind at all. Otherwise chains have only the innermost frame of the user's part.
    pub(crate) unwinds: bool,
}

/// Unwinds the user's part of stacks.
struct UserUnwinder {
    unwinder: Unwinder,
    threads: DeepThreads,
    runtimes: JitRuntimes,
    jit_names: JitNames,
    /// Where names are needed while recording.
    live_names: Option<LiveNames>,
    /// The kernel's own chain of the sample's user stack.
    kernel_callchain: Vec<u64>,
    /// What could not be read of the last stack.
    missing: MissingMemory,
}

/// How the user's part of a chain was unwound.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChainOutcome {
    pub(crate) note: StackNote,
    /// Whether the tail of the stack differed from that of the thread's sample before.
    tail_changed: bool,
    /// Whether it continued on another stack, which was read from the target just now.
    pub(crate) is_on_other_stack: bool,
    /// Whether it has addresses of `SyntheticCode`.
    pub(crate) has_synthetic_code: bool,
    /// The earlier stacks of the thread that are in doubt now.
    pub(crate) doubted: Option<AcceptedStacks>,
}

/// The user stack that came with a sample.
struct UserStack<'a> {
    tid: Tid,
    time: u64,
    dump: StackDump<'a>,
    /// The tail that a watcher or the reader read.
    tail: Option<(StackTail, &'a [u8])>,
}

impl<'a> UserStack<'a> {
    fn sampled(&self) -> SampledStack<'a> {
        SampledStack {
            start: self.dump.start,
            dump: self.dump.bytes,
            tail: self.tail,
        }
    }
}

impl ChainBuilder {
    /// A builder that keeps unwind tables in this many bytes of memory, if that is limited, and
    /// then no stacks: copying each would be the largest cost.
    pub(crate) fn new(
        memory: Option<usize>,
        live_names: Option<LiveNames>,
        budget: &Budget,
        reading: ReadBudget,
    ) -> Self {
        let unwinder = Unwinder::new(LiveFiles::new(reading.clone()));
        Self {
            users: UserUnwinder {
                unwinder: match memory {
                    Some(bytes) => unwinder.with_table_limit(bytes / 4 * 3),
                    None => unwinder,
                },
                threads: DeepThreads::new(match memory {
                    Some(_) => 0,
                    None => DeepThreads::USUAL_BYTES,
                }),
                runtimes: jit_runtimes(budget.clone(), reading),
                jit_names: JitNames::new(budget.clone()),
                live_names,
                kernel_callchain: Vec::new(),
                missing: MissingMemory::NONE,
            },
            unknown: Process::default(),
            dropped_names: Vec::new(),
            unwinds: true,
        }
    }

    /// Forgets the stacks of a thread that has ended, whose number may be used again, or that runs
    /// another program now.
    pub(crate) fn forget_thread(&mut self, tid: Tid) {
        self.users.threads.forget(tid);
    }

    /// Forgets a process that has ended.
    pub(crate) fn forget(&mut self, pid: Pid) {
        if let Some(runtime) = self.users.runtimes.take(pid) {
            self.users.jit_names.add(pid, runtime);
            self.dropped_names.extend(self.users.jit_names.shrink());
        }
    }

    /// The processes that have ended and whose names were dropped since the last call.
    pub(crate) fn take_dropped_names(&mut self) -> Vec<Pid> {
        std::mem::take(&mut self.dropped_names)
    }

    /// Forgets the names that are kept of a process.
    pub(crate) fn forget_names(&mut self, pid: Pid) {
        jit_runtimes::forget_names(&mut self.users.runtimes, pid);
    }

    /// The names of the code that runtimes have compiled or interpreted, as perf maps.
    pub(crate) fn take_perf_maps(&mut self) -> HashMap<Pid, String> {
        for (pid, runtime) in self.users.runtimes.take_all() {
            self.users.jit_names.add(pid, runtime);
        }
        self.users.jit_names.take_maps()
    }

    /// Replaces `chain` by that of the sample.
    pub(crate) fn chain(
        &mut self,
        sample: &Sample<'_>,
        tail: Option<(StackTail, &[u8])>,
        known: &KnownMappings,
        chain: &mut Vec<u64>,
    ) -> ChainOutcome {
        let kernel_frames = self.users.split(sample, chain);
        let in_kernel = sample.mode.is_kernel();
        let saved = sample.user_registers();
        let at_sample = sample.interrupt_registers();
        let entry = (self.users.unwinder).entry(saved.as_ref(), at_sample.as_ref(), in_kernel);
        let target = Target {
            pid: sample.pid,
            process: (known.processes.get(sample.pid)).unwrap_or(&self.unknown),
            modules: &known.modules,
        };
        let Some(registers) = entry.registers(saved) else {
            return ChainOutcome::without_tail(StackNote::new(StackEnd::NoUserState));
        };
        chain.push(context::USER);
        if !self.unwinds {
            chain.extend(registers.instruction_pointer());
            return ChainOutcome::without_tail(StackNote::new(StackEnd::NotUnwound));
        }
        let stack = UserStack {
            tid: sample.tid,
            time: sample.time.unwrap_or(0),
            dump: dump(sample, saved.as_ref()),
            tail,
        };
        let unwound = self.users.unwind(&target, &registers, &stack, chain);
        let note = StackNote {
            missing: self.users.missing,
            ..entry.finish(unwound.note, kernel_frames, sample.ip, chain)
        };
        if chain.last() == Some(&context::USER) {
            chain.pop();
        }
        let runtime = self.users.runtimes.get(sample.pid);
        if let Some((runtime, _)) = &runtime {
            runtime.move_replacing(chain);
            if let Some(live) = &self.users.live_names {
                live.write(sample.pid, stack.time, |map| runtime.write_perf_map(map));
            }
        }
        let is_synthetic = |address: &u64| SyntheticCode::contains(*address);
        ChainOutcome {
            note,
            has_synthetic_code: runtime.is_some() && chain.iter().any(is_synthetic),
            ..unwound
        }
    }
}

impl ChainOutcome {
    /// That of a stack whose tail was not read, or did not change.
    fn without_tail(note: StackNote) -> Self {
        Self {
            note,
            tail_changed: false,
            is_on_other_stack: false,
            has_synthetic_code: false,
            doubted: None,
        }
    }

    /// Whether the stack needed an early reading: it was deeper than its dump, and the tail had
    /// changed since the sample before.
    pub(crate) fn needed_prompt_wakeup(self) -> bool {
        match self.note.end {
            StackEnd::TruncatedDump | StackEnd::UnreadableMemory | StackEnd::Stale => true,
            // A dump of another moment is always incomplete.
            StackEnd::StaleRegisters => false,
            _ => self.tail_changed,
        }
    }
}

impl UserUnwinder {
    /// Replaces `chain` by the kernel's part of the kernel's chain, and stores the user's part.
    /// Returns the number of kernel frames.
    fn split(&mut self, sample: &Sample<'_>, chain: &mut Vec<u64>) -> usize {
        let mut entries = sample.callchain;
        chain.clear();
        chain.extend(entries.by_ref().take_while(|&entry| entry != context::USER));
        self.kernel_callchain.clear();
        self.kernel_callchain.extend(entries);
        chain.iter().filter(|&&entry| entry < context::MAX).count()
    }

    /// Appends the frames of a user stack to `chain`.
    fn unwind(
        &mut self,
        target: &Target<'_>,
        registers: &UserRegisters,
        stack: &UserStack<'_>,
        chain: &mut Vec<u64>,
    ) -> ChainOutcome {
        let now = stack.sampled();
        let earlier = self.threads.get(stack.tid).map(|it| &it.snapshot);
        let kernel_part = chain.len();
        let mut memory = SampleMemory::new(
            (target.pid, stack.tid),
            now,
            earlier,
            &self.kernel_callchain,
        )
        .with_runtime(JitRuntime::of(&mut self.runtimes, target, stack.time));
        let unwound = (self.unwinder).unwind(
            target,
            &UserState {
                registers,
                dump: stack.dump,
            },
            &mut memory,
            chain,
        );
        self.missing = memory.missing();
        let (departure, has_recalled) = (memory.departure(), memory.has_recalled());
        let is_on_other_stack = matches!(departure, Departure::Elsewhere(_));
        let first_of_tail = chain.len().saturating_sub(unwound.remote_read.into());
        // Only the frames of the tail matter: a stack holds variables, too.
        let tail_frames = chain.get(first_of_tail..).unwrap_or_default();
        let is_whole = unwound.end.is_whole();
        let contradicts = |it: &StackSnapshot| now.joins_like(it) && !it.ends_in(tail_frames);
        let is_comparable = is_whole && unwound.elided == 0 && now.joins();
        let contradicts_snapshot = is_comparable && earlier.is_some_and(contradicts);
        let thread = match tail_frames.is_empty() {
            true => self.threads.get(stack.tid),
            false => Some(self.threads.entry(stack.tid)),
        };
        let Some(DeepThread { tail_change, .. }) = thread else {
            return ChainOutcome {
                is_on_other_stack,
                ..ChainOutcome::without_tail(unwound)
            };
        };
        let doubted = tail_change.set_ambiguous(contradicts_snapshot);
        let outcome = ChainOutcome {
            tail_changed: tail_change.changes(tail_frames),
            is_on_other_stack,
            doubted,
            ..ChainOutcome::without_tail(unwound)
        };
        let is_proven = departure == Departure::Joined && now.is_prompt() && !has_recalled;
        let function = first_of_tail.checked_sub(1);
        let function = function.and_then(|at| chain.get(at).copied());
        let whole = is_whole.then_some(tail_frames);
        let may_differ = !is_proven && tail_change.may_differ(departure, function, whole);
        if unwound.remote_read == 0 {
            return outcome;
        }
        if may_differ {
            chain.truncate(first_of_tail);
            let note = StackNote::new(match departure {
                Departure::Joined => StackEnd::Stale,
                _ => StackEnd::OtherStack,
            });
            return ChainOutcome { note, ..outcome };
        }
        tail_change.accept(stack.time, is_whole, is_proven);
        // A tail that was read when the overlap had changed is of another moment.
        if stack.tail.is_some() && is_whole && now.joins() && !has_recalled {
            let frames = match unwound.elided {
                0 => chain.get(kernel_part..).unwrap_or_default(),
                _ => &[],
            };
            self.threads.remember(stack.tid, &now, frames);
        }
        outcome
    }
}

/// The dump of the stack, which the kernel took from the address in the `saved` registers.
fn dump<'a>(sample: &Sample<'a>, saved: Option<&UserRegisters>) -> StackDump<'a> {
    let stack = sample.user_stack.as_ref();
    StackDump {
        start: saved.and_then(|saved| saved.stack_pointer()).unwrap_or(0),
        bytes: stack.map_or(&[], |stack| stack.bytes),
        full: stack.is_some_and(|stack| stack.is_full()),
    }
}
