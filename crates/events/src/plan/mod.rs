//! From the user's request to the first request to the kernel.

pub(crate) mod advice;
pub(crate) mod fallback;
pub(crate) mod measured_period;
mod narrowing;
pub(crate) mod refusal;
pub(crate) mod sample_cost;
pub(crate) mod trial;

use crate::attr::arch;
use crate::attr::sample_period;
use crate::attr::setup::{Reports, Role, Sampling, Scope, Setup, Stacks, Tracking, WithDump};
use crate::parsing::{EventSpec, Precise};
use crate::rate::{MAX_STACK_DUMP, Rate};
use crate::request::event::{CallGraph, EventRequest, Weight};
use crate::request::sizes::{BufferRequest, Sizes};
use crate::request::target_threads::Threads;
use crate::request::{Request, Toggling};
use crate::system::{self, System};

/// An event to be opened.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) setup: Setup,
    /// The index of the group's leader, if that is another event.
    pub(crate) leader: Option<usize>,
}

/// What rings and dumps must fit: the fastest event and the largest stacks.
pub(crate) fn buffer_request(request: &Request, system: &System, cpus: usize) -> BufferRequest {
    let events = || request.groups.iter().flat_map(|group| &group.events);
    let dumps = events().filter_map(|event| match event.call_graph {
        CallGraph::Dwarf { dump } => Some(dump),
        // Few CPUs can; the others copy the stack.
        CallGraph::LastBranches => Some(None),
        CallGraph::FramePointers | CallGraph::None => None,
    });
    // Dumps as large as the ring allows, unless all have a requested size.
    let dump = dumps.reduce(|a, b| a.zip(b).map(|(a, b)| a.max(b)));
    BufferRequest {
        ring: request.ring_bytes,
        dump,
        rate: events().map(|event| rate(event, system)).max().unwrap_or(1),
        cpus,
        memory: system::memory(),
        page: rustix::param::page_size() as u64,
    }
}

/// Samples per second of a busy CPU, if known. The rate of a probe is unknown: its dumps are small
/// instead.
fn rate(event: &EventRequest, system: &System) -> u64 {
    match event.rate {
        Rate::Hertz(hertz) => hertz.min(system.max_rate),
        Rate::Maximum => system.max_rate,
        Rate::Period(_) if is_hit(event) => 1,
        Rate::Period(period) => {
            // Others are thought of as a clock's nanoseconds.
            let per_second =
                sample_period::per_second_at_most(&event.spec).unwrap_or(1_000_000_000);
            per_second / period.max(1)
        }
    }
}

/// Whether the event comes in bursts of its own, not with time.
fn is_hit(event: &EventRequest) -> bool {
    matches!(event.rate, Rate::Period(_))
        && !event.spec.is_clock()
        && !event.spec.family.is_hardware()
}

/// Bytes of stack copied with each hit, so that a burst of a thousand fits the ring: deeper
/// stacks are read from the live target.
const HIT_DUMP: u32 = 4096;

/// The events in order, each as well as it could be. The first one reports threads and mappings
/// as well.
pub(crate) fn events(request: &Request, system: &System, sizes: Sizes) -> Vec<Planned> {
    let mut planned: Vec<Planned> = Vec::new();
    for group in &request.groups {
        let leader = planned.len();
        for event in &group.events {
            let member = planned.len() > leader;
            let mut setup = setup(event, request, system, sizes);
            if planned.is_empty() {
                setup.reports.tracking = Tracking::Also;
            }
            if member {
                setup.role = Role::Member;
            }
            setup.reads_group = group.leader_sampling && group.events.len() > 1;
            // Counts take space, and all members have the leader's samples.
            setup.with_dump.entry_registers &= !setup.reads_group;
            if setup.reads_group && member {
                setup.sampling = Sampling::Never;
            }
            planned.push(Planned {
                setup,
                leader: member.then_some(leader),
            });
        }
    }
    let counting = exit_counted(&planned);
    if let Some(counting) = counting.and_then(|index| planned.get_mut(index)) {
        counting.setup.reports.exit_counts = true;
    }
    // An event that new threads and children inherit tracks them: sampled threads run code that
    // those map.
    let is_partial = |planned: &Planned| planned.setup.scope == Scope::Thread;
    if request.needs_tracking() || planned.iter().any(is_partial) {
        track_separately(&mut planned, request, sizes);
    }
    if request.threads.are_all() && request.groups.iter().flat_map(|it| &it.events).any(is_hit) {
        // Our own work is sampled, too: if each hit woke us, our own switches, for example, would
        // be endless hits.
        let many = (sizes.ring / 4) as u32;
        planned
            .iter_mut()
            .for_each(|one| one.setup.wakeup_bytes = many);
    }
    planned
}

/// Whether one event only is sampled by.
pub(crate) fn samples_one_event(planned: &[Planned]) -> bool {
    let sampling = |planned: &&Planned| !planned.setup.only_tracks();
    planned.iter().filter(sampling).count() == 1
}

