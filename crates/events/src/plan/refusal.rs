//! The error when the kernel refuses an event or its ring.

use prof_model::Tid;
use rustix::io::Errno;

use crate::attr::setup::{Scope, Setup};
use crate::counting::{Prober, RefusalFacts, why_not};
use crate::error::Error;
use crate::parsing::{Catalog, EventSpec, Family};
use crate::permission::{Refusal, Rights, Subject};
use crate::plan::advice::{advice, advice_on_ring};
use crate::plan::trial::Trial;
use crate::request::event::Weight;
use crate::system::Privileges;
use crate::system::System;

/// Why this event was refused, and what to do. `target` is a thread that we did not start.
pub(crate) fn of_event(
    setup: &Setup,
    errno: Errno,
    system: &System,
    target: Option<Tid>,
) -> String {
    let spec = &setup.spec;
    let prober = Prober::new(&Catalog::system(), system);
    let facts = RefusalFacts {
        target_refuses: refuses_all(target),
        system_wide: setup.scope == Scope::Cpu,
        ..prober.facts()
    };
    let reason = || why_not(spec, errno, facts);
    let hardware = spec.family.is_hardware();
    // An event that cannot interrupt the CPU can only be counted.
    let countable = || prober.probe(spec).count.is_yes();
    match errno {
        Errno::OPNOTSUPP | Errno::INVAL if hardware && countable() => {
            format!(
                "the CPU can count this event, but not sample by it: use -e cpu-clock, or count \
                 it with `prof stat -e {spec}`"
            )
        }
        Errno::NOENT | Errno::NODEV | Errno::OPNOTSUPP | Errno::INVAL if hardware => {
            format!("{}: use -e cpu-clock", reason())
        }
        _ if hardware || spec.is_clock() => advice(refusal(setup, errno, system, target)),
        Errno::ACCESS | Errno::PERM if matches!(setup.weight, Weight::Allocation { .. }) => {
            format!(
                "{}; without root, `prof record -e page-faults -c 1` shows which code touches new memory first",
                reason()
            )
        }
        Errno::NOENT | Errno::INVAL | Errno::ACCESS | Errno::PERM | Errno::NOSPC => reason(),
        _ => advice(refusal(setup, errno, system, target)),
    }
}

/// Why there is no ring, and what to do.
pub(crate) fn of_ring(setup: &Setup, errno: Errno, system: &System) -> String {
    advice_on_ring(refusal(setup, errno, system, None))
}

/// Why an event that opens alone does not open in a group.
pub(crate) fn of_member(spec: &EventSpec, leader: &EventSpec) -> Error {
    let reason = match (pmu(spec), pmu(leader)) {
        (Some(one), Some(other)) if one != other => {
            "different hardware counts them; sample them without braces"
        }
        (Some(_), _) => {
            "the CPU has too few counters for the whole group; make it smaller, or sample without \
             braces"
        }
        (None, _) => "the kernel does not count them together; sample them without braces",
    };
    Error::Group {
        event: spec.to_string(),
        leader: leader.to_string(),
        reason,
    }
}

/// The hardware that counts the event. The generic events are those of the PMU `cpu`.
fn pmu(spec: &EventSpec) -> Option<&str> {
    match &spec.family {
        Family::Pmu(name) => Some(name),
        family => family.is_hardware().then_some("cpu"),
    }
}

fn refusal(setup: &Setup, errno: Errno, system: &System, target: Option<Tid>) -> Refusal {
    Refusal {
        errno,
        rights: Rights::of(&Privileges::read().unwrap_or_default(), system),
        subject: Subject::of(&setup.spec),
        system_wide: setup.scope == Scope::Cpu,
        target_refuses: refuses_all(target),
    }
}

fn refuses_all(target: Option<Tid>) -> bool {
    target.is_some_and(|tid| Trial::Thread(tid).run().is_err())
}
