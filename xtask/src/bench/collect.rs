//! The CPU time and memory of `prof collect` on a busy machine over time, and its bounds.

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::usage::Usage;
use super::{Options, Paths, machine};
use crate::{process, workspace};

/// The time between two readings.
const INTERVAL: Duration = Duration::from_secs(10);

/// Bounds the memory that glibc holds back: see packaging/prof-collect.service.
const MALLOC: [(&str, &str); 3] = [
    ("MALLOC_ARENA_MAX", "1"),
    ("MALLOC_MMAP_THRESHOLD_", "131072"),
    ("MALLOC_TRIM_THRESHOLD_", "1048576"),
];

/// A reading of its usage.
#[derive(Clone, Copy)]
struct Look {
    usage: Usage,
    /// Bytes in the spool.
    spool: u64,
    /// Seconds that the CPUs of the machine were busy since it began to count.
    busy: f64,
}

/// Runs `prof collect`, and writes its usage.
pub(super) fn measure_all(paths: &Paths, options: &Options) -> Result<()> {
    let program = paths.prof.with_file_name("prof-fleet");
    let (data, spool) = (paths.directory.join("data"), paths.directory.join("spool"));
    for folder in [&data, &spool] {
        let _ = fs::remove_dir_all(folder);
    }
    let mut command = Command::new(&program);
    command.args(["collect", "--service", "bench", "--duration"]);
    command.arg(format!("{}m", options.minutes));
    command.arg("--spool").arg(&spool).arg(&data);
    // As in the systemd unit.
    for (name, value) in MALLOC {
        command.env(name, value);
    }
    let mut child = command
        .spawn()
        .with_context(|| format!("cannot start {}", program.display()))?;
    let looks = watch(&mut child, &spool)?;
    let text = page(options, &looks, &runs(&data)?)?;
    let output = workspace::root().join(&options.collect_output);
    fs::write(&output, &text).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{text}\nwritten to {}", output.display());
    Ok(())
}

/// Looks at it until it ends.
fn watch(child: &mut Child, spool: &Path) -> Result<Vec<Look>> {
    let begin = Instant::now();
    let mut looks = Vec::new();
    while child.try_wait()?.is_none() {
        if let Some(look) = look(child.id(), spool, begin) {
            looks.push(look);
        }
        thread::sleep(INTERVAL);
    }
    let status = child.wait()?;
    ensure!(status.success(), "prof collect failed: {status}");
    ensure!(looks.len() > 1, "it ended at once");
    Ok(looks)
}

fn look(pid: u32, spool: &Path, begin: Instant) -> Option<Look> {
    let files = fs::read_dir(spool).into_iter().flatten().flatten();
    let sizes = files.filter_map(|file| Some(file.metadata().ok()?.len()));
    Some(Look {
        usage: Usage::of(pid, begin)?,
        spool: sizes.sum(),
        busy: machine::busy().unwrap_or(0.0),
    })
}

/// A row of the table of runs: a verdict, how many recordings have it, their samples and losses.
fn runs(data: &Path) -> Result<String> {
    let python = workspace::target_directory()?.join("python/bin/python3");
    let query = format!(
        "import duckdb\n\
         for row in duckdb.sql(\"\"\"\n\
             select verdict, count(*), sum(samples), sum(lost),\n\
                 count(distinct run_id), round(100 * min(coverage), 1), round(100 * avg(coverage), 1)\n\
             from read_parquet('{}/runs/**/*.parquet') group by 1 order by 2 desc\"\"\").fetchall():\n\
         \tprint('|', ' | '.join('' if value is None else str(value) for value in row), '|')",
        data.display()
    );
    process::output(Command::new(python).args(["-c", &query]))
}

fn page(options: &Options, looks: &[Look], runs: &str) -> Result<String> {
    let mut page = String::from("# `prof collect` in the long run\n\n");
    writeln!(
        page,
        "Written by `cargo xtask bench --collect`: {}. {}.",
        machine::date(),
        machine::description()
    )?;
    writeln!(
        page,
        "Measured build: {}.",
        machine::measured_build(options.prof.as_deref())
    )?;
    let (first, last) = (&looks[0], &looks[looks.len() - 1]);
    let seconds = last.usage.time - first.usage.time;
    let minutes = seconds / 60.0;
    let busy = (last.busy - first.busy) / seconds;
    writeln!(
        page,
        "`prof collect --service bench DIRECTORY` of all CPUs, at 19 Hz or as many as its bound on CPU\n\
         time allows, for {minutes:.0} minutes in which {busy:.2} CPUs were busy. Memory is resident\n\
         memory and the rings together.\n"
    )?;
    let most = |value: fn(&Look) -> u64| looks.iter().map(value).max().unwrap_or(0) as f64;
    const MEGABYTE: f64 = (1 << 20) as f64;
    let rows = [
        (
            "CPU time, percent of a core",
            first.usage.percent_until(&last.usage),
            0.5,
        ),
        (
            "CPU time in the worst minute",
            worst_minute(looks),
            f64::NAN,
        ),
        (
            "memory, maximum, MiB",
            most(|look| look.usage.memory) / MEGABYTE,
            64.0,
        ),
        (
            "spool, maximum, MiB",
            most(|look| look.spool) / MEGABYTE,
            256.0,
        ),
    ];
    page.push_str("| quantity | measured | bound | met |\n| --- | ---: | ---: | --- |\n");
    for (what, measured, bound) in rows {
        let (bound, holds) = match bound.is_nan() {
            true => (String::new(), ""),
            false => (
                bound.to_string(),
                if measured <= bound { "yes" } else { "no" },
            ),
        };
        writeln!(page, "| {what} | {measured:.2} | {bound} | {holds} |")?;
    }
    page.push_str(
        "\nThe recordings, by the data set's table of runs:\n\n\
         | verdict | recordings | samples | lost | distinct | coverage, minimum, % | mean, % |\n\
         | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
    );
    page.push_str(runs);
    Ok(page)
}

/// The highest usage in any minute.
fn worst_minute(looks: &[Look]) -> f64 {
    let looks_a_minute = (60 / INTERVAL.as_secs()) as usize;
    let minutes = looks.windows(looks_a_minute + 1);
    let of = |minute: &[Look]| {
        minute[0]
            .usage
            .percent_until(&minute[minute.len() - 1].usage)
    };
    minutes.map(of).fold(0.0, f64::max)
}
