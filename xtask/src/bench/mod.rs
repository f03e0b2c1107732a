//! `cargo xtask bench`: prof beside perf and samply, on the same programs in one run.
//!
//! Runs are interleaved — bare, prof, perf, ..., bare, prof, perf, ... — so that other load on the
//! machine affects all of them alike; each figure is a median.

mod collect;
mod drawing;
mod events;
mod machine;
mod markdown;
mod page;
mod profiler;
mod python;
mod rates;
pub(crate) mod readme;
mod scale;
mod second_opinion;
mod steady;
mod stopwatch;
mod top;
mod usage;
mod wholeness;
mod workload;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{process, workspace};
pub(crate) use machine::{date, description, measured_build};
pub(crate) use profiler::counts_of_prof;
pub(crate) use stopwatch::{Stopwatch, Usage};

#[derive(Args)]
pub(crate) struct Options {
    /// How often everything is measured.
    #[arg(short, long, default_value_t = 5)]
    repetitions: usize,
    /// Samples per second of the recordings that are drawn.
    #[arg(short = 'F', long, default_value_t = 999)]
    frequency: u32,
    /// Measures the steady cost of recording instead; all programs together take two hours per
    /// repetition.
    #[arg(long)]
    steady: bool,
    /// Seconds that programs run for: at least two lengths.
    #[arg(long, value_delimiter = ',', default_values_t = [5.0, 20.0, 60.0])]
    lengths: Vec<f64>,
    /// Samples per second of recordings whose steady cost is measured.
    #[arg(long, value_delimiter = ',', default_values_t = [99, 999])]
    rates: Vec<u32>,
    /// Asks perf how many stacks of these recordings are whole, too.
    #[arg(long)]
    whole: bool,
    /// The file for the table of steady costs.
    #[arg(long, default_value = "docs/results/steady.md")]
    steady_output: PathBuf,
    /// Measures only the cost of a sample by event, and prints it to the standard output.
    #[arg(long, conflicts_with = "steady")]
    only_events: bool,
    /// The file for the tables.
    #[arg(short, long, default_value = "docs/results/benchmarks.md")]
    output: PathBuf,
    /// Measures only programs whose names contain this.
    #[arg(long, default_value = "")]
    only: String,
    /// Measures reports of a very large recording instead: this one, or a new one.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true)]
    scale: Option<Option<PathBuf>>,
    /// The file for the tables of --scale.
    #[arg(long, default_value = "docs/results/scale.md")]
    scale_output: PathBuf,
    /// Measures the page of `prof report --html` instead, with these recordings or with two new
    /// ones. Compares it with speedscope (after `npm install --global speedscope`), and with the
    /// Firefox Profiler if FIREFOX_PROFILER is the folder `dist` that `yarn build-prod` makes in a
    /// checkout of its source.
    #[arg(long, value_name = "FILE", num_args = 0.., value_delimiter = ',', require_equals = true)]
    page: Option<Vec<PathBuf>>,
    /// The file for the tables of --page.
    #[arg(long, default_value = "docs/results/page.md")]
    page_output: PathBuf,
    /// Measures `prof collect` of all CPUs instead, while something else keeps them busy (root).
    #[arg(long)]
    collect: bool,
    /// Measures `prof top` beside `perf top` of all CPUs instead, while something else keeps them
    /// busy (root).
    #[arg(long)]
    top: bool,
    /// For how long.
    #[arg(long, default_value_t = 60)]
    minutes: u64,
    /// The file for the table of --collect.
    #[arg(long, default_value = "docs/results/collect.md")]
    collect_output: PathBuf,
    /// The file for the table of --top.
    #[arg(long, default_value = "docs/results/top.md")]
    top_output: PathBuf,
    /// Measures whole stacks and sampled time at four rates instead, of programs that are hard to
    /// sample at low ones (root).
    #[arg(long)]
    by_rate: bool,
    /// The file for the table of --by-rate.
    #[arg(long, default_value = "docs/results/rates.md")]
    by_rate_output: PathBuf,
    /// Measures the functions of this Python beside py-spy instead.
    #[arg(long, value_name = "FILE", num_args = 0..=1, require_equals = true,
          default_missing_value = "/usr/bin/python3")]
    python: Option<PathBuf>,
    /// The file for the tables of --python.
    #[arg(long, default_value = "docs/results/python.md")]
    python_output: PathBuf,
    /// How often the programs of that recording run: a round is a few hundred thousand samples.
    #[arg(long, default_value_t = 10)]
    rounds: u32,
    /// Measures this build of prof instead of a new one.
    #[arg(long, value_name = "FILE")]
    prof: Option<PathBuf>,
    /// Sets perf_event_paranoid to 1 while samply records, which needs it, and
    /// perf_event_max_sample_rate to 100000 while events are compared; restores both.
    #[arg(long)]
    allow_sysctl: bool,
}

