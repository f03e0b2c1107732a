//! What this machine and this user can open: tried, not guessed.

use rustix::io::Errno;

use super::attr::{AttrOptions, attr};
use super::raw::{Place, RawCounter};
use super::reason::{RefusalFacts, why_not};
use crate::parsing::{Catalog, EventSpec, Family};
use crate::permission::Rights;
use crate::system::Privileges;
use crate::system::System;

/// Whether an event is available.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// In all code.
    Yes,
    /// In user code only: `perf_event_paranoid` forbids the kernel's.
    UserOnly,
    /// Only for whole CPUs, not for single threads.
    SystemWide,
    /// Not at all, and why.
    No(String),
}

impl Answer {
    /// Whether it is available in some way.
    pub(crate) fn is_yes(&self) -> bool {
        !matches!(self, Self::No(_))
    }
}

/// Whether an event can be counted and sampled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ability {
    /// Whether it can be counted.
    pub count: Answer,
    /// Whether it can be sampled: not every counter can interrupt.
    pub sample: Answer,
}

/// Opens events to see whether they open, and closes them again.
#[derive(Clone, Debug)]
pub struct Prober {
    facts: RefusalFacts,
    cpu: u32,
}

impl Prober {
    /// For this machine and this user.
    pub fn new(catalog: &Catalog, system: &System) -> Self {
        Self {
            facts: RefusalFacts {
                rights: Rights::of(&Privileges::read().unwrap_or_default(), system),
                hardware: has_hardware(catalog),
                system_wide: false,
                target_refuses: false,
            },
            cpu: system.cpus.first().copied().unwrap_or(0),
        }
    }

    /// The facts that the reasons for refusals depend on.
    pub fn facts(&self) -> RefusalFacts {
        self.facts
    }

    /// Whether the event can be counted and sampled here.
    pub fn probe(&self, spec: &EventSpec) -> Ability {
        Ability {
            count: self.answer(spec, Purpose::Count),
            sample: self.answer(spec, Purpose::Sample),
        }
    }

    fn answer(&self, spec: &EventSpec, purpose: Purpose) -> Answer {
        let mut refused = match open(spec, Place::ThisThread, purpose) {
            Ok(()) => return Answer::Yes,
            Err(errno) => errno,
        };
        // An event that happens in the kernel only would open, and count nothing.
        let user_only = spec
            .user_only()
            .filter(|spec| !spec.happens_in_kernel_only());
        if let (Errno::ACCESS | Errno::PERM, Some(user_only)) = (refused, user_only) {
            match open(&user_only, Place::ThisThread, purpose) {
                Ok(()) => return Answer::UserOnly,
                // The event does not exist, which the kernel checks after the permission.
                Err(errno @ (Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV)) => refused = errno,
                Err(Errno::INVAL) if spec.family == Family::Cache => refused = Errno::NOENT,
                Err(_) => {}
            }
        }
        let only = spec.cpus.as_ref().and_then(|cpus| cpus.first());
        let cpu = only.copied().unwrap_or(self.cpu);
        match open(spec, Place::Cpu(cpu), purpose) {
            Ok(()) => Answer::SystemWide,
            Err(errno) => {
                let system_wide = spec.cpus.is_some();
                let errno = if system_wide { errno } else { refused };
                let facts = RefusalFacts {
                    system_wide,
                    ..self.facts
                };
                Answer::No(why(spec, errno, facts, purpose))
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Count,
    Sample,
}

fn why(spec: &EventSpec, errno: Errno, facts: RefusalFacts, purpose: Purpose) -> String {
    match errno {
        Errno::OPNOTSUPP | Errno::INVAL
            if purpose == Purpose::Sample && spec.family.is_hardware() =>
        {
            "it cannot interrupt the CPU: it can be counted, not sampled".into()
        }
        errno => why_not(spec, errno, facts),
    }
}

fn open(spec: &EventSpec, place: Place<'_>, purpose: Purpose) -> Result<(), Errno> {
    let mut attr = attr(spec, AttrOptions::default());
    if purpose == Purpose::Sample {
        // So rarely that none comes before we close it.
        attr.__bindgen_anon_1.sample_period = 1 << 40;
        attr.sample_type = perf_event_open_sys::bindings::PERF_SAMPLE_IP.into();
    }
    RawCounter::open_attr(attr, spec, place, None).map(drop)
}

/// Whether the CPUs' own counters are in sysfs. They have many names (`cpu`, `cpu_core`,
/// `armv8_pmuv3`, ...), so ask for the one thing that all of them count.
fn has_hardware(catalog: &Catalog) -> bool {
    let cycles = catalog.parse("cycles:u").ok();
    let spec = cycles
        .as_ref()
        .and_then(|groups| groups.first()?.events.first());
    let place = Place::ThisThread;
    spec.is_some_and(|spec| {
        !matches!(
            open(spec, place, Purpose::Count),
            Err(Errno::NOENT | Errno::OPNOTSUPP)
        )
    })
}
