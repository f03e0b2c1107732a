//! One event at one place: a descriptor, and the system calls on it.

use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use perf_event_open_sys::bindings as sys;
use prof_model::Tid;
use rustix::io::Errno;

use super::attr::{AttrOptions, attr};
use super::page::UserPage;
use crate::attr::definition::Definition;
use crate::kernel::{self, probe_reach::ProbeReach};
use crate::parsing::EventSpec;
use crate::request::target_threads::MonitoredThreads;

/// Where an event counts.
#[derive(Clone, Copy, Debug)]
pub enum Place<'a> {
    /// The calling thread.
    ThisThread,
    /// This thread.
    Thread(Tid),
    /// This thread on this CPU.
    ThreadOnCpu(Tid, u32),
    /// Everything on this CPU.
    Cpu(u32),
    /// The threads of a cgroup on this CPU; the descriptor is that of the cgroup's folder.
    Cgroup(BorrowedFd<'a>, u32),
}

impl Place<'_> {
    /// The thread, as the kernel takes it: 0 is the caller.
    fn thread(self) -> Option<Tid> {
        match self {
            Self::ThisThread => Some(0),
            Self::Thread(tid) | Self::ThreadOnCpu(tid, _) => Some(tid),
            Self::Cpu(_) | Self::Cgroup(..) => None,
        }
    }
}

/// One event at one place. Dropping it ends the counting; if it leads a group, its members continue
/// alone.
#[derive(Debug)]
pub struct RawCounter {
    fd: OwnedFd,
    id: u64,
    /// Lets an inherited probe reach every program.
    _reach: ProbeReach,
    /// Dropped after the descriptors.
    _definition: Option<Definition>,
}

/// The count of one event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RawCount {
    /// The count.
    pub value: u64,
    /// Nanoseconds that the event was enabled while its thread was on a CPU.
    pub enabled: u64,
    /// Nanoseconds that it was on the PMU, counting.
    pub running: u64,
}

/// The counts of a group's events at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GroupCount {
    /// Nanoseconds that the group was enabled.
    pub enabled: u64,
    /// Nanoseconds that it was on the PMU, counting.
    pub running: u64,
    /// Each member's id and count, the leader's first.
    pub values: Vec<(u64, u64)>,
    buffer: Vec<u8>,
}

impl RawCounter {
    /// Opens an event; as a member of a group if there is a leader.
    ///
    /// Members count while they and their leader are enabled. Whether a group fits on the
    /// hardware is only checked for those of its members that are enabled.
    ///
    /// # Errors
    ///
    /// The kernel's error (perf_event_open(2)); [`why_not`](super::why_not) explains it.
    pub fn open(
        spec: &EventSpec,
        place: Place<'_>,
        leader: Option<&Self>,
        options: AttrOptions,
    ) -> Result<Self, Errno> {
        Self::open_attr(attr(spec, options), spec, place, leader)
    }

    /// Opens the event of the attribute, which must have been made from this spec.
    pub(super) fn open_attr(
        mut attr: sys::perf_event_attr,
        spec: &EventSpec,
        place: Place<'_>,
        leader: Option<&Self>,
    ) -> Result<Self, Errno> {
        // An inherited probe is defined in tracefs, if that is permitted; see there.
        let definition = match attr.inherit() {
            1 => Definition::new(spec),
            _ => Ok(None),
        };
        if let Ok(Some(definition)) = &definition {
            definition.apply(&mut attr);
        }
        let result = open(&mut attr, place, leader);
        // PMUs that cannot select the code that counts refuse the exclude bits.
        let fd = match result {
            Err(Errno::INVAL | Errno::OPNOTSUPP)
                if !spec.modifiers.guest && spec.family.is_hardware() =>
            {
                attr.set_exclude_guest(0);
                open(&mut attr, place, leader).or(result)?
            }
            result => result?,
        };
        let id = kernel::id(fd.as_fd())?;
        let definition = definition.map_err(|_| Errno::NOENT)?;
        let mut reach = ProbeReach::default();
        if definition.is_some() {
            reach.extend(place.thread().as_slice(), &[attr]);
        }
        Ok(Self {
            fd,
            id,
            _reach: reach,
            _definition: definition,
        })
    }

    /// Its id, unique while the machine runs.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Enables it; if it leads a group, all of its members that are enabled start at the same
    /// moment.
    ///
    /// # Errors
    ///
    /// The kernel's error; ENODEV if the event is permanently gone.
    pub fn enable(&self) -> Result<(), Errno> {
        kernel::enable(self.fd.as_fd())
    }

