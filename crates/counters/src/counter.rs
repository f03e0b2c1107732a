//! One event, alone or in a group.

use std::sync::Arc;

use prof_events::counting::{AttrOptions, RawCounter};
use prof_events::parsing::EventSpec;

use crate::count::Count;
use crate::error::{OpenError, ReadError, ReaderError};
use crate::member::{CounterId, Member};
use crate::place::{PlaceName, Places};
use crate::reader::Reader;
use crate::refusal;
use crate::target::{Options, Target};

/// Counts one event of one target; disabled at first. Dropping it ends the counting, and removes it
/// from its group.
///
/// ```
/// use prof_counters::{Counter, Target, event};
///
/// let faults = Counter::new(&event("page-faults:u")?, Target::ThisThread)?;
/// faults.enable()?;
/// let memory = vec![1_u8; 1 << 20];
/// faults.disable()?;
/// println!("{} page faults for {} bytes", faults.read()?.value, memory.len());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Counter {
    pub(crate) member: Arc<Member>,
}

impl Counter {
    /// Opens a counter outside of any group. If the target is all CPUs, it counts only on those
    /// that support the event (`cpumask` in sysfs).
    ///
    /// # Errors
    ///
    /// When there is no such target, or the event cannot be counted there; the error says why and
    /// what to do.
    pub fn new(event: &EventSpec, target: Target) -> Result<Self, OpenError> {
        Self::with_options(event, target, Options::default())
    }

    /// Like [`new`](Self::new), with options.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn with_options(
        event: &EventSpec,
        target: Target,
        options: Options,
    ) -> Result<Self, OpenError> {
        let mut places = Places::of(&target)?;
        if let Some(cpus) = &event.cpus {
            places.retain_cpus(cpus);
        }
        let mut spec = event.clone();
        spec.modifiers.pinned |= options.pinned;
        spec.modifiers.exclusive |= options.exclusive;
        let attr = AttrOptions {
            inherit: options.inherit,
            enable_on_exec: options.enable_on_exec,
            group_read: false,
            enabled: false,
        };
        let mut events = Vec::with_capacity(places.sites.len());
        for site in &places.sites {
            match RawCounter::open(&spec, site.place(), None, attr) {
                Ok(event) => events.push(Some(event)),
                // A thread that has ended meanwhile counts nothing.
                Err(rustix::io::Errno::SRCH) if places.sites.len() > 1 => events.push(None),
                Err(errno) => return Err(refusal::of_event(&spec, errno, &target)),
            }
        }
        let member = Member::new(spec, attr, Arc::new(places), events);
        Ok(Self {
            member: Arc::new(member),
        })
    }

    /// The event.
    pub fn event(&self) -> &EventSpec {
        &self.member.spec
    }

    /// Its id, unique in this process.
    pub fn id(&self) -> CounterId {
        self.member.id
    }

    /// Enables it. In a group, it counts while both it and its group are enabled.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn enable(&self) -> Result<(), ReadError> {
        self.member
            .opened()
            .try_for_each(|event| event.enable().map_err(ReadError::System))
    }

    /// Stops it; the count stays.
    ///
    /// # Errors
    ///
    /// The error of the system call.
    pub fn disable(&self) -> Result<(), ReadError> {
        self.member
            .opened()
            .try_for_each(|event| event.disable().map_err(ReadError::System))
    }

    /// Sets count and times to zero, whether it is enabled or not.
    ///
    /// # Errors
    ///
    /// As [`read_final`](Self::read_final).
    pub fn reset(&self) -> Result<(), ReadError> {
        self.member.reset()
    }

    /// Its count since it was opened or reset.
    ///
    /// # Errors
    ///
    /// The target has ended, its CPU went offline, or the counter is pinned and does not fit on the
    /// hardware.
    pub fn read(&self) -> Result<Count, ReadError> {
        self.member.places.check()?;
        self.member.read()
    }

    /// Its count, even if the target has ended.
    ///
    /// # Errors
    ///
    /// The counter is pinned and does not fit on the hardware.
    pub fn read_final(&self) -> Result<Count, ReadError> {
        self.member.read()
    }

    /// Its count at each place, even if the target has ended.
    ///
    /// # Errors
    ///
    /// As [`read_final`](Self::read_final).
    pub fn read_places(&self) -> Result<Vec<(PlaceName, Count)>, ReadError> {
        self.member.read_places()
    }

    /// A reader that needs no system call, for the thread that it counts.
    ///
    /// # Errors
    ///
    /// It does not count only the calling thread, or children inherit it.
    pub fn reader(&self) -> Result<Reader<'_>, ReaderError> {
        Reader::new(&self.member)
    }
}
