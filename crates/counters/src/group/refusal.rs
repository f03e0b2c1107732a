//! Why an event cannot be counted in a group.

use std::sync::Weak;

use prof_events::counting::RawCounter;
use prof_events::parsing::{EventSpec, Family};
use rustix::io::Errno;

use super::Group;
use super::leader::attr_options;
use crate::error::OpenError;
use crate::refusal::of_event;

/// The error for an event that cannot join a group: if it opens alone, the group is the reason.
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
