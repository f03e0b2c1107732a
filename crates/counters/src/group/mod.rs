//! Events that count at the same time.

mod leader;
mod members;
mod refusal;

use std::sync::{Arc, Weak};

use prof_events::counting::{GroupCount, RawCounter};
use prof_events::parsing::EventSpec;
use prof_events::system::monotonic_now;
use rustix::io::Errno;

use leader::{attr_options, leader_spec};

use crate::counter::Counter;
use crate::error::{OpenError, ReadError};
use crate::member::{CounterId, Member};
use crate::place::{PlaceName, Places};
use crate::refusal::of_event;
use crate::snapshot::Snapshot;
use crate::target::{Options, Target};

/// Counters of one target that count at the same time, or none of them; disabled at first.
///
/// Enabling, disabling and reading is one operation of the kernel for all members at a place;
/// `reset` consists of these. Over several places (the threads of a process, all CPUs) it is one
/// operation for each.
///
/// The caller owns the members. A dropped member leaves the group; when the group is dropped, its
/// members continue alone.
#[derive(Debug)]
pub struct Group {
    target: Target,
    options: Options,
    places: Arc<Places>,
    /// A software event that counts nothing, at each place: members come and go, it stays. `None`
    /// where the thread had ended before it could be opened.
    leaders: Vec<Option<RawCounter>>,
    members: Vec<Entry>,
    /// The members' ids.
    set: Arc<[CounterId]>,
    enabled: bool,
    /// When counting from zero began, in nanoseconds of CLOCK_MONOTONIC.
    since: u64,
    /// Reused by every read.
    scratch: GroupCount,
}

#[derive(Debug)]
struct Entry {
    id: CounterId,
    /// Its counter owns it.
    member: Weak<Member>,
}

impl Group {
    /// An empty group.
    ///
    /// # Errors
    ///
    /// There is no such target, or it may not be counted.
    pub fn new(target: Target) -> Result<Self, OpenError> {
        Self::with_options(target, Options::default())
    }

