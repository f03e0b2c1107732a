//! Writes the results of the trial to docs/results/fleet.md.

use std::fmt::Write as _;
use std::slice;

use anyhow::Result;

use super::{Options, Stage, Stages, TABLES};
use crate::bench;

const MEGABYTE: f64 = (1 << 20) as f64;

pub(super) fn page(options: &Options, bases: usize, stages: &Stages) -> Result<String> {
    let Stages { all, growth, small } = stages;
    let mut page = String::from("# A data set of many machines\n\n");
    writeln!(
        page,
        "Written by `cargo xtask fleet-trial`: {}. {}.\nMeasured build: {}.\n",
        bench::date(),
        bench::description(),
        bench::measured_build(options.prof.as_deref()),
    )?;
    writeln!(
        page,
        "{} machines of {},\nof five services{}.\nMade from {bases} real recordings of a minute each \
         (`prof collect`, symbols stored by `prof archive`):\neach machine has those of its service \
         in another order, an hour in one push.\n",
        options.hosts,
        all.first().map(busy_cpus).unwrap_or_default(),
        programs(options),
    )?;
    page.push_str("## Pushing\n\n");
    goal(&mut page, all)?;
    pushing(&mut page, all)?;
    page.push_str("\n## Size\n\n");
    sizes(&mut page, all)?;
    if let Some(stage) = small.last() {
        of_small(&mut page, stage)?;
    }
    for stage in all {
        answers(&mut page, stage)?;
    }
    page.push_str(
        "\nSelf weights are compared with the sums of `prof report --json` over all recordings, \
         function by\nfunction, as integers; total weights with those of `prof query`. Numbers of \
         stacks differ, because\nother engines keep stacks of the same functions apart (by lines \
         and inlining), and prof adds them\nup. For Spark, CPU seconds and memory are those of \
         its Python, without its three Java virtual\nmachines, of a gigabyte each.\n",
    );
    if let Some(last) = growth.last() {
        writeln!(
            page,
            "\n## From hour to hour\n\nThe same data set with {} machines, hour after hour.\n",
            options.growth_hosts
        )?;
        pushing(&mut page, growth)?;
        page.push('\n');
        sizes(&mut page, growth)?;
        questions(&mut page, growth)?;
        on_paper(&mut page, options.growth_hosts, last)?;
    }
    Ok(page)
}

/// Whether pushing is as fast as it should be.
fn goal(page: &mut String, stages: &[Stage]) -> Result<()> {
    const GOAL: f64 = 500_000.0;
    let pushed = stages.iter().filter_map(|stage| stage.pushed.as_ref());
    let speeds = pushed.map(|pushed| pushed.samples as f64 / pushed.usage.cpu.as_secs_f64());
    let word = match speeds.reduce(f64::min) {
        Some(slowest) if slowest < GOAL => "missed",
        Some(_) => "met",
        None => "not measured",
    };
    writeln!(
        page,
        "The goal, a million samples a second on two cores (500,000 per CPU second), is {word}."
    )?;
    Ok(())
}

/// The names of the spools, if each service has its own.
fn programs(options: &Options) -> String {
    let names = options
        .recordings
        .iter()
        .filter_map(|spool| spool.file_name());
    let names: Vec<_> = names.map(|name| name.to_string_lossy()).collect();
    match names.len() {
        0 | 1 => String::new(),
        _ => format!(": {}", names.join(", ")),
    }
}

/// Such machines as have as many samples a minute at 19 Hz.
fn busy_cpus(stage: &Stage) -> String {
    let samples = stage.samples / stage.recordings;
    let cpus = samples.div_ceil(19 * 60);
    format!("{cpus} busy CPUs ({samples} samples a minute: 19 a second of each CPU)")
}

/// The costs of recordings with few samples.
fn of_small(page: &mut String, stage: &Stage) -> Result<()> {
    writeln!(
        page,
        "\n## Small machines\n\nFrom other recordings, of a machine of {}.\nFewer samples share \
         the cost of a recording, and that of a stack, where stacks recur.\n",
        busy_cpus(stage),
    )?;
    pushing(page, slice::from_ref(stage))?;
    page.push('\n');
    sizes(page, slice::from_ref(stage))?;
    questions(page, slice::from_ref(stage))
}

/// The usage of `prof query` by the number of hours.
fn questions(page: &mut String, stages: &[Stage]) -> Result<()> {
    page.push_str(
        "\n`prof query`, folded stacks of the whole data set:\n\n\
         | hours | samples | seconds | CPU seconds | peak memory | stacks | self weights equal |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | --- |\n",
    );
    for stage in stages {
        for answer in &stage.answers {
            writeln!(
                page,
                "| {} | {} | {:.1} | {:.1} | {:.0} MiB | {} | {} |",
                stage.hours,
                stage.samples,
                answer.usage.wall.as_secs_f64(),
                answer.usage.cpu.as_secs_f64(),
                answer.usage.peak_memory as f64 / MEGABYTE,
                answer.stacks,
                word(answer.own_equal),
            )?;
        }
    }
    Ok(())
}

