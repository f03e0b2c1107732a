//! The settings of the recording, for the verdict.

use prof_events::system::{self, System};
use prof_events::system::{Capability, Privileges};
use prof_events::{AllocationWeight, Opened, Sampling, Setup, Stacks, Weight};
use prof_model::{CallGraphSettings, Quality, RecordingSettings, SampledBy};

use crate::options::Options;
use crate::source::FASTEST;

/// A quality without samples, which only has the settings.
pub(crate) fn settings(opened: &Opened, options: &Options) -> Quality {
    let mut setups = opened.events.iter().map(|event| &event.setup);
    Quality {
        fallbacks: opened.fallbacks.clone(),
        sampled_by: sampled_by(opened),
        every_event: setups.all(samples_each),
        settings: Some(recording_settings(opened, options.unwind)),
        ..Quality::default()
    }
}

/// Whether each event becomes a sample.
fn samples_each(setup: &Setup) -> bool {
    let thinned = matches!(
        setup.weight,
        Weight::Allocation { by: AllocationWeight::Bytes { every }, .. } if every > 1
    );
    setup.sampling == Sampling::Period(1) && !thinned
}

fn recording_settings(opened: &Opened, unwound: bool) -> RecordingSettings {
    let setups = || opened.events.iter().map(|event| &event.setup);
    let system = System::read().ok();
    let online = system.as_ref().map_or(1, |system| system.cpus.len());
    let rings = match opened.cpus.len() {
        0 => online,
        cpus => cpus,
    };
    let by_ptrace = opened.sizes.ring == 0;
    let privileges = Privileges::read().unwrap_or_default();
    RecordingSettings {
        call_graph: call_graph(opened),
        unwound,
        by_clock: setups().all(|setup| setup.spec.is_clock()),
        with_clock: setups().any(|setup| setup.spec.is_clock()),
        rate: setups().find_map(|setup| match setup.sampling {
            Sampling::Hertz(rate) | Sampling::MeasuredPeriod(rate, _) => Some(rate),
            Sampling::Period(_) | Sampling::Never => None,
        }),
        max_rate: match by_ptrace {
            true => FASTEST,
            false => system.map_or(0, |system| system.max_rate),
        },
        ring: opened.sizes.ring,
        largest_ring: system::largest_ring(rings),
        root: privileges.is_root(),
        may_raise_priority: privileges.has(Capability::SysNice),
        by_other_tool: false,
    }
}

/// Dumps are as large as the smallest of them: those of hits are small by default.
fn call_graph(opened: &Opened) -> CallGraphSettings {
    let stacks = || opened.events.iter().map(|event| event.setup.stacks);
    let dumps = stacks().filter_map(|stacks| match stacks {
        Stacks::Dump(bytes) => Some(bytes),
        _ => None,
    });
    match stacks().next() {
        Some(Stacks::Dump(bytes)) => CallGraphSettings::Dump(dumps.min().unwrap_or(bytes)),
        Some(Stacks::FramePointers) => CallGraphSettings::FramePointers,
        Some(Stacks::LastBranches { .. }) => CallGraphSettings::LastBranches,
        Some(Stacks::None) | None => CallGraphSettings::None,
    }
}

/// What determines how many samples there are.
fn sampled_by(opened: &Opened) -> SampledBy {
    let setups = || opened.events.iter().map(|event| &event.setup);
    let by_rate = |sampling| matches!(sampling, Sampling::Hertz(_) | Sampling::MeasuredPeriod(..));
    if setups().any(|setup| matches!(setup.weight, Weight::Allocation { .. })) {
        SampledBy::Allocations
    } else if setups().any(|setup| by_rate(setup.sampling)) {
        SampledBy::Rate
    } else {
        SampledBy::Period
    }
}

#[cfg(test)]
mod tests {
    use prof_events::parsing::EventSpec;
    use prof_events::{OpenedEvent, Sizes};

    use super::*;

    #[test]
    fn the_smallest_dumps_are_known() {
        let check = |stacks: &[Stacks], expected| {
            let event = |&stacks| OpenedEvent {
                setup: Setup {
                    stacks,
                    ..Setup::new(EventSpec::cpu_clock(), Sampling::Period(1))
                },
                leader: None,
                ids: Vec::new(),
            };
            let opened = Opened {
                events: stacks.iter().map(event).collect(),
                late: Vec::new(),
                cpus: Vec::new(),
                sizes: Sizes {
                    ring: 8 << 20,
                    dump: Some(65_528),
                    wakeup: 0,
                },
                fallbacks: Vec::new(),
            };
            assert_eq!(recording_settings(&opened, true).call_graph, expected);
        };
        let (large, hits) = (Stacks::Dump(65_528), Stacks::Dump(4096));
        check(&[large], CallGraphSettings::Dump(65_528));
        check(&[hits], CallGraphSettings::Dump(4096));
        check(&[large, hits, Stacks::None], CallGraphSettings::Dump(4096));
        check(&[Stacks::FramePointers], CallGraphSettings::FramePointers);
    }
}
