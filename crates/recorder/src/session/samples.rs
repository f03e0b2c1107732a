//! Samples: unwound, weighed, written.

use prof_events::{AllocationWeight, Weight, system};
use prof_model::{AbsoluteAddress, Mapping, NoPython, Pid, Process, StackEnd, StackNote};
use prof_perfdata::{CpuMode, Record, Sample, Stamp, Switch, WriteError, context, encode, follow};
use prof_unwinder::Target;

use super::{Session, SessionEvent, StackWork};
use crate::offcpu::blocked_threads::BlockedThreadSampler;
use crate::offcpu::tracker::{UnseenWait, WaitSample};
use crate::queue::message::{Content, StackCopy};
use crate::queue::record_queue::BatchEntry;
use crate::session::allocation;
use crate::session::python;
use crate::session::unwind::KnownMappings;
use crate::stack_outcome::{StackOutcome, UnwindStop};

impl Session {
    pub(super) fn sample(
        &mut self,
        sample: &Sample<'_>,
        entry: BatchEntry<'_>,
    ) -> Result<(), WriteError> {
        let Some(event) = self.events.get_mut(sample.event) else {
            return Ok(());
        };
        if let Content::BlockedSample { since } = entry.content {
            self.blocked(sample, since, entry);
            return self.write_python_maps();
        }
        if self.trackers.duplicates.contains(sample.tid, sample.id) {
            return Ok(());
        }
        if sample.tid == 0 && event.weight == Weight::OffCpu {
            // An idle CPU does not wait.
            return Ok(());
        }
        let is_for_samples = matches!(event.weight, Weight::Allocation { .. } | Weight::OffCpu);
        let is_unequal =
            event.periods.is_some() || matches!(event.weight, Weight::Allocation { .. });
        if sample.pid == self.own_pid && is_for_samples {
            // If everything is sampled, each sample of our own work would cause others, and we wait
            // for nothing but samples.
            return Ok(());
        }
        let period = match &mut event.periods {
            Some(periods) => periods.ended(sample.stream_id, sample.period),
            None => sample.period,
        };
        let period = self.trackers.lifetimes.sample(sample, period);
        if let StackWork::Keep(end) = event.stacks {
            self.chain.clear();
            self.chain.push(sample.ip);
            self.chain.extend(sample.callchain);
            self.mark(sample);
            self.statistics.count_sample(StackOutcome::of(end));
            if period == sample.period {
                return self.output.write(entry.bytes);
            }
            self.out.clear();
            self.out.extend_from_slice(entry.bytes);
            if let Some(attr) = self.format.attr(sample.event) {
                attr.set_sample_period(&mut self.out, period);
            }
            return self.output.write(&self.out);
        }
        let weight = event.weight;
        let Some(period) = self.weight(sample, period, weight) else {
            return Ok(());
        };
        let unwound = self.unwind(sample, period, weight, entry);
        self.write_python_maps()?;
        let Some(outcome) = unwound else {
            return Ok(());
        };
        if weight == Weight::OffCpu {
            let time = sample.time.unwrap_or(0);
            let of_wait = WaitSample {
                event: sample.event,
                record: &self.out,
                outcome,
            };
            self.waits.leave(sample.tid, time, of_wait);
            if outcome.python == Some(Err(NoPython::NotRead)) {
                self.feedback.unread_waits += 1;
                self.unread_waits.begin(sample.tid);
            }
            return Ok(());
        }
        self.statistics.count_sample(outcome);
        if is_unequal {
            let weights = &mut self.statistics.quality.weights;
            weights.count(outcome.note.end, period);
        }
        self.output.write(&self.out)
    }

    /// Unwinds a sample and encodes it in `out`; `None` if nothing is to be written.
    pub(super) fn unwind(
        &mut self,
        sample: &Sample<'_>,
        period: u64,
        weight: Weight,
        entry: BatchEntry<'_>,
    ) -> Option<StackOutcome> {
        let known = KnownMappings {
            processes: &self.processes,
            modules: &self.modules,
        };
        let unwound = (self.chain_builder).chain(sample, entry.tail, known, &mut self.chain);
        if weight.is_of_mappings() && self.is_internal(sample.pid) {
            return None;
        }
        self.feedback.unwound += 1;
        self.feedback.deep += u32::from(unwound.note.remote_read > 0);
        // If the dump is not full, the reader can read no more: an early reading changes nothing.
        let changed = StackCopy::full(sample).is_some() && unwound.needed_prompt_wakeup();
        self.feedback.changed += u32::from(changed);
        let mut note = unwound.note;
        let python = self.add_python(sample, entry, &mut note);
        self.mark(sample);
        let stop = self.stop(sample, note.end);
        let outcome = StackOutcome { note, python, stop };
        self.encode(sample, period, note).then_some(outcome)
    }