/// The last measurement, extrapolated to the machines and hours of a large fleet.
fn on_paper(page: &mut String, hosts: u64, measured: &Stage) -> Result<()> {
    const HOSTS: f64 = 10_000.0;
    const MONTH: f64 = 30.0 * 24.0;
    let host_hours = (hosts * measured.hours) as f64;
    writeln!(
        page,
        "\n## On paper: 10,000 machines, 30 days\n\nFrom the {} hours of {hosts} machines above. \
         All grows with machines and hours, except\nthe table of stacks: the machines of a \
         service share it, so that it grows with hours at most. The\nengine for a whole month \
         is Spark or ClickHouse, on many machines.\n\n\
         | | measured | 10,000 machines, an hour | a month |\n| --- | ---: | ---: | ---: |",
        measured.hours
    )?;
    let mut row = |name: &str, value: f64, by_hosts: bool, unit: &str| {
        let hour = match by_hosts {
            true => value / host_hours * HOSTS,
            false => value / measured.hours as f64,
        };
        let month = hour * MONTH;
        writeln!(
            page,
            "| {name}, {unit} | {value:.1} | {hour:.1} | {month:.0} |"
        )
    };
    row("samples", measured.samples as f64 / 1e6, true, "millions")?;
    for (table, &bytes) in TABLES.iter().zip(&measured.sizes) {
        let size = bytes as f64 / MEGABYTE;
        row(
            &format!("table of {table}"),
            size,
            *table != "stacks",
            "MiB",
        )?;
    }
    if let Some(pushed) = &measured.pushed {
        // The figures of the last hour; all hours are alike.
        let cpu = pushed.usage.cpu.as_secs_f64() * measured.hours as f64;
        row("pushing", cpu, true, "CPU seconds")?;
    }
    if let Some(answer) = measured.answers.first() {
        let cpu = answer.usage.cpu.as_secs_f64();
        row("`prof query` of everything", cpu, true, "CPU seconds")?;
    }
    Ok(())
}

fn word(equal: bool) -> &'static str {
    if equal { "yes" } else { "no" }
}

fn pushing(page: &mut String, stages: &[Stage]) -> Result<()> {
    page.push_str(
        "The last hour. CPU seconds are user and system time.\n\n\
         | hours | recordings | samples | pushed in the last hour | CPU seconds | samples per CPU \
         second | peak memory | compaction, CPU seconds | peak memory |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    for stage in stages {
        write!(
            page,
            "| {} | {} | {} |",
            stage.hours, stage.recordings, stage.samples
        )?;
        let Some(pushed) = &stage.pushed else {
            page.push_str(" not measured | | | | | |\n");
            continue;
        };
        let cpu = pushed.usage.cpu.as_secs_f64();
        writeln!(
            page,
            " {} | {cpu:.0} | {:.0} | {:.0} MiB | {:.0} | {:.0} MiB |",
            pushed.samples,
            pushed.samples as f64 / cpu,
            pushed.usage.peak_memory as f64 / MEGABYTE,
            pushed.compaction.cpu.as_secs_f64(),
            pushed.compaction.peak_memory as f64 / MEGABYTE,
        )?;
    }
    Ok(())
}

fn sizes(page: &mut String, stages: &[Stage]) -> Result<()> {
    page.push_str(
        "Bytes per sample, as pushed and after `prof data compact`.\n\n\
         | hours | table | as pushed | compacted | compacted, MiB |\n\
         | ---: | --- | ---: | ---: | ---: |\n",
    );
    for stage in stages {
        let with_sum = |sizes: &[u64]| [sizes, &[sizes.iter().sum()]].concat();
        let after = with_sum(&stage.sizes);
        let before = stage.pushed.as_ref().map(|pushed| with_sum(&pushed.sizes));
        let a_sample = |bytes: u64| format!("{:.2}", bytes as f64 / stage.samples as f64);
        for (at, table) in TABLES.into_iter().chain(["all"]).enumerate() {
            let before = before.as_ref().map(|sizes| a_sample(sizes[at]));
            writeln!(
                page,
                "| {} | {table} | {} | {} | {:.1} |",
                stage.hours,
                before.unwrap_or_default(),
                a_sample(after[at]),
                after[at] as f64 / MEGABYTE,
            )?;
        }
    }
    Ok(())
}

fn answers(page: &mut String, stage: &Stage) -> Result<()> {
    writeln!(
        page,
        "\n## Queries over {} h\n\nFolded stacks of the whole data set: {} samples, {} functions.\n\n\
         | engine | seconds | CPU seconds | peak memory | stacks | self weights equal | total \
         weights equal |\n| --- | ---: | ---: | ---: | ---: | --- | --- |",
        stage.hours, stage.samples, stage.functions
    )?;
    for answer in &stage.answers {
        writeln!(
            page,
            "| {} | {:.1} | {:.1} | {:.0} MiB | {} | {} | {} |",
            answer.engine,
            answer.usage.wall.as_secs_f64(),
            answer.usage.cpu.as_secs_f64(),
            answer.usage.peak_memory as f64 / MEGABYTE,
            answer.stacks,
            word(answer.own_equal),
            word(answer.total_equal),
        )?;
    }
    Ok(())
}
