//! Waits: begun, seen and written.

use prof_events::{Weight, system};
use prof_model::{MissingFrames, Pid, StackEnd, Tid};
use prof_perfdata::{CpuMode, Sample, Stamp, Switch, WriteError, context, encode};

use super::Session;
use super::interpreted::late::UnreadWaits;
use crate::offcpu::blocked_threads::BlockedThreadSampler;
use crate::offcpu::tracker::{OffCpuTracker, UnseenWait, WaitSample};
use crate::queue::batch::BatchEntry;
use crate::queue::message::{Message, MessageKind};
use crate::stack_outcome::StackOutcome;

/// The waits of threads, and those of them that lack their interpreted functions.
#[derive(Debug, Default)]
pub(super) struct SessionWaits {
    pub(super) tracker: OffCpuTracker,
    pub(super) unread: UnreadWaits,
}

impl SessionWaits {
    /// A thread leaves its CPU, and this is the kernel's sample of that. Returns whether its
    /// interpreted functions are still to be read.
    pub(super) fn leave(&mut self, tid: Tid, time: u64, sample: WaitSample<'_>) -> bool {
        let interpreted = sample.outcome.interpreted;
        let is_unread = interpreted.is_some_and(|(_, it)| it == Err(MissingFrames::NotRead));
        self.tracker.leave(tid, time, sample);
        if is_unread {
            self.unread.begin(tid);
        }
        is_unread
    }

    /// The thread that has just left was preempted. Returns whether its interpreted functions were
    /// to be read.
    fn preempted(&mut self, tid: Tid, time: u64) -> bool {
        self.tracker.preempted(tid, time);
        self.unread.end(tid)
    }

    /// The thread has ended.
    pub(super) fn forget(&mut self, tid: Tid) -> Option<UnseenWait> {
        self.unread.end(tid);
        self.tracker.forget(tid)
    }

    /// Handles a message: only samples of waits need it, the file does not.
    pub(super) fn message(&mut self, message: Message, own_pid: Pid) {
        let time = message.time;
        match message.what {
            MessageKind::Enabled => self.tracker.enable(time),
            MessageKind::Disabled => self.tracker.disable(time),
            MessageKind::Blocked(pid, _) if pid == own_pid => {}
            MessageKind::Blocked(pid, tid) => self.tracker.out((pid, tid), time),
        }
    }
}

impl Session {
    /// Handles the sample of a thread that was blocked since then.
    pub(super) fn blocked(&mut self, sample: &Sample<'_>, since: u64, entry: BatchEntry<'_>) {
        if !self.waits.tracker.is_in_time(sample.tid, since) {
            return;
        }
        // Of a thread that waited before its process was known to run an interpreter.
        let now = match entry.interpreted {
            None => self.read_blocked(sample),
            Some(_) => None,
        };
        let complete = now.as_ref().map_or(0, |_| system::monotonic_now());
        let entry = BatchEntry {
            interpreted: entry.interpreted.or(now.as_ref()),
            ..entry
        };
        if let Some(outcome) = self.unwind(sample, 0, Weight::Blocked, entry) {
            let of_wait = WaitSample {
                event: sample.event,
                record: self.encoder.record(),
                outcome,
            };
            self.waits.tracker.see(sample.tid, complete, of_wait);
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
        if switch.out {
            let is_sampled_by_kernel = self.events.blocked_threads().is_none();
            match switch.preempted {
                // With a cgroup, switches of all other threads are reported, too.
                true if is_sampled_by_kernel && !self.waits.tracker.has_left(tid) => {}
                true => {
                    let was_unread = self.waits.preempted(tid, time);
                    self.feedback.unread_waits -= u32::from(was_unread);
                }
                // If the kernel samples all waits, one without a sample is not counted.
                false if is_sampled_by_kernel => {}
                false => self.waits.tracker.out((pid, tid), time),
            }
            return Ok(());
        }
        self.waits.unread.end(tid);
        let Some(wait) = self.waits.tracker.back(tid, time) else {
            return Ok(());
        };
        self.statistics.count_sample(wait.outcome);
        let sample = wait.sample(|event| self.events.attr(event));
        self.output.write(sample)
    }

    /// Writes the waits that continue at the end.
    pub(super) fn end_waits(&mut self) -> Result<(), WriteError> {
        let mut tracker = std::mem::take(&mut self.waits.tracker);
        let mut written = Ok(());
        let now = system::monotonic_now();
        tracker.finish(now, |left| {
            let result = match left {
                Ok(wait) => {
                    self.statistics.count_sample(wait.outcome);
                    let sample = wait.sample(|event| self.events.attr(event));
                    self.output.write(sample)
                }
                Err(unseen) => self.unseen(unseen, now),
            };
            if written.is_ok() {
                written = result;
            }
        });
        self.waits.tracker = tracker;
        written
    }

    /// Writes for how long a thread waited without a known stack, up to `time`.
    pub(super) fn unseen(&mut self, unseen: UnseenWait, time: u64) -> Result<(), WriteError> {
        let Some(attr) = self.events.blocked_threads() else {
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
}
