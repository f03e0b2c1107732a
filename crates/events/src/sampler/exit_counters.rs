//! Events that report the counts of threads as they end.
//!
//! A READ record of a thread's event for one CPU goes to that CPU's ring from whichever CPU the
//! thread ends on (`inherit_stat`). The kernel writes to rings as if no other CPU wrote to them at
//! the same time, so that such records damage others. So they have separate rings and separate
//! events: a damaged ring costs a few counts, but no mapping and no sample.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};

use prof_model::Tid;
use rustix::io::Errno;

use crate::attr::setup::Setup;
use crate::kernel;
use crate::kernel::ring::Ring;

/// One CPU's events that report ends, and their ring.
#[derive(Debug, Default)]
pub(crate) struct ExitCounters {
    ring: Option<Ring>,
    /// Each with the id of its sampling event. The first one owns the ring.
    events: Vec<(OwnedFd, u64)>,
    /// The ids of the sampling events, by those of the exit counters.
    ids: HashMap<u64, u64>,
    /// A record under the id of the event that samples.
    record: Vec<u8>,
}

impl ExitCounters {
    /// Some hundred threads that end between two looks.
    const RING: u64 = 64 << 10;
    /// Where in a READ record the id is: header, pid, tid, value, id. The id also ends the record.
    /// Nothing else about records is needed here: perfdata parses them.
    const ID: usize = 24;

    /// Adds one for the event `id`, which samples this thread on this CPU.
    ///
    /// # Errors
    ///
    /// The ring cannot be mapped: ends are then not reported.
    pub(crate) fn add(&mut self, setup: &Setup, id: u64, tid: Tid, cpu: u32) -> Result<(), Errno> {
        let setup = Setup {
            wakeup_bytes: (Self::RING / 4) as u32,
            ..setup.clone()
        };
        let event = kernel::open_exit_counter(&setup, tid, cpu)?;
        let own = kernel::id(event.as_fd())?;
        match self.events.first() {
            Some((first, _)) => kernel::redirect(event.as_fd(), first.as_fd())?,
            None => {
                let ring = Ring::map(event.as_fd(), Self::RING);
                let errno = |error: std::io::Error| Errno::from_io_error(&error);
                self.ring = Some(ring.map_err(|error| errno(error).unwrap_or(Errno::NOMEM))?);
            }
        }
        self.ids.insert(own, id);
        self.events.push((event, id));
        Ok(())
    }

    /// The descriptor to wait for: readable when a quarter of the ring is full.
    pub(crate) fn waiting(&self) -> Option<&OwnedFd> {
        self.events().next()
    }

    pub(crate) fn events(&self) -> impl Iterator<Item = &OwnedFd> {
        self.events.iter().map(|(event, _)| event)
    }

    /// The counts of the exit counters, by the ids of the sampling events: the READ records add up
    /// to these counts, while a sampling event counts slightly more at each switch.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u64, u64)> {
        let events = self.events.iter();
        events.filter_map(|(event, id)| Some((*id, kernel::count(event.as_fd())?)))
    }

    /// Hands out the records, each as if the event that samples had written it.
    pub(crate) fn drain(&mut self, mut each: impl FnMut(&[u8])) {
        let Self {
            ring: Some(ring),
            ids,
            record,
            ..
        } = self
        else {
            return;
        };
        ring.drain(|bytes| {
            record.clear();
            record.extend_from_slice(bytes);
            let end = record.len().saturating_sub(size_of::<u64>());
            let known = [Self::ID, end]
                .into_iter()
                .all(|at| rename(record, at, ids));
            if known {
                each(record);
            }
        });
    }
}

/// Replaces the id at this place; `false` if there is none that is known.
fn rename(record: &mut [u8], at: usize, ids: &HashMap<u64, u64>) -> bool {
    let Some(field) = record.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) else {
        return false;
    };
    let Some(id) = ids.get(&u64::from_ne_bytes(*field)) else {
        return false;
    };
    *field = id.to_ne_bytes();
    true
}
