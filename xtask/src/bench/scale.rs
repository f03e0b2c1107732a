//! Reports of a very large recording, beside other tools on the same file.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::drawing::{Way, is_possible, run};
use super::markdown::thousands;
use super::stopwatch::Usage;
use super::{Options, Paths, machine, median, workload};
use crate::{process, workspace};

const PERF: &[&str] = &["perf", "inferno-collapse-perf", "inferno-flamegraph"];

/// `$0` is prof, `$2` the recording. The others are compared with the first.
const WHOLE: [Way; 7] = [
    way("prof, table", "\"$0\" report -i \"$2\"", &[]),
    way(
        "prof, table, no inlines",
        "\"$0\" report --no-inline -i \"$2\"",
        &[],
    ),
    way(
        "prof, flamegraph",
        "\"$0\" report -i \"$2\" --flamegraph prof.svg",
        &[],
    ),
    way(
        "prof, for the Firefox Profiler",
        "\"$0\" report -i \"$2\" --firefox prof.json",
        &[],
    ),
    way(
        "samply import, no symbols",
        "HOME=$PWD samply import \"$2\" --save-only -o samply.json",
        &["samply"],
    ),
    way(
        "perf script, no inlines, inferno",
        "perf script --no-inline -i \"$2\" | inferno-collapse-perf | inferno-flamegraph >perf.svg",
        PERF,
    ),
    way(
        "perf report, no inlines",
        "perf report --stdio --no-inline -i \"$2\"",
        &["perf"],
    ),
];

/// With stack dumps: perf shows inlined functions only for them.
const PARTS: [Way; 2] = [
    way("prof", "\"$0\" report -i \"$2\" --flamegraph prof.svg", &[]),
    way(
        "perf script, inferno",
        "timeout 3000 perf script -i \"$2\" | inferno-collapse-perf | inferno-flamegraph >perf.svg",
        PERF,
    ),
];

/// Samples per second of the parts for which perf shows inlined functions.
const PART_RATES: [u32; 3] = [100, 999, 4999];

const fn way(name: &'static str, draw: &'static str, needs: &'static [&'static str]) -> Way {
    Way {
        name,
        record: "true",
        draw,
        needs,
    }
}

/// Measures and writes the page.
pub(super) fn measure_all(paths: &Paths, options: &Options, given: Option<&Path>) -> Result<()> {
    let middle = paths.directory.join("middle.data");
    let compiler = process::find("g++").context("the programs measured need g++")?;
    workload::record_at(paths, &middle, "4999", &workload::compilation(compiler))?;
    let whole = match given {
        Some(file) => std::path::absolute(file)?,
        None => record(paths, options.rounds)?,
    };
    let samples = count(paths, &whole)?;
    let mut page = head(&whole, samples, options)?;
    table(
        &mut page,
        &WHOLE,
        &measure(paths, &WHOLE, &whole, options.repetitions)?,
    )?;
    page.push_str(ABOUT_PARTS);
    for rate in PART_RATES {
        let file = paths.directory.join(format!("part{rate}.data"));
        record_copies(paths, &file, rate)?;
        writeln!(
            page,
            "\n{} samples:\n",
            thousands(count(paths, &file)? as f64)
        )?;
        table(&mut page, &PARTS, &measure(paths, &PARTS, &file, 1)?)?;
    }
    page.push_str(COMMANDS);
    let output = workspace::root().join(&options.scale_output);
    std::fs::write(&output, &page).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{page}\nwritten to {}", output.display());
    Ok(())
}

/// Real programs, one after the other, `$1` times; `$0` is prof, `$2` the folder of its sources.
const PROGRAMS: &str = "
for round in $(seq \"$1\"); do
  python3 \"$2\"/xtask/demo/queens.py
  g++ -O2 -std=gnu++17 -c \"$2\"/tests/programs/inlining.cpp -o /dev/null
  \"$0\" report -i middle.data --folded /dev/null
  gzip -9 -c \"$0\"
  sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x+1 from c where x<1500000)
    select sum(x*x%7), count(distinct x%1000) from c'
done >/dev/null 2>&1";

fn programs(paths: &Paths, rounds: u32) -> Vec<PathBuf> {
    let mut words = ["bash", "-c", PROGRAMS].map(PathBuf::from).to_vec();
    let root = workspace::root().to_path_buf();
    words.extend([paths.prof.clone(), rounds.to_string().into(), root]);
    words
}

/// A recording of a few hundred thousand samples per round.
pub(super) fn record(paths: &Paths, rounds: u32) -> Result<PathBuf> {
    let file = paths.directory.join("scale.data");
    let mut record = Command::new(&paths.prof);
    record.args(["record", "-q", "-e", "cpu-clock", "-F", "7000", "-o"]);
    record.arg(&file).arg("--").args(programs(paths, rounds));
    process::run(record.current_dir(&paths.directory))?;
    Ok(file)
}

/// Makes a recording by perf with stack dumps.
pub(super) fn record_copies(paths: &Paths, file: &Path, rate: u32) -> Result<()> {
    let mut record = Command::new("perf");
    record.args(["record", "-q", "-e", "cpu-clock", "-F", &rate.to_string()]);
    record.args(["--call-graph", "dwarf,8192", "-o"]).arg(file);
    record.arg("--").args(programs(paths, 1));
    record.current_dir(&paths.directory);
    // Once in a while perf 6.1 ends itself over the build id of a file.
    let mut recorded = process::run(&mut record);
    for _ in 0..3 {
        recorded = recorded.or_else(|_| process::run(&mut record));
    }
    recorded
}

