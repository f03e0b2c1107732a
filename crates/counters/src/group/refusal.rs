//! Why an event cannot be counted, alone or in a group.

use std::sync::Weak;

use prof_events::counting::{Circumstances, Prober, RawCounter, why_not};
use prof_events::names::{Catalog, EventSpec, Family};
use prof_events::system::System;
use rustix::io::Errno;

use super::Group;
use super::leader::attr_options;
use crate::error::OpenError;
use crate::target::Target;

/// What the kernel's refusal means for this event and target.
pub(crate) fn of_event(spec: &EventSpec, errno: Errno, target: &Target) -> OpenError {
    if errno == Errno::SRCH {
        match *target {
            Target::Process(pid) => return OpenError::NoProcess(pid),
            Target::Thread(tid) => return OpenError::NoThread(tid),
            _ => {}
        }
    }
    let system = match System::read() {
        Ok(system) => system,
        Err(source) => {
            return OpenError::System {
                what: "read the machine's settings",
                source,
            };
        }
    };
    let circumstances = Circumstances {
        system_wide: target.is_system_wide(),
        attach: matches!(target, Target::Thread(_) | Target::Process(_)),
        ..Prober::new(&Catalog::system(), &system).circumstances()
    };
    OpenError::Refused {
        event: spec.to_string(),
        errno,
        reason: why_not(spec, errno, circumstances),
    }
}

/// What the refusal means for an event that was to join a group: if it opens alone, it is the
/// group's fault.
pub(super) fn of_member(group: &Group, spec: &EventSpec, errno: Errno) -> OpenError {
    let members: Vec<_> = group
        .members
        .iter()
        .map(|entry| &entry.member)
        .filter_map(Weak::upgrade)
        .collect();
    let opens_alone = || {
        let site = group.places.sites.first();
        let attr = attr_options(group.options, false);
        site.is_some_and(|site| RawCounter::open(spec, site.place(), None, attr).is_ok())
    };
    if errno != Errno::INVAL || members.is_empty() || !opens_alone() {
        return of_event(spec, errno, &group.target);
    }
    let event = spec.to_string();
    let hardware = members
        .iter()
        .filter(|member| member.spec.family.is_hardware());
    let mut others = hardware.filter(|member| pmu(&member.spec) != pmu(spec));
    match others.next() {
        Some(other) => OpenError::MixedPmus {
            event,
            other: other.spec.to_string(),
        },
        None => OpenError::GroupFull {
            event,
            members: members.len(),
        },
    }
}

/// The generic events and those of the PMU `cpu` are counted by the same hardware.
fn pmu(spec: &EventSpec) -> Option<&str> {
    match &spec.family {
        Family::Pmu(name) if name != "cpu" => Some(name),
        _ => None,
    }
}
