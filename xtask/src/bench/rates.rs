//! What recording costs at other rates.

use std::fmt::Write;

use anyhow::Result;

use super::recording::{self, Costs};
use super::workload::{self, Workload};
use super::{Options, Place, machine, profiler};

/// The costs on one workload at one rate.
pub(super) struct AtRate {
    workload: &'static str,
    hertz: u32,
    /// By the names of the profilers.
    costs: Vec<(&'static str, Costs)>,
}

/// The workloads to compare rates by: one with next to no stack, one with some on all CPUs, and one
/// with very much.
const WORKLOADS: [&str; 3] = ["shallow", "threads", "deep"];

/// Measures at all rates that the kernel accepts.
pub(super) fn measure_all(place: &Place, options: &Options) -> Result<Vec<AtRate>> {
    let _raised = match options.allow_sysctl && !options.rates.is_empty() {
        true => Some(machine::raise_max_rate()?),
        false => None,
    };
    let mut all = Vec::new();
    let workloads = workload::all(place, "")?;
    let compared = |workload: &&Workload| WORKLOADS.contains(&workload.name);
    for workload in workloads.iter().filter(compared) {
        for &hertz in &options.rates {
            all.extend(measure(place, workload, hertz, options)?);
        }
    }
    Ok(all)
}

fn measure(
    place: &Place,
    workload: &Workload,
    hertz: u32,
    options: &Options,
) -> Result<Option<AtRate>> {
    if i64::from(hertz) > i64::from(machine::max_rate()?) {
        println!(
            "!!! {hertz} Hz is above perf_event_max_sample_rate: left out (--allow-sysctl raises it)"
        );
        return Ok(None);
    }
    let place = Place {
        frequency: hertz,
        ..place.clone()
    };
    println!("at {hertz} Hz");
    let profilers = profiler::available(&place, options.allow_sysctl);
    let costs = recording::measure(&place, workload, &profilers, options.repetitions)?;
    let names = profilers.iter().map(|profiler| profiler.name);
    Ok(Some(AtRate {
        workload: workload.name,
        hertz,
        costs: names.zip(costs).collect(),
    }))
}

const ABOUT: &str = "
## Recording at other rates

As above, and the CPU time that the profiler takes for each sample that it keeps.
";

/// The section of docs/results/benchmarks.md.
pub(super) fn section(all: &[AtRate]) -> Result<String> {
    let mut page = String::new();
    if all.is_empty() {
        return Ok(page);
    }
    writeln!(page, "{ABOUT}")?;
    writeln!(
        page,
        "| program | Hz | profiler | slowdown | its CPU | own CPU | own \u{b5}s per sample | taken | lost |"
    )?;
    writeln!(
        page,
        "| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for AtRate {
        workload,
        hertz,
        costs,
    } in all
    {
        for (name, costs) in costs {
            let lost = costs.lost.map(|lost| lost.to_string());
            writeln!(
                page,
                "| {workload} | {hertz} | {name} | {:.2} | {:.3} | {:.1} % | {:.1} | {:.1} % | {} |",
                costs.slowdown,
                costs.target_cpu,
                costs.own_cpu * 100.0,
                costs.own_per_sample * 1e6,
                costs.taken * 100.0,
                lost.as_deref().unwrap_or("not told"),
            )?;
        }
    }
    Ok(page)
}