    /// Adds Python frames to the current chain, and the records that must come before it.
    fn add_python(
        &mut self,
        sample: &Sample<'_>,
        entry: BatchEntry<'_>,
        note: &mut StackNote,
    ) -> Option<Result<(), NoPython>> {
        let process = self.processes.shared(sample.pid)?;
        let target = Target {
            pid: sample.pid,
            process: &process,
            modules: &self.modules,
        };
        let is_blocked = matches!(entry.content, Content::BlockedSample { .. });
        let chain = &mut self.chain;
        let added = self.python.add(&target, entry.python, chain, note)?;
        if !is_blocked && added != Err(NoPython::UnknownVersion) {
            self.feedback.python += 1;
        }
        let SessionEvent { attr, .. } = self.events.first()?;
        for (address, path) in self.python.unmapped(&target, chain) {
            let mmap = python::mmap(sample, address, &path);
            // The path is short.
            let _ = encode::mmap2(&mut self.python_maps, attr, &mmap);
            let record = Record::Mmap(mmap);
            follow(&record, &mut self.processes, &mut self.modules);
        }
        Some(added)
    }

    /// Writes the records of Python functions before the first sample that has them.
    pub(super) fn write_python_maps(&mut self) -> Result<(), WriteError> {
        if self.python_maps.is_empty() {
            return Ok(());
        }
        let result = self.output.write(&self.python_maps);
        self.python_maps.clear();
        result
    }

    /// Encodes a sample with the current chain.
    fn encode(&mut self, sample: &Sample<'_>, period: u64, note: StackNote) -> bool {
        let Some(SessionEvent { attr, .. }) = self.events.get(sample.event) else {
            return false;
        };
        let raw = encode::stack_note(note);
        let unwound = encode::NewSample {
            callchain: &self.chain,
            raw: &raw,
            period,
            ..encode::NewSample::without_stack(sample)
        };
        self.out.clear();
        let encoded = encode::sample(&mut self.out, attr, &unwound);
        if encoded.is_err() {
            // Longer than a record can be, which the unwinder's limit rules out.
            self.statistics.quality.losses.malformed += 1;
        }
        encoded.is_ok()
    }

    /// The weight of a sample by its own data; `None` if it does not count.
    fn weight(&mut self, sample: &Sample<'_>, period: u64, weight: Weight) -> Option<u64> {
        let Weight::Allocation { size, by } = weight else {
            return Some(period);
        };
        let bytes = allocation::bytes(size, &sample.user_registers()?)?;
        match by {
            AllocationWeight::Calls => Some(sample.period),
            AllocationWeight::Bytes { every } => {
                let bytes = bytes.saturating_mul(sample.period);
                self.every_bytes.weight(bytes, every)
            }
        }
    }

    /// Whether the function of the chain was called from its own file: then an allocator maps
    /// memory in order to hand it out, which counts at that time.
    fn is_internal(&self, pid: Pid) -> bool {
        let space = self.processes.get(pid).map(Process::space);
        let mut user = self
            .chain
            .iter()
            .skip_while(|&&at| at != context::USER)
            .skip(1);
        let mut module = || Some(space?.find(AbsoluteAddress(*user.next()?))?.module);
        let (function, caller) = (module(), module());
        function.is_some() && function == caller
    }

    /// Handles the sample of a thread that was blocked since then.
    fn blocked(&mut self, sample: &Sample<'_>, since: u64, entry: BatchEntry<'_>) {
        if !self.waits.is_in_time(sample.tid, since) {
            return;
        }
        // Of a thread that waited before its process was known to run Python.
        let now = match entry.python {
            None => self.read_blocked(sample),
            Some(_) => None,
        };
        let complete = now.as_ref().map_or(0, |_| system::monotonic_now());
        let entry = BatchEntry {
            python: entry.python.or(now.as_ref()),
            ..entry
        };
        if let Some(outcome) = self.unwind(sample, 0, Weight::Blocked, entry) {
            let of_wait = WaitSample {
                event: sample.event,
                record: &self.out,
                outcome,
            };
            self.waits.see(sample.tid, complete, of_wait);
        }
    }

