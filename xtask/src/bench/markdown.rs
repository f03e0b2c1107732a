//! The tables of docs/results/benchmarks.md.

use std::fmt::Write;

use anyhow::Result;

use super::drawing::Drawing;
use super::profiler::Profiler;
use super::recording::Costs;
use super::workload::Workload;
use super::{Options, Place, machine};

/// What was measured.
pub(super) struct Results<'a> {
    pub(super) profilers: &'a [Profiler],
    pub(super) recorded: &'a [Vec<Costs>],
    pub(super) drawn: &'a [Vec<Drawing>],
    /// The section about rates.
    pub(super) rates: &'a str,
    /// The section about events.
    pub(super) events: &'a str,
}

/// The whole page.
pub(super) fn page(
    place: &Place,
    workloads: &[Workload],
    results: &Results<'_>,
    options: &Options,
) -> Result<String> {
    let Results {
        profilers,
        recorded,
        drawn,
        rates,
        events,
    } = *results;
    let mut page = String::new();
    let Options {
        repetitions,
        frequency,
        ..
    } = options;
    writeln!(page, "# Benchmarks\n")?;
    writeln!(
        page,
        "prof beside perf and samply, on the same programs in one run: {}.",
        machine::date()
    )?;
    writeln!(page, "{}.", machine::description())?;
    writeln!(page, "Measured build: {}.", machine::build(options))?;
    writeln!(page, "Written by `cargo xtask bench`.")?;
    writeln!(
        page,
        "Medians of {repetitions} interleaved repetitions at {frequency} Hz.\n"
    )?;
    writeln!(page, "## Programs\n")?;
    for workload in workloads {
        writeln!(page, "- **{}**: {}", workload.name, workload.about)?;
    }
    recording_section(&mut page, workloads, profilers, recorded)?;
    writeln!(page, "{rates}{events}")?;
    drawing_section(&mut page, workloads, drawn)?;
    writeln!(page, "## Commands\n\n```sh")?;
    for profiler in profilers {
        writeln!(
            page,
            "{}",
            profiler
                .line()
                .replace(&*place.directory.to_string_lossy(), ".")
        )?;
    }
    writeln!(page, "prof report --flamegraph prof.svg")?;
    writeln!(
        page,
        "perf script | inferno-collapse-perf | inferno-flamegraph >perf.svg\n```"
    )?;
    Ok(page)
}

const ABOUT_RECORDING: &str = "
## Recording

- *slowdown*: wall time of the program recorded, over that of the program alone
- *its CPU*: CPU time of the program recorded, over that of the program alone
- *own CPU*: CPU time of the profiler itself (all its threads), over that of the program alone
- *taken*: samples in the recording, of those due (the program's CPU time times the frequency)
- *whole*: share of the stacks that reach their root, as perf reads the recording
- *lost*: samples lost, by the profiler's own account, in all repetitions together
";

fn recording_section(
    page: &mut String,
    workloads: &[Workload],
    profilers: &[Profiler],
    recorded: &[Vec<Costs>],
) -> Result<()> {
    writeln!(page, "{ABOUT_RECORDING}")?;
    writeln!(
        page,
        "| program | profiler | slowdown | its CPU | own CPU | bytes per sample | whole | taken | lost |"
    )?;
    writeln!(
        page,
        "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    for (workload, costs) in workloads.iter().zip(recorded) {
        for (profiler, costs) in profilers.iter().zip(costs) {
            writeln!(
                page,
                "| {} | {} | {:.2} | {:.3} | {:.1} % | {} | {} | {:.1} % | {} |",
                workload.name,
                profiler.name,
                costs.slowdown,
                costs.target_cpu,
                costs.own_cpu * 100.0,
                thousands(costs.bytes_per_sample),
                costs.whole.map_or_else(|| "-".into(), percent),
                costs.taken * 100.0,
                costs
                    .lost
                    .map_or_else(|| "not told".into(), |lost| lost.to_string()),
            )?;
        }
    }
    Ok(())
}

const ABOUT_DRAWING: &str = "
## From the recording to the SVG

Time, peak memory of the largest process, and their ratios to those of prof.
[scale.md](scale.md) has the same for a million samples.
";

fn drawing_section(
    page: &mut String,
    workloads: &[Workload],
    drawn: &[Vec<Drawing>],
) -> Result<()> {
    writeln!(page, "{ABOUT_DRAWING}")?;
    writeln!(
        page,
        "| program | way | seconds | ratio | CPU seconds | peak memory | ratio |"
    )?;
    writeln!(page, "| --- | --- | ---: | ---: | ---: | ---: | ---: |")?;
    for (workload, drawings) in workloads.iter().zip(drawn) {
        let Some(ours) = drawings.first() else {
            continue;
        };
        for drawing in drawings {
            writeln!(
                page,
                "| {} | {} | {:.2} | {:.1} | {:.2} | {} MB | {:.1} |",
                workload.name,
                drawing.name,
                drawing.wall_seconds,
                drawing.wall_seconds / ours.wall_seconds,
                drawing.cpu_seconds,
                thousands(drawing.peak_memory / 1e6),
                drawing.peak_memory / ours.peak_memory,
            )?;
        }
    }
    writeln!(page)?;
    Ok(())
}

/// A share that is shown as all or nothing only if it is.
fn percent(share: f64) -> String {
    match share * 100.0 {
        all if all >= 100.0 => "100 %".into(),
        some if some >= 99.9 => "99.9 %".into(),
        nothing if nothing <= 0.0 => "0 %".into(),
        some => format!("{some:.1} %"),
    }
}

/// A whole number with commas.
pub(super) fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_are_easy_to_read() {
        let numbers = [0.0, 7.4, 999.6, 65_528.0, 1_234_567.0].map(thousands);
        assert_eq!(numbers, ["0", "7", "1,000", "65,528", "1,234,567"]);
    }
}