fn count(paths: &Paths, file: &Path) -> Result<u64> {
    let mut report = Command::new(&paths.prof);
    report.args(["report", "--no-inline", "--json", "-", "-i"]);
    let json: serde_json::Value = serde_json::from_str(&process::output(report.arg(file))?)?;
    let samples = json["total"]["samples"].as_u64();
    samples.with_context(|| format!("{} has no samples", file.display()))
}

/// The usage of each way, `None` if it is not possible here; repetitions are interleaved.
fn measure(
    paths: &Paths,
    ways: &[Way],
    file: &Path,
    repetitions: usize,
) -> Result<Vec<Option<Usage>>> {
    let mut usages: Vec<Vec<Usage>> = ways.iter().map(|_| Vec::new()).collect();
    let possible: Vec<bool> = ways.iter().map(is_possible).collect();
    for repetition in 1..=repetitions {
        for ((way, usages), _) in ways
            .iter()
            .zip(&mut usages)
            .zip(&possible)
            .filter(|(_, p)| **p)
        {
            // A time of minutes is precise without repetition.
            if usages
                .first()
                .is_none_or(|first: &Usage| first.wall.as_secs() < 60)
            {
                println!("{}: {repetition} of {repetitions}", way.name);
                usages.push(run(paths, way.draw, &[file.to_owned()])?);
            }
        }
    }
    Ok(usages.iter().map(|usages| middle(usages)).collect())
}

fn middle(usages: &[Usage]) -> Option<Usage> {
    usages.first()?;
    let seconds = |of: fn(&Usage) -> std::time::Duration| {
        std::time::Duration::from_secs_f64(median(usages.iter().map(|u| of(u).as_secs_f64())))
    };
    Some(Usage {
        wall: seconds(|usage| usage.wall),
        cpu: seconds(|usage| usage.cpu),
        peak_memory: median(usages.iter().map(|usage| usage.peak_memory as f64)) as u64,
        ..Usage::default()
    })
}

fn table(page: &mut String, ways: &[Way], usages: &[Option<Usage>]) -> Result<()> {
    writeln!(
        page,
        "| way | CPU seconds | ratio | seconds | ratio | peak memory | ratio |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
    )?;
    let first = usages.first().copied().flatten().unwrap_or_default();
    for (way, usage) in ways.iter().zip(usages) {
        let Some(usage) = usage else { continue };
        writeln!(
            page,
            "| {} | {:.2} | {:.1} | {:.2} | {:.1} | {} MB | {:.1} |",
            way.name,
            usage.cpu.as_secs_f64(),
            usage.cpu.as_secs_f64() / first.cpu.as_secs_f64(),
            usage.wall.as_secs_f64(),
            usage.wall.as_secs_f64() / first.wall.as_secs_f64(),
            thousands(usage.peak_memory as f64 / 1e6),
            usage.peak_memory as f64 / first.peak_memory as f64,
        )?;
    }
    Ok(())
}

fn head(file: &Path, samples: u64, options: &Options) -> Result<String> {
    Ok(format!(
        "# A million samples\n\n\
         Written by `cargo xtask bench --scale`: {}. {}.\n\
         Measured build: {}.\n\
         Medians of {} interleaved repetitions; one repetition if it takes over a minute. CPU seconds\n\
         are user and system time of all processes and threads; peak memory is that of the largest\n\
         process.\n\n\
         All read one recording of prof: {} samples, {} MB, real programs, one after the other.\n\
         samply looks up no symbols and draws nothing: a browser requests symbols later. Compare it\n\
         with the line for the Firefox Profiler: there prof writes the same format with symbols,\n\
         lines and inlined functions. perf shows no inlined functions for such a file.\n\n\
         The goal is a third of samply's time, and with inlined functions a hundredth of that of perf\n\
         script and inferno.\n\n",
        machine::date(),
        machine::description(),
        machine::measured_build(options.prof.as_deref()),
        options.repetitions,
        thousands(samples as f64),
        thousands(std::fs::metadata(file)?.len() as f64 / 1e6),
    ))
}

const ABOUT_PARTS: &str = "
## With inlined functions

perf shows inlined functions only for stacks that it unwinds itself, from stack dumps (`perf record
--call-graph dwarf,8192`), and a million dumps would be 8 GB. So these are shorter recordings, at
several rates; prof unwinds them, too, before it draws. perf's time grows with the samples, prof's
mostly with the programs: the larger the part, the larger the ratio. perf's CPU seconds are too low:
it does not wait for the addr2line that it starts for each file.
";

const COMMANDS: &str = "
One thread and four give the same views (`crates/report/tests/profiles/perf.rs`).

```sh
prof report -i big.data
prof report -i big.data --flamegraph prof.svg
prof report -i big.data --firefox prof.json
samply import big.data --save-only -o samply.json
perf script --no-inline -i big.data | inferno-collapse-perf | inferno-flamegraph >perf.svg
perf report --stdio --no-inline -i big.data
perf script -i part.data | inferno-collapse-perf | inferno-flamegraph >perf.svg
```
";
