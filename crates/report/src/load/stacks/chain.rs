//! A sample's call chain, sorted into kernel and user frames.

use prof_model::{AbsoluteAddress, FrameAddress, StackEnd, StackNote};
use prof_perfdata::{Branches, CpuMode, Sample, context};

use crate::load::events::Traits;

/// The frames of one sample as lookup addresses, innermost first. Reused from sample to sample.
#[derive(Clone, Debug)]
pub(in crate::load) struct Chain {
    pub(in crate::load) kernel: Vec<u64>,
    pub(in crate::load) user: Vec<u64>,
    /// How the user part ended.
    pub(in crate::load) note: StackNote,
}

impl Default for Chain {
    fn default() -> Self {
        Self {
            kernel: Vec::new(),
            user: Vec::new(),
            note: StackNote::new(StackEnd::NotRecorded),
        }
    }
}

impl Chain {
    /// Takes the chain of `sample`, whose event has these traits.
    pub(in crate::load) fn read(&mut self, sample: &Sample<'_>, traits: Traits) {
        self.kernel.clear();
        self.user.clear();
        let ours = sample.stack_note();
        let mut mode = sample.mode;
        for entry in sample.callchain {
            if entry >= context::MAX {
                mode = mode_of(entry);
                continue;
            }
            match mode {
                CpuMode::Kernel => push(&mut self.kernel, entry),
                // In prof's recordings callers are lookup addresses already.
                CpuMode::User if ours.is_some() => self.user.push(entry),
                CpuMode::User => push(&mut self.user, entry),
                _ => {}
            }
        }
        if traits.open_calls
            && let Some(calls) = sample.branches
        {
            self.follow_calls(calls);
        }
        let is_empty = self.kernel.is_empty() && self.user.is_empty();
        match sample.mode {
            _ if ours.is_some_and(|note| note.end == StackEnd::NotSeen) => {}
            CpuMode::Kernel if is_empty => self.kernel.push(sample.ip),
            _ if is_empty => self.user.push(sample.ip),
            _ => {}
        }
        self.note = ours.unwrap_or_else(|| {
            StackNote::new(match (traits.chains, self.user.is_empty()) {
                (false, _) => StackEnd::NotRecorded,
                (true, true) => StackEnd::NoUserState,
                (true, false) => StackEnd::FramePointersEnded,
            })
        });
    }

    /// Takes the callers from the calls that a CPU keeps in its branch records, innermost first, of
    /// which each one's address is that of the call itself. Without any, or where no user code ran,
    /// all stays as it is.
    fn follow_calls(&mut self, calls: Branches<'_>) {
        let mut calls = calls
            .iter()
            .map(|call| call.from)
            .take_while(|&from| from != 0);
        let Some(innermost) = calls.next().filter(|_| !self.user.is_empty()) else {
            return;
        };
        self.user.truncate(1);
        self.user.push(innermost);
        self.user.extend(calls);
    }

    /// Forgets what was read from live memory: it may be of another moment.
    pub(in crate::load) fn drop_unproven_tail(&mut self) {
        if self.note.end.is_whole() && self.note.remote_read > 0 {
            let tail = self.user.len().saturating_sub(self.note.remote_read.into());
            let kept = match self.note.elided {
                0 => tail,
                // What is left out stood between the copy and the tail.
                _ => tail.min(self.note.elided_at as usize),
            };
            self.user.truncate(kept);
            self.note = StackNote::new(StackEnd::Stale);
        }
    }

    /// Forgets the user part of a sample that was taken in the kernel while the process had
    /// nothing mapped: in the middle of `exec`, when the old program's registers are still there.
    pub(in crate::load) fn drop_stale_user_part(&mut self) {
        if !self.kernel.is_empty() && self.note.end.counts() {
            self.user.clear();
            self.note = StackNote::new(StackEnd::NoUserState);
        }
    }
}

/// Appends what the kernel recorded: first an instruction pointer, then return addresses. A null
/// return address is no frame: it ends the chain of frame pointers.
fn push(frames: &mut Vec<u64>, address: u64) {
    if address == 0 && !frames.is_empty() {
        return;
    }
    let address = AbsoluteAddress(address);
    let frame = if frames.is_empty() {
        FrameAddress::Instruction(address)
    } else {
        FrameAddress::Return(address)
    };
    frames.push(frame.lookup().0);
}

fn mode_of(marker: u64) -> CpuMode {
    match marker {
        context::KERNEL => CpuMode::Kernel,
        context::USER => CpuMode::User,
        context::HV => CpuMode::Hypervisor,
        context::GUEST_KERNEL => CpuMode::GuestKernel,
        context::GUEST | context::GUEST_USER => CpuMode::GuestUser,
        _ => CpuMode::Unknown,
    }
}