    /// Disables it; if it leads a group, all of its members stop at the same moment.
    ///
    /// # Errors
    ///
    /// As [`enable`](Self::enable).
    pub fn disable(&self) -> Result<(), Errno> {
        kernel::disable(self.fd.as_fd())
    }

    /// Its count; `None` if it is in the error state, like a pinned event that does not fit on the
    /// PMU. It must have been opened without `group_read`.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn read(&self) -> Result<Option<RawCount>, Errno> {
        let mut words = [0_u64; 4];
        // SAFETY: the array is as many bytes long as the slice says, and any bytes make words.
        let bytes = unsafe {
            std::slice::from_raw_parts_mut(words.as_mut_ptr().cast::<u8>(), size_of_val(&words))
        };
        let length = rustix::io::read(&self.fd, bytes)?;
        match length {
            0 => Ok(None),
            32 => {
                let [value, enabled, running, _] = words;
                Ok(Some(RawCount {
                    value,
                    enabled,
                    running,
                }))
            }
            _ => Err(Errno::IO),
        }
    }

    /// Reads its group's counts into `count`; `false` if it is in the error state. It must have
    /// been opened with `group_read`.
    ///
    /// # Errors
    ///
    /// The kernel's error.
    pub fn read_group(&self, count: &mut GroupCount) -> Result<bool, Errno> {
        const SPARE: usize = 4;
        let needed = (3 + 2 * (count.values.len() + SPARE)) * size_of::<u64>();
        if count.buffer.len() < needed {
            count.buffer.resize(needed, 0);
        }
        loop {
            match rustix::io::read(&self.fd, &mut count.buffer[..]) {
                Ok(0) => return Ok(false),
                Ok(length) => {
                    count.decode(length).ok_or(Errno::IO)?;
                    return Ok(true);
                }
                // More members than expected.
                Err(Errno::NOSPC) if count.buffer.len() < LARGEST_GROUP => {
                    count.buffer.resize(count.buffer.len() * 2, 0);
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// The event's page in our memory, for reading without a system call. The event must be one of
    /// the calling thread, and not inherited.
    ///
    /// # Errors
    ///
    /// The page cannot be mapped.
    pub fn user_page(&self) -> io::Result<UserPage> {
        UserPage::map(self.fd.as_fd())
    }
}

impl AsFd for RawCounter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// The kernel's limit on what a group read returns is 16 KiB.
const LARGEST_GROUP: usize = 16 << 10;

impl GroupCount {
    /// nr, time_enabled, time_running, { value, id } * nr
    fn decode(&mut self, length: usize) -> Option<()> {
        let mut rest = self.buffer.get(..length)?;
        let mut word = || {
            let mut bytes = [0; 8];
            rest.read_exact(&mut bytes).ok()?;
            Some(u64::from_ne_bytes(bytes))
        };
        let members = word()?;
        self.enabled = word()?;
        self.running = word()?;
        self.values.clear();
        for _ in 0..members {
            let (value, id) = (word()?, word()?);
            self.values.push((id, value));
        }
        Some(())
    }
}

fn open(
    attr: &mut sys::perf_event_attr,
    place: Place<'_>,
    leader: Option<&RawCounter>,
) -> Result<OwnedFd, Errno> {
    let (monitored, cpu) = match place {
        Place::ThisThread => (MonitoredThreads::CALLER, None),
        // 0 and less mean other things to the kernel.
        Place::Thread(tid) | Place::ThreadOnCpu(tid, _) if tid <= 0 => return Err(Errno::SRCH),
        Place::Thread(tid) => (MonitoredThreads::Thread(tid), None),
        Place::ThreadOnCpu(tid, cpu) => (MonitoredThreads::Thread(tid), Some(cpu)),
        Place::Cpu(cpu) => (MonitoredThreads::Everybody, Some(cpu)),
        Place::Cgroup(folder, cpu) => (MonitoredThreads::Cgroup(folder), Some(cpu)),
    };
    kernel::open(attr, monitored, cpu, leader.map(AsFd::as_fd))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_reads_are_decoded_or_refused() {
        let decode = |words: &[u64], length: usize| {
            let mut count = GroupCount {
                buffer: words.iter().flat_map(|word| word.to_ne_bytes()).collect(),
                ..GroupCount::default()
            };
            count
                .decode(length)
                .map(|()| (count.enabled, count.running, count.values))
        };
        let words = [2, 10, 5, 100, 7, 200, 8];
        assert_eq!(decode(&words, 56), Some((10, 5, vec![(7, 100), (8, 200)])));
        assert_eq!(decode(&words, 48), None);
        assert_eq!(decode(&words, 64), None);
        assert_eq!(decode(&[u64::MAX, 0, 0], 24), None);
        assert_eq!(decode(&[], 0), None);
    }
}
