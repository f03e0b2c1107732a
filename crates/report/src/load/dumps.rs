//! Unwinding of the stack copies that a file may hold.

use prof_model::{Modules, Processes, StackEnd};
use prof_perfdata::{Sample, StackNote};
use prof_unwinder::{NoMemory, StackDump, Target, Unwinder};

use super::chain::Chain;
use super::files::RecordedFiles;

/// The unwinder with what it learnt of modules.
pub(super) struct Dumps {
    unwinder: Unwinder,
}

impl Default for Dumps {
    fn default() -> Self {
        Self {
            unwinder: Unwinder::new(RecordedFiles),
        }
    }
}

impl Dumps {
    /// Puts the unwound user stack of `sample` into `chain`, if there is a copy to unwind;
    /// otherwise leaves the chain alone and returns false.
    pub(super) fn unwind(
        &mut self,
        sample: &Sample<'_>,
        processes: &Processes,
        modules: &Modules,
        chain: &mut Chain,
    ) -> bool {
        let Some(stack) = sample.user_stack else {
            return false;
        };
        let saved = sample.user_registers();
        let at_sample = sample.interrupt_registers();
        let in_kernel = sample.mode.is_kernel();
        let entry = self
            .unwinder
            .entry(saved.as_ref(), at_sample.as_ref(), in_kernel);
        let (Some(saved), Some(registers)) = (saved, entry.registers(saved)) else {
            chain.note = StackNote::new(StackEnd::NoUserState);
            return true;
        };
        let Some(start) = saved.stack_pointer() else {
            return false;
        };
        let Some(process) = processes.get(sample.pid) else {
            return false;
        };
        let target = Target {
            pid: sample.pid,
            process,
            modules,
        };
        let dump = StackDump {
            start,
            bytes: stack.bytes,
            full: stack.is_full(),
        };
        chain.user.clear();
        let frames = &mut chain.user;
        let unwound = self
            .unwinder
            .unwind(&target, &registers, &dump, &mut NoMemory, frames);
        chain.note = StackNote {
            end: entry.end(unwound.end, chain.kernel.len()),
            remote_read: unwound.remote_read,
            elided: unwound.elided,
            elided_at: unwound.elided_at,
        };
        true
    }
}
