//! The events to sample, and how.

use crate::parsing::{CallGraphTerm, EventGroup, EventSpec, Family};
use crate::rate::Rate;

/// How callers are found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallGraph {
    /// Registers and a copy of the stack come with each sample, for unwinding with the program's
    /// unwind tables.
    Dwarf {
        /// Bytes of stack to copy, at most [`MAX_STACK_DUMP`](crate::rate::MAX_STACK_DUMP); `None`:
        /// suitable for the ring.
        dump: Option<u32>,
    },
    /// The kernel follows frame pointers.
    FramePointers,
    /// The CPU keeps the calls that have not returned (LBR); [`Dwarf`](Self::Dwarf) where it does
    /// not.
    LastBranches,
    /// Only the address is sampled.
    None,
}

/// How a sample is weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weight {
    /// By the period that the kernel reports.
    Period,
    /// The nanoseconds until the thread is on a CPU again.
    OffCpu,
    /// The same for a sample that is not the kernel's: the reader of the ring has read the stack of
    /// the blocked thread.
    Blocked,
    /// By the memory that a function was asked to allocate.
    Allocation {
        /// Which of its arguments say how much.
        size: SizeArguments,
        /// The weight of a call.
        by: AllocationWeight,
    },
}

impl Weight {
    /// Whether the sample is of memory mapped, which may be an allocator that does.
    pub fn is_of_mappings(self) -> bool {
        let size = SizeArguments::Mapping;
        matches!(self, Self::Allocation { size: found, .. } if found == size)
    }
}

/// The weight of a call of an allocator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocationWeight {
    /// The requested bytes.
    Bytes {
        /// One sample per this many bytes; 1 for each call.
        every: u64,
    },
    /// One.
    Calls,
}

impl AllocationWeight {
    /// The name of the event in recordings.
    pub fn event_name(self) -> &'static str {
        match self {
            Self::Bytes { .. } => "alloc-bytes",
            Self::Calls => "alloc-calls",
        }
    }
}

/// Which arguments of a function that allocates memory say how much. Arguments count from zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SizeArguments {
    /// In one argument, as in `malloc(size)`.
    One(usize),
    /// In two that are multiplied: `calloc(count, size)`.
    Product,
    /// In the second one, unless the first is null: `realloc(memory, size)`, which then calls
    /// `malloc`.
    Again,
    /// In the second one, if the memory has no file: `mmap(address, size, protection, flags, ...)`.
    Mapping,
}

/// One event to sample by.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRequest {
    /// Which event, and whose code counts.
    pub spec: EventSpec,
    /// How often.
    pub rate: Rate,
    /// How callers are found.
    pub call_graph: CallGraph,
    /// Whether the clock may replace it if the machine has no such event, or if the clock is better
    /// there: the user did not name the event.
    pub replaceable: bool,
    /// How a sample is weighed.
    pub weight: Weight,
}

/// Events that are scheduled together. An event that was not written in braces is a group of its
/// own.
#[derive(Clone, Debug, PartialEq)]
pub struct GroupRequest {
    /// The events, the leader first. Never empty.
    pub events: Vec<EventRequest>,
    /// Whether only the leader samples; its samples then hold the counts of all.
    pub leader_sampling: bool,
}

impl EventRequest {
    /// The default event: cycles, or the clock on machines without them and on virtual ones.
    pub fn usual(rate: Rate, call_graph: CallGraph) -> Self {
        Self {
            spec: EventSpec::cycles(),
            rate,
            call_graph,
            replaceable: true,
            weight: Weight::Period,
        }
    }

    /// Off-CPU time of threads: a sample is taken when a thread begins to wait.
    pub fn off_cpu(call_graph: CallGraph) -> Self {
        Self {
            spec: EventSpec::off_cpu(),
            rate: Rate::Period(1),
            call_graph,
            replaceable: false,
            weight: Weight::OffCpu,
        }
    }

    /// An event by its name, with the settings that its terms leave open: a rate if the user gave
    /// one, and a way to find callers.
    pub fn named(spec: EventSpec, rate: Option<Rate>, call_graph: CallGraph) -> Self {
        let rate = spec.terms.rate.or(rate).unwrap_or(usual_rate(&spec));
        let call_graph = match (spec.terms.call_graph, call_graph) {
            (None, CallGraph::Dwarf { dump }) => CallGraph::Dwarf {
                dump: spec.terms.stack_size.or(dump),
            },
            (None, call_graph) => call_graph,
            (Some(CallGraphTerm::Dwarf), CallGraph::Dwarf { dump }) => CallGraph::Dwarf {
                dump: spec.terms.stack_size.or(dump),
            },
            (Some(CallGraphTerm::Dwarf), _) => CallGraph::Dwarf {
                dump: spec.terms.stack_size,
            },
            (Some(CallGraphTerm::LastBranches), _) => CallGraph::LastBranches,
            (Some(CallGraphTerm::FramePointers), _) => CallGraph::FramePointers,
            (Some(CallGraphTerm::None), _) => CallGraph::None,
        };
        Self {
            spec,
            rate,
            call_graph,
            replaceable: false,
            weight: Weight::Period,
        }
    }
}

impl GroupRequest {
    /// An event that is scheduled alone.
    pub fn alone(event: EventRequest) -> Self {
        Self {
            events: vec![event],
            leader_sampling: false,
        }
    }

    /// A group as it was written; see [`EventRequest::named`].
    pub fn named(group: EventGroup, rate: Option<Rate>, call_graph: CallGraph) -> Self {
        let named = |spec| EventRequest::named(spec, rate, call_graph);
        Self {
            events: group.events.into_iter().map(named).collect(),
            leader_sampling: group.leader_sampling,
        }
    }
}

/// Samples per second of each thread if nothing else is said: not in step with timers.
pub const USUAL_HERTZ: u64 = 999;

/// Events at places of the user's choice are sampled at each hit, frequent events at a rate.
fn usual_rate(spec: &EventSpec) -> Rate {
    match spec.family {
        Family::Tracepoint | Family::Breakpoint | Family::Uprobe | Family::Uretprobe => {
            Rate::Period(1)
        }
        _ => Rate::Hertz(USUAL_HERTZ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::Catalog;

    fn check(text: &str, rate: Option<Rate>, expected: (Rate, CallGraph)) {
        let mut groups = Catalog::system().parse(text).expect("an event");
        let call_graph = CallGraph::Dwarf { dump: None };
        let group = GroupRequest::named(groups.remove(0), rate, call_graph);
        let event = &group.events[0];
        assert_eq!((event.rate, event.call_graph), expected, "{text}");
        assert!(!event.replaceable);
    }

    #[test]
    fn terms_go_before_flags_and_flags_before_what_is_usual() {
        let dwarf = |dump| CallGraph::Dwarf { dump };
        let usual = Rate::Hertz(USUAL_HERTZ);
        check("cycles", None, (usual, dwarf(None)));
        check("cycles", Some(Rate::Maximum), (Rate::Maximum, dwarf(None)));
        let seven = Some(Rate::Hertz(7));
        check("mem:0x1000", None, (Rate::Period(1), dwarf(None)));
        check("mem:0x1000", seven, (Rate::Hertz(7), dwarf(None)));
        let term = "faults/period=5,call-graph=fp/";
        check(term, seven, (Rate::Period(5), CallGraph::FramePointers));
        let term = "faults/freq=9,stack-size=4096/u";
        check(term, seven, (Rate::Hertz(9), dwarf(Some(4096))));
        let term = "faults/call-graph=lbr/";
        check(term, seven, (Rate::Hertz(7), CallGraph::LastBranches));
    }
}
