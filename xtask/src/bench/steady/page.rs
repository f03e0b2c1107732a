//! The table of docs/results/steady.md.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::super::markdown::{percent, thousands};
use super::super::{Options, machine, readme};
use super::{Costs, program};
use crate::workspace;

const ABOUT: &str = "# Steady cost

The cost of a profiler: per second of recording, and once. Each program runs for several lengths,
alone and under each profiler in turn; each cost is the line of least squares through the
measurements. Written by `cargo xtask bench --steady`, as is the table of costs in the README; a run
for some programs or rates leaves the rows of the others as they are.

- *own CPU*: CPU time of the profiler itself, all its threads, per second of the program: the slope
- *fixed*: its CPU time in a recording of no length
- *wake-ups*: context switches of all its threads, per second of the program
- *program's CPU*, *wall*: how much longer the program itself takes than alone, by the slopes
- *memory*: the profiler's peak up to half a second before its end
- *taken*: samples in the recording, of those due (the program's CPU time times the frequency)
- *whole*: share of the stacks that reach their root, as perf reads the recording
- *lost*: samples lost, by the profiler's own account, in all runs together
- *measured*: build of prof, lengths in seconds x repetitions, day, machine

The event is `cpu-clock:u`, with `-a` `cpu-clock`. A cost of a thousandth or less is too
small to measure in short runs on a shared machine.
";

const HEAD: &str = "\
| program | Hz | profiler | own CPU | fixed | wake-ups/s | program's CPU | wall | memory | taken \
| whole | lost | measured |
| --- | ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |";

/// Writes the page, and keeps the previous rows of programs that were not measured now.
pub(super) fn write(all: &[Costs], options: &Options) -> Result<()> {
    let path = workspace::root().join(&options.steady_output);
    let before = std::fs::read_to_string(&path).unwrap_or_default();
    let measured = |row: &str| all.iter().any(|costs| row.starts_with(&key(costs)));
    let mut rows: Vec<String> = before
        .lines()
        .filter(|line| line.starts_with("| ") && !HEAD.contains(line) && !measured(line))
        .map(String::from)
        .collect();
    rows.extend(all.iter().map(|costs| row(costs, options)));
    rows.sort_by_key(|row| place(row));
    let mut page = String::from(ABOUT);
    writeln!(page, "\n## Programs\n")?;
    for (name, about) in program::ABOUT {
        writeln!(page, "- **{name}**: {about}")?;
    }
    writeln!(page, "\n## Costs\n\n{HEAD}\n{}", rows.join("\n"))?;
    std::fs::write(&path, &page).with_context(|| format!("cannot write {}", path.display()))?;
    println!("\n{page}\nwritten to {}", path.display());
    match path.ends_with(readme::RESULTS) {
        true => readme::update(workspace::root(), &page),
        false => Ok(()),
    }
}

/// How the rows of a program at a rate begin.
fn key(costs: &Costs) -> String {
    format!("| {} | {} | ", costs.program, costs.hertz)
}

/// The order of rows: by program, then by rate.
fn place(row: &str) -> (usize, u32) {
    let mut cells = row.split('|').map(str::trim).skip(1);
    let name = cells.next().unwrap_or_default();
    let hertz = cells.next().and_then(|hertz| hertz.parse().ok());
    let program = program::ABOUT.iter().position(|about| about.0 == name);
    (program.unwrap_or(usize::MAX), hertz.unwrap_or(0))
}

fn row(costs: &Costs, options: &Options) -> String {
    let more = |factor: f64| format!("{:+.1} %", (factor - 1.0) * 100.0);
    let share = |share: Option<f64>| share.map_or_else(|| "-".into(), percent);
    let lengths: Vec<String> = options.lengths.iter().map(f64::to_string).collect();
    format!(
        "{}{} | {:.2} % | {:.2} s | {:.0} | {} | {} | {} MB | {} | {} | {} | {}, {} x {}, {}, {} |",
        key(costs),
        costs.profiler,
        costs.own_cpu.slope * 100.0,
        costs.own_cpu.fixed,
        costs.wakeups.slope,
        more(costs.target_cpu),
        more(costs.wall),
        thousands(costs.memory / 1e6),
        costs
            .taken
            .map_or_else(|| "-".into(), |taken| format!("{:.1} %", taken * 100.0)),
        share(costs.whole),
        costs
            .lost
            .map_or_else(|| "not reported".into(), |lost| lost.to_string()),
        machine::measured_build(options.prof.as_deref()),
        lengths.join("/"),
        options.repetitions,
        machine::date(),
        machine::description(),
    )
}
