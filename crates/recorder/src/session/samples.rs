//! Samples: unwound, weighed, written.

use prof_events::{AllocationWeight, Weight};
use prof_model::{AbsoluteAddress, Pid, Process};
use prof_perfdata::{Sample, StackNote, Switch, WriteError, context, encode};

use super::{Session, SessionEvent, StackWork};
use crate::backlog::Batch;
use crate::{allocation, layout};

impl Session {
    pub(super) fn sample(
        &mut self,
        sample: &Sample<'_>,
        bytes: &[u8],
        batch: &Batch,
        index: usize,
    ) -> Result<(), WriteError> {
        if self.duplicates.contains(sample.tid, sample.id) {
            return Ok(());
        }
        let Some(event) = self.events.get(sample.event) else {
            return Ok(());
        };
        if sample.tid == 0 && event.weight == Weight::OffCpu {
            // A CPU that has something to do again does not wait.
            return Ok(());
        }
        let period = self.lifetimes.sample(sample);
        if let StackWork::Keep(end) = event.stacks {
            self.chain.clear();
            self.chain.push(sample.ip);
            self.chain.extend(sample.callchain);
            self.note(sample, StackNote::new(end), false);
            self.tally.quality.samples += 1;
            self.since_round += bytes.len();
            if period == sample.period {
                return self.writer.write(bytes);
            }
            self.out.clear();
            self.out.extend_from_slice(bytes);
            layout::set_period(&mut self.out, period);
            return self.writer.write(&self.out);
        }
        let weight = event.weight;
        let Some(period) = self.weight(sample, period, weight) else {
            return Ok(());
        };
        let beyond = batch.beyond(index);
        let (processes, modules) = (&self.processes, &self.modules);
        let note = (self.chain_maker).chain(sample, beyond, processes, modules, &mut self.chain);
        if weight.is_of_mappings() && self.is_internal(sample.pid) {
            return Ok(());
        }
        self.note(sample, note, true);
        let Some(SessionEvent { attr, .. }) = self.events.get(sample.event) else {
            return Ok(());
        };
        let raw = note.to_raw();
        let unwound = encode::NewSample {
            callchain: &self.chain,
            raw: &raw,
            period,
            ..encode::NewSample::without_stack(sample)
        };
        self.out.clear();
        if encode::sample(&mut self.out, attr, &unwound).is_err() {
            // Longer than a record can be, which the unwinder's limit rules out.
            self.tally.quality.losses.malformed += 1;
            return Ok(());
        }
        if weight == Weight::OffCpu {
            let time = sample.time.unwrap_or(0);
            self.waits.leave(sample.tid, time, &self.out);
            return Ok(());
        }
        self.tally.quality.samples += 1;
        self.since_round += self.out.len();
        self.writer.write(&self.out)
    }

    /// What a sample weighs as far as it says itself; `None` if it does not count.
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

    /// Whether the function of the chain was called from its own file: memory that an allocator
    /// maps in order to hand it out, which counts then.
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

    /// A thread has left its CPU or is back: samples of waits need to know, the file does not.
    pub(super) fn switch(&mut self, switch: &Switch) -> Result<(), WriteError> {
        let (Some(tid), Some(time)) = (switch.stamp.tid, switch.stamp.time) else {
            return Ok(());
        };
        if switch.out {
            if switch.preempted {
                self.waits.preempted(tid);
            }
            return Ok(());
        }
        let Some(sample) = self.waits.back(tid, time) else {
            return Ok(());
        };
        self.tally.quality.samples += 1;
        self.since_round += sample.len();
        self.writer.write(sample)?;
        sample.clear();
        Ok(())
    }
}
