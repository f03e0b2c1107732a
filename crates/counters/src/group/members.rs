//! The members of a group, as the kernel sees them.

use prof_events::system::monotonic_now;

use super::Group;
use crate::error::{OpenError, ReadError};
use crate::member::{Member, Times};
use crate::snapshot::Snapshot;

impl Group {
    /// Makes a new member start at zero on the group's clock, which may have run for a while.
    pub(super) fn start(&mut self, member: &Member) -> Result<(), OpenError> {
        let mut baselines = member.baselines();
        for (leader, baseline) in self.leaders.iter().zip(&mut *baselines) {
            let Some(leader) = leader else { continue };
            let read = leader.read_group(&mut self.scratch);
            let what = "read the group's clock";
            if read.map_err(|errno| OpenError::System {
                what,
                source: errno.into(),
            })? {
                baseline.group = Times {
                    enabled: self.scratch.enabled,
                    running: self.scratch.running,
                };
            }
        }
        Ok(())
    }

    /// Lets the members go on without their leaders. Those that wait for a leader are disabled, or
    /// they would begin to count.
    pub(super) fn release_members(&mut self) {
        for (index, leader) in self.leaders.iter().enumerate() {
            let Some(leader) = leader else { continue };
            // A call of `exec` may have enabled it.
            let read = leader.read_group(&mut self.scratch);
            if self.enabled || read.is_ok_and(|counted| counted && self.scratch.enabled > 0) {
                continue;
            }
            for member in self
                .members
                .iter()
                .filter_map(|entry| entry.member.upgrade())
            {
                if let Some(Some(event)) = member.events.get(index) {
                    // A destructor cannot report an error.
                    let _ = event.disable();
                }
            }
            // A child between fork and exec keeps the leader open, and members count with their
            // leader only.
            let _ = leader.enable();
        }
    }

    /// Removes members that were dropped.
    pub(super) fn refresh(&mut self) {
        if self
            .members
            .iter()
            .any(|entry| entry.member.strong_count() == 0)
        {
            self.members.retain(|entry| entry.member.strong_count() > 0);
            self.set = self.members.iter().map(|entry| entry.id).collect();
        }
    }

    /// Reads all places, or one.
    pub(super) fn fill(
        &mut self,
        snapshot: &mut Snapshot,
        only: Option<usize>,
    ) -> Result<(), ReadError> {
        self.refresh();
        let counts = snapshot.refill(&self.set);
        for (index, leader) in self.leaders.iter().enumerate() {
            let Some(leader) = leader
                .as_ref()
                .filter(|_| only.is_none_or(|only| only == index))
            else {
                continue;
            };
            if !leader
                .read_group(&mut self.scratch)
                .map_err(ReadError::System)?
            {
                return Err(ReadError::NotScheduled);
            }
            for (entry, count) in self.members.iter().zip(&mut *counts) {
                let member = entry.member.upgrade();
                if let Some(value) = member.and_then(|member| member.value(index, &self.scratch)) {
                    *count = count.plus(value);
                }
            }
        }
        let now = monotonic_now();
        snapshot.stamp(now, now.saturating_sub(self.since));
        Ok(())
    }
}