/// The event whose counts are reported as threads end: the only one, or of several, the first
/// clock. For CPUs, the kernel does not count the work of each thread; for events that are read as
/// a group, it counts that of all members.
fn exit_counted(planned: &[Planned]) -> Option<usize> {
    let can = |setup: &Setup| {
        setup.weight == Weight::Period && setup.scope != Scope::Cpu && !setup.reads_group
    };
    let suits = |setup: &Setup| planned.len() == 1 || sample_period::is_time(&setup.spec);
    let mut setups = planned.iter().map(|planned| &planned.setup);
    setups.position(|setup| can(setup) && suits(setup))
}

/// Adds a separate event that reports threads and mappings, and switches if requested.
fn track_separately(planned: &mut Vec<Planned>, request: &Request, sizes: Sizes) {
    let mut tracking = tracking(request, sizes);
    for Planned { setup, .. } in planned.iter_mut() {
        setup.reports.tracking = Tracking::Elsewhere;
        tracking.reports.switches |= std::mem::take(&mut setup.reports.switches);
    }
    planned.push(Planned {
        setup: tracking,
        leader: None,
    });
}

fn tracking(request: &Request, sizes: Sizes) -> Setup {
    Setup {
        reports: Reports {
            tracking: Tracking::Only,
            switches: false,
            exit_counts: false,
        },
        scope: scope(request, true),
        enable_on_exec: matches!(request.threads, Threads::UntilExec(_)),
        wakeup_bytes: sizes.wakeup,
        ..Setup::new(EventSpec::dummy(), Sampling::Never)
    }
}

fn scope(request: &Request, inherit: bool) -> Scope {
    match (request.threads.are_all(), inherit) {
        (true, _) => Scope::Cpu,
        (false, true) => Scope::Descendants,
        (false, false) => Scope::Thread,
    }
}

fn setup(event: &EventRequest, request: &Request, system: &System, sizes: Sizes) -> Setup {
    let usual = |most| {
        if is_hit(event) {
            HIT_DUMP.min(most)
        } else {
            most
        }
    };
    let stacks = match (event.call_graph, sizes.dump) {
        (CallGraph::Dwarf { dump }, Some(most)) => {
            Stacks::Dump(dump.unwrap_or(usual(most)).min(most))
        }
        (CallGraph::LastBranches, Some(most)) => Stacks::LastBranches {
            index: true,
            otherwise: usual(most),
        },
        (CallGraph::FramePointers, _) => Stacks::FramePointers,
        (CallGraph::None | CallGraph::Dwarf { .. } | CallGraph::LastBranches, _) => Stacks::None,
    };
    let (stacks, entry_registers) = with_entry_registers(stacks, event, system);
    let sampling = match event.rate {
        Rate::Hertz(hertz) => Sampling::Hertz(hertz),
        Rate::Maximum => Sampling::Hertz(system.max_rate),
        Rate::Period(period) => Sampling::Period(period),
    };
    Setup {
        replaceable: event.replaceable,
        stacks,
        with_dump: WithDump {
            user_chain: request.user_chains,
            entry_registers,
        },
        reports: Reports {
            tracking: Tracking::Elsewhere,
            switches: event.weight == Weight::OffCpu,
            exit_counts: false,
        },
        weight: event.weight,
        scope: scope(request, event.spec.terms.inherit.unwrap_or(true)),
        enable_on_exec: matches!(request.threads, Threads::UntilExec(_))
            && request.toggling != Toggling::BeginsDisabled,
        precise: match event.spec.modifiers.precise {
            // A precise address is not from the same moment as the registers and the stack,
            // which unwinding must not mix.
            Precise::Level(0) if stacks == Stacks::None => 2,
            Precise::Level(level) => level,
            Precise::Maximum => 3,
        },
        wakeup_bytes: sizes.wakeup,
        ..Setup::new(event.spec.clone(), sampling)
    }
}

/// Requests registers at the kernel's entry if an event can hit it: clocks wait until it is over.
/// They follow the stack in a sample, and the kernel lets the stack use the whole record, so enough
/// space must remain.
fn with_entry_registers(stacks: Stacks, event: &EventRequest, system: &System) -> (Stacks, bool) {
    /// Space for everything but the stack, with the longest chain that the kernel makes by default.
    const RESERVED: u32 = 2048;
    const LONGEST_CHAIN: i64 = 127;
    let spec = &event.spec;
    let hits = spec.modifiers.kernel && spec.family.is_hardware() && arch::ENTRY_REGISTERS != 0;
    match stacks {
        Stacks::Dump(bytes) if hits && system.max_stack <= LONGEST_CHAIN => {
            (Stacks::Dump(bytes.min(MAX_STACK_DUMP - RESERVED)), true)
        }
        _ => (stacks, false),
    }
}

#[cfg(test)]
mod perf_record;
