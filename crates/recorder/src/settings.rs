//! The settings of the recording, for the verdict.

use prof_events::system::Privileges;
use prof_events::system::{self, System};
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
    RecordingSettings {
        call_graph: match setups().next().map(|setup| setup.stacks) {
            Some(Stacks::Dump(bytes)) => {
                CallGraphSettings::Dump(opened.sizes.dump.unwrap_or(bytes))
            }
            Some(Stacks::FramePointers) => CallGraphSettings::FramePointers,
            Some(Stacks::LastBranches { .. }) => CallGraphSettings::LastBranches,
            Some(Stacks::None) | None => CallGraphSettings::None,
        },
        unwound,
        by_clock: setups().all(|setup| setup.spec.is_clock()),
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
        root: Privileges::read().unwrap_or_default().is_root(),
        by_other_tool: false,
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
