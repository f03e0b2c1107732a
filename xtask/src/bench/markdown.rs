//! The tables of docs/results/benchmarks.md.

use std::fmt::Write;

use anyhow::Result;

use super::drawing::Drawing;
use super::workload::Workload;
use super::{Options, machine};

/// The measurements.
pub(super) struct Results<'a> {
    pub(super) drawn: &'a [Vec<Drawing>],
    /// The section about events.
    pub(super) events: &'a str,
    /// The section about framehop.
    pub(super) second_opinion: &'a str,
}

/// The whole page.
pub(super) fn page(
    workloads: &[Workload],
    results: &Results<'_>,
    options: &Options,
) -> Result<String> {
    let mut page = String::new();
    let Options {
        repetitions,
        frequency,
        ..
    } = options;
    writeln!(page, "# Benchmarks\n")?;
    writeln!(
        page,
        "prof beside perf, on the same programs in one run: {}.",
        machine::date()
    )?;
    writeln!(page, "{}.", machine::description())?;
    writeln!(
        page,
        "Measured build: {}.",
        machine::measured_build(options.prof.as_deref())
    )?;
    writeln!(page, "Written by `cargo xtask bench`.")?;
    writeln!(
        page,
        "Medians of {repetitions} interleaved repetitions at {frequency} Hz.\n"
    )?;
    writeln!(
        page,
        "`cargo xtask bench --steady` measures the cost of recording.\n"
    )?;
    writeln!(page, "## Programs\n")?;
    for workload in workloads {
        writeln!(page, "- **{}**: {}", workload.name, workload.about)?;
    }
    writeln!(page, "{}", results.events)?;
    page += results.second_opinion;
    drawing_section(&mut page, workloads, results.drawn)?;
    writeln!(page, "## Commands\n\n```sh")?;
    writeln!(page, "prof report --flamegraph prof.svg")?;
    writeln!(
        page,
        "perf script | inferno-collapse-perf | inferno-flamegraph >perf.svg\n```"
    )?;
    Ok(page)
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
pub(super) fn percent(share: f64) -> String {
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
