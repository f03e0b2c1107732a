//! Samples: unwound, weighed, written.

use prof_events::Weight;
use prof_model::{AbsoluteAddress, AmbiguousThread, Mapping, MissingFrames, StackEnd, StackNote};
use prof_perfdata::{Mmap, Record, Sample, WriteError, context, encode};
use prof_runtimes::SyntheticCode;
use prof_unwinder::Target;

use super::Session;
use super::events::StackWork;
use super::{frame_limit, interpreted};
use crate::offcpu::tracker::WaitSample;
use crate::queue::batch::BatchEntry;
use crate::queue::message::{Content, StackCopy};
use crate::session::unwind::ChainOutcome;
use crate::stack_outcome::{InterpretedOutcome, StackOutcome};

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
            return self.write_maps();
        }
        if self.trackers.duplicates.contains(sample.tid, sample.id)
            || event.ignores(sample, self.own_pid)
            || event.weight == Weight::OffCpu && self.waits.tracker.has_ended(sample.tid)
        {
            return Ok(());
        }
        let period = event.period(sample);
        let (weight, is_unequal) = (event.weight, event.is_unequal());
        let period = self.trackers.lifetimes.sample(sample, period);
        if let StackWork::Keep(end) = event.stacks {
            return self.retain_sample(sample, period, end, entry.bytes);
        }
        let Some(period) = self.events.weight(sample, period) else {
            return Ok(());
        };
        let unwound = self.unwind(sample, period, weight, entry);
        self.write_maps()?;
        if let Some(greediest) = self.budget.greediest() {
            self.interpreted.forget_functions(greediest);
            self.chain_builder.forget_names(greediest);
        }
        let Some(outcome) = unwound else {
            return Ok(());
        };
        if weight == Weight::OffCpu {
            let time = sample.time.unwrap_or(0);
            let of_wait = WaitSample {
                event: sample.event,
                record: self.encoder.record(),
                outcome,
            };
            let is_unread = self.waits.leave(sample.tid, time, of_wait);
            self.feedback.unread_waits += u32::from(is_unread);
            return Ok(());
        }
        self.statistics.count_sample(outcome);
        if is_unequal {
            let weights = &mut self.statistics.quality.weights;
            weights.count(outcome.note.end, period);
        }
        self.output.write(self.encoder.record())
    }

    /// Writes a sample whose stack stays as the kernel made it.
    fn retain_sample(
        &mut self,
        sample: &Sample<'_>,
        period: u64,
        end: StackEnd,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        self.encoder.retain_chain(sample);
        self.mark(sample);
        self.statistics.count_sample(StackOutcome::of(end));
        if period == sample.period {
            return self.output.write(bytes);
        }
        let attr = self.events.format.attr(sample.event);
        let record = self.encoder.with_period(bytes, attr, period);
        self.output.write(record)
    }

    /// Unwinds a sample and encodes it; `None` if nothing is to be written.
    pub(super) fn unwind(
        &mut self,
        sample: &Sample<'_>,
        period: u64,
        weight: Weight,
        entry: BatchEntry<'_>,
    ) -> Option<StackOutcome> {
        let unwound = self.chain(sample, entry);
        if weight.is_of_mappings() && self.mappings.is_internal(sample.pid, &self.encoder.chain) {
            return None;
        }
        self.feedback.unwound += 1;
        self.feedback.deep += u32::from(unwound.note.remote_read > 0);
        self.feedback.other_stacks += u32::from(unwound.is_on_other_stack);
        // If the dump is not full, the reader can read no more: an early reading changes nothing.
        let changed = StackCopy::full(sample).is_some() && unwound.needed_prompt_wakeup();
        self.feedback.changed += u32::from(changed);
        if let Some(doubted) = unwound.doubted {
            let thread = AmbiguousThread {
                tid: sample.tid,
                from: doubted.from,
                to: sample.time.unwrap_or(0),
            };
            self.statistics.count_ambiguous(thread, doubted.count);
        }
        let mut note = unwound.note;
        if unwound.has_synthetic_code {
            self.map_synthetic_code(sample);
        }
        let interpreted = self.add_interpreted(sample, entry, &mut note);
        frame_limit::leave_out_middle(&mut self.encoder.chain, &mut note);
        self.mark(sample);
        let stop = (self.mappings).stop(sample, &self.encoder.chain, note.end);
        let attr = self.events.attr(sample.event)?;
        if self.encoder.encode(sample, attr, period, note).is_err() {
            // Longer than a record can be, which the limit rules out.
            self.statistics.quality.losses.malformed += 1;
            return None;
        }
        Some(StackOutcome {
            note,
            interpreted,
            stop,
        })
    }

    /// Unwinds a sample into the current chain; again if that has shown where code of a file is.
    fn chain(&mut self, sample: &Sample<'_>, entry: BatchEntry<'_>) -> ChainOutcome {
        loop {
            let chain = &mut self.encoder.chain;
            let unwound = (self.chain_builder).chain(sample, entry.tail, &self.mappings, chain);
            if !self.map_moved_code(sample) {
                return unwound;
            }
        }
    }

    /// Maps the code of a file that has moved to the current chain's innermost or outermost
    /// address. Returns whether that is new.
    fn map_moved_code(&mut self, sample: &Sample<'_>) -> bool {
        let chain = &self.encoder.chain;
        let user = chain.iter().position(|&entry| entry == context::USER);
        let user = user.and_then(|user| chain.get(user + 1..));
        let user = user.unwrap_or_default();
        let ends = [user.first(), user.last()].into_iter().flatten().copied();
        let Some((target, attr)) = (self.mappings.target(sample.pid)).zip(self.events.first_attr())
        else {
            return false;
        };
        let Some(moved) = self.moved_code.find(&target, ends) else {
            return false;
        };
        let mmap = moved.record(sample);
        // The path is that of a mapping.
        let _ = encode::mmap2(&mut self.found_maps, attr, &mmap);
        self.mappings.follow(&Record::Mmap(mmap));
        true
    }

    /// Adds interpreted frames to the current chain, and the records that must come before it.
    fn add_interpreted(
        &mut self,
        sample: &Sample<'_>,
        entry: BatchEntry<'_>,
        note: &mut StackNote,
    ) -> Option<InterpretedOutcome> {
        let process = self.mappings.processes.shared(sample.pid)?;
        let target = Target {
            pid: sample.pid,
            process: &process,
            modules: &self.mappings.modules,
        };
        let is_blocked = matches!(entry.content, Content::BlockedSample { .. });
        let chain = &mut self.encoder.chain;
        let read = (entry.interpreted, sample.time.unwrap_or(0));
        let added = self.interpreted.add(&target, read, chain, note)?;
        if !is_blocked && added.1 != Err(MissingFrames::UnknownVersion) {
            self.feedback.interpreted += 1;
        }
        let attr = self.events.first_attr()?;
        self.interpreted.map(sample, attr);
        Some(added)
    }

    /// Maps the addresses that represent functions of a runtime, unless the process has them.
    fn map_synthetic_code(&mut self, sample: &Sample<'_>) {
        let Some((target, attr)) = (self.mappings.target(sample.pid)).zip(self.events.first_attr())
        else {
            return;
        };
        let start = SyntheticCode::START;
        if target
            .process
            .space()
            .find(AbsoluteAddress(start))
            .is_some()
        {
            return;
        }
        let mmap = Mmap {
            length: SyntheticCode::LENGTH,
            ..interpreted::mmap(sample, start, "//anon")
        };
        // The path is short.
        let _ = encode::mmap2(&mut self.found_maps, attr, &mmap);
        self.mappings.follow(&Record::Mmap(mmap));
    }

    /// Writes the records of interpreted functions, of `SyntheticCode` and of code that has moved,
    /// before the first sample that has them.
    pub(super) fn write_maps(&mut self) -> Result<(), WriteError> {
        let found = std::mem::take(&mut self.found_maps);
        let interpreted = self.interpreted.take_maps().unwrap_or_default();
        for maps in [interpreted, found] {
            if !maps.is_empty() {
                self.output.write(&maps)?;
            }
        }
        Ok(())
    }

    /// Marks the modules of a sample's chain, and its time.
    fn mark(&mut self, sample: &Sample<'_>) {
        self.statistics.count_time(sample);
        let hits = &mut self.statistics.hits;
        if let Some(process) = self.mappings.processes.get(sample.pid) {
            self.file_pinner.meet(sample.pid, process.generation());
            let (file_pinner, modules) = (&mut self.file_pinner, &self.mappings.modules);
            let keep = |mapping: &Mapping| file_pinner.hit(sample.pid, mapping, modules);
            hits.mark(process.space(), &self.encoder.chain, keep);
        }
        hits.kernel |= sample.mode.is_kernel();
    }
}