    /// Like [`new`](Self::new), with options.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_options(target: Target, options: Options) -> Result<Self, OpenError> {
        let places = Places::of(&target)?;
        let leader = leader_spec(options);
        let attr = attr_options(options, true);
        let mut leaders = Vec::with_capacity(places.sites.len());
        for site in &places.sites {
            match RawCounter::open(&leader, site.place(), None, attr) {
                Ok(event) => leaders.push(Some(event)),
                Err(Errno::SRCH) if places.sites.len() > 1 => leaders.push(None),
                Err(errno) => return Err(of_event(&leader, errno, &target)),
            }
        }
        Ok(Self {
            target,
            options,
            places: Arc::new(places),
            leaders,
            members: Vec::new(),
            set: [].into(),
            enabled: false,
            since: monotonic_now(),
            scratch: GroupCount::default(),
        })
    }

    /// Adds an event. If the group is enabled, it counts at once.
    ///
    /// Modifiers on scheduling (`:D`, `:e`) are the group's, see [`Options`]; the event's are
    /// ignored.
    ///
    /// # Errors
    ///
    /// The event cannot be counted, or not in this group: the hardware cannot count so many at
    /// once, or it is counted by other hardware than the others.
    pub fn add(&mut self, event: &EventSpec) -> Result<Counter, OpenError> {
        let mut spec = event.clone();
        (spec.modifiers.pinned, spec.modifiers.exclusive) = (false, false);
        let attr = attr_options(self.options, false);
        let mut events = Vec::with_capacity(self.leaders.len());
        for (site, leader) in self.places.sites.iter().zip(&self.leaders) {
            let opened = leader
                .as_ref()
                .map(|leader| RawCounter::open(&spec, site.place(), Some(leader), attr));
            match opened.transpose() {
                Ok(event) => events.push(event),
                Err(Errno::SRCH) if self.leaders.len() > 1 => events.push(None),
                Err(errno) => return Err(refusal::of_member(self, &spec, errno)),
            }
        }
        let member = Arc::new(Member::new(spec, attr, self.places.clone(), events));
        self.start(&member)?;
        self.members.retain(|entry| entry.member.strong_count() > 0);
        self.members.push(Entry {
            id: member.id,
            member: Arc::downgrade(&member),
        });
        self.set = self.members.iter().map(|entry| entry.id).collect();
        Ok(Counter { member })
    }

    /// Enables all members.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn enable(&mut self) -> Result<(), ReadError> {
        let mut leaders = self.leaders.iter().flatten();
        leaders.try_for_each(|leader| leader.enable().map_err(ReadError::System))?;
        self.enabled = true;
        Ok(())
    }

    /// Disables all members; their counts stay.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn disable(&mut self) -> Result<(), ReadError> {
        let mut leaders = self.leaders.iter().flatten();
        leaders.try_for_each(|leader| leader.disable().map_err(ReadError::System))?;
        self.enabled = false;
        Ok(())
    }

    /// Sets all counts and times to zero, whether the group is enabled or not.
    ///
    /// # Errors
    ///
    /// As [`read_final`](Self::read_final).
    pub fn reset(&mut self) -> Result<(), ReadError> {
        for (index, leader) in self.leaders.iter().enumerate() {
            let Some(leader) = leader else { continue };
            if !leader
                .read_group(&mut self.scratch)
                .map_err(ReadError::System)?
            {
                return Err(ReadError::NotScheduled);
            }
            for member in self
                .members
                .iter()
                .filter_map(|entry| entry.member.upgrade())
            {
                member.reset_in_group(index, &self.scratch)?;
            }
        }
        self.since = monotonic_now();
        Ok(())
    }

    /// The counts of the members since the group was opened or reset.
    ///
    /// # Errors
    ///
    /// The target has ended, its CPU went offline, or the group is pinned and does not fit on the
    /// hardware.
    pub fn read(&mut self) -> Result<Snapshot, ReadError> {
        let mut snapshot = Snapshot::new([].into(), Vec::new(), 0, 0);
        self.read_into(&mut snapshot)?;
        Ok(snapshot)
    }

    /// Like [`read`](Self::read), into an existing snapshot; allocates nothing if that is of the
    /// same set.
    ///
    /// # Errors
    ///
    /// As [`read`](Self::read); the snapshot is then half-filled.
    pub fn read_into(&mut self, snapshot: &mut Snapshot) -> Result<(), ReadError> {
        self.places.check()?;
        self.fill(snapshot, None)
    }

    /// Like [`read`](Self::read), even if the target has ended: the final counts of a thread or
    /// process.
    ///
    /// # Errors
    ///
    /// The group is pinned and does not fit on the hardware.
    pub fn read_final(&mut self) -> Result<Snapshot, ReadError> {
        let mut snapshot = Snapshot::new([].into(), Vec::new(), 0, 0);
        self.fill(&mut snapshot, None)?;
        Ok(snapshot)
    }

    /// The counts at each place, even if the target has ended.
    ///
    /// # Errors
    ///
    /// As [`read_final`](Self::read_final).
    pub fn read_places(&mut self) -> Result<Vec<(PlaceName, Snapshot)>, ReadError> {
        let names: Vec<PlaceName> = self.places.sites.iter().map(|site| site.name).collect();
        let mut all = Vec::with_capacity(names.len());
        for (index, name) in names.into_iter().enumerate() {
            let mut snapshot = Snapshot::new([].into(), Vec::new(), 0, 0);
            self.fill(&mut snapshot, Some(index))?;
            all.push((name, snapshot));
        }
        Ok(all)
    }

    /// How many members it has.
    pub fn len(&self) -> usize {
        self.members
            .iter()
            .filter(|entry| entry.member.strong_count() > 0)
            .count()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The target.
    pub fn target(&self) -> &Target {
        &self.target
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.release_members();
    }
}