    /// A thread has left its CPU or returned: samples of waits need this, the file does not.
    pub(super) fn switch(&mut self, switch: &Switch) -> Result<(), WriteError> {
        let Stamp { pid, tid, time, .. } = switch.stamp;
        let (Some(pid), Some(tid), Some(time)) = (pid, tid, time) else {
            return Ok(());
        };
        if pid == self.own_pid {
            return Ok(());
        }
        if !switch.out {
            self.unread_waits.end(tid);
        }
        if switch.out {
            match switch.preempted {
                true => {
                    self.waits.preempted(tid, time);
                    let has_begun = self.unread_waits.end(tid);
                    self.feedback.unread_waits -= u32::from(has_begun);
                }
                // If the kernel samples all waits, one without a sample is not counted.
                false if self.blocked_threads().is_none() => {}
                false => self.waits.out((pid, tid), time),
            }
            return Ok(());
        }
        let Some(wait) = self.waits.back(tid, time) else {
            return Ok(());
        };
        self.statistics.count_sample(wait.outcome);
        let sample = wait.sample(|event| Some(&self.events.get(event)?.attr));
        self.output.write(sample)
    }

    /// Writes the waits that continue at the end.
    pub(super) fn end_waits(&mut self) -> Result<(), WriteError> {
        let mut waits = std::mem::take(&mut self.waits);
        let mut written = Ok(());
        let now = system::monotonic_now();
        waits.finish(now, |left| {
            let result = match left {
                Ok(wait) => {
                    self.statistics.count_sample(wait.outcome);
                    let sample = wait.sample(|event| Some(&self.events.get(event)?.attr));
                    self.output.write(sample)
                }
                Err(unseen) => self.unseen(unseen, now),
            };
            if written.is_ok() {
                written = result;
            }
        });
        self.waits = waits;
        written
    }

    /// Writes for how long a thread waited without a known stack, up to `time`.
    pub(super) fn unseen(&mut self, unseen: UnseenWait, time: u64) -> Result<(), WriteError> {
        let Some(SessionEvent { attr, .. }) = self.blocked_threads() else {
            return Ok(());
        };
        let outcome = StackOutcome::of(StackEnd::NotSeen);
        let sample = encode::NewSample {
            mode: CpuMode::User,
            pid: unseen.pid,
            tid: unseen.tid,
            time,
            id: BlockedThreadSampler::ID,
            period: unseen.length,
            callchain: &[context::USER],
            raw: &encode::stack_note(outcome.note),
            ..encode::NewSample::default()
        };
        let mut out = Vec::new();
        // It has a fixed size.
        let _ = encode::sample(&mut out, attr, &sample);
        self.statistics.count_sample(outcome);
        self.output.write(&out)
    }

    /// The event of samples of blocked threads.
    fn blocked_threads(&self) -> Option<&SessionEvent> {
        let mut events = self.events.iter();
        events.find(|event| event.weight == Weight::Blocked)
    }

    /// Marks the modules of a sample's chain, and its time.
    fn mark(&mut self, sample: &Sample<'_>) {
        let statistics = &mut self.statistics;
        if let Some(time) = sample.time {
            let (first, last) = statistics.sample_time.unwrap_or((time, time));
            statistics.sample_time = Some((first.min(time), last.max(time)));
        }
        if let Some(process) = self.processes.get(sample.pid) {
            self.file_pinner.meet(sample.pid, process.generation());
            let (file_pinner, modules) = (&mut self.file_pinner, &self.modules);
            let keep = |mapping: &Mapping| file_pinner.hit(sample.pid, mapping, modules);
            statistics.hits.mark(process.space(), &self.chain, keep);
        }
        statistics.hits.kernel |= sample.mode.is_kernel();
    }

    /// Where the current chain stops, if that is before the root.
    fn stop(&self, sample: &Sample<'_>, end: StackEnd) -> Option<UnwindStop> {
        if end.is_whole() || !end.counts() || end == StackEnd::NotUnwound {
            return None;
        }
        let last = self.chain.last().copied();
        let last = last.filter(|&last| last < context::MAX);
        let address = AbsoluteAddress(last.unwrap_or(sample.ip));
        let process = self.processes.get(sample.pid);
        let mapping = process.and_then(|process| process.space().find(address));
        Some(UnwindStop {
            end,
            module: mapping.map(|mapping| mapping.module),
            offset: mapping.map_or(address.0, |mapping| mapping.file_offset_of(address).0),
        })
    }
}