/// The paths of a run.
#[derive(Clone)]
struct Paths {
    /// For recordings and drawings.
    directory: PathBuf,
    prof: PathBuf,
    stopwatch: Stopwatch,
    frequency: u32,
}

/// Measures, prints progress, and writes the tables.
pub(crate) fn run(options: &Options) -> Result<()> {
    ensure!(options.repetitions > 0, "nothing to do in 0 repetitions");
    let paths = prepare(options)?;
    if options.steady {
        return steady::measure_all(&paths, options);
    }
    if options.only_events {
        let events = events::measure_all(&paths, options)?;
        println!("\n{}", events::section(&events)?);
        return Ok(());
    }
    if options.collect {
        return collect::measure_all(&paths, options);
    }
    if options.top {
        return top::measure_all(&paths, options);
    }
    if options.by_rate {
        return rates::measure_all(&paths, options);
    }
    if let Some(python) = &options.python {
        return python::measure_all(&paths, options, python);
    }
    if let Some(recording) = &options.scale {
        return scale::measure_all(&paths, options, recording.as_deref());
    }
    if let Some(recordings) = &options.page {
        return page::measure_all(&paths, options, recordings);
    }
    let workloads = workload::all(&paths, &options.only)?;
    ensure!(
        !workloads.is_empty(),
        "no workload is called {:?}",
        options.only
    );
    let drawn = drawing::measure_all(&paths, &workloads, options.repetitions)?;
    let events = events::section(&events::measure_all(&paths, options)?)?;
    let results = markdown::Results {
        drawn: &drawn,
        events: &events,
        second_opinion: &second_opinion::section(&paths, &workloads)?,
    };
    let text = markdown::page(&workloads, &results, options)?;
    std::fs::write(workspace::root().join(&options.output), &text)
        .with_context(|| format!("cannot write {}", options.output.display()))?;
    println!("\n{text}\nwritten to {}", options.output.display());
    Ok(())
}

fn prepare(options: &Options) -> Result<Paths> {
    let target = workspace::target_directory()?.join("bench");
    let directory = target.join("run");
    std::fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    Ok(Paths {
        prof: match &options.prof {
            Some(prof) => std::fs::canonicalize(prof)
                .with_context(|| format!("there is no {}", prof.display()))?,
            None => build(&target)?,
        },
        stopwatch: Stopwatch::build(&target)?,
        directory,
        frequency: options.frequency,
    })
}

fn build(target: &Path) -> Result<PathBuf> {
    // prof is also one of the programs to be profiled: the one with much debug info.
    let mut build = process::cargo();
    build.current_dir(workspace::root());
    build.args([
        "build",
        "--release",
        "--locked",
        "--package",
        "prof",
        "--package",
        "prof-fleet",
        "--target-dir",
    ]);
    build.arg(target).env("CARGO_PROFILE_RELEASE_DEBUG", "full");
    process::run(&mut build)?;
    Ok(target.join("release/prof"))
}

/// The middle one of some measurements.
fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => f64::NAN,
        count if count % 2 == 1 => values[count / 2],
        count => (values[count / 2 - 1] + values[count / 2]) / 2.0,
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn medians() {
        assert_eq!(super::median([3.0, 1.0, 2.0]), 2.0);
        assert_eq!(super::median([4.0, 1.0, 2.0, 3.0]), 2.5);
        assert!(super::median([]).is_nan());
    }
}
