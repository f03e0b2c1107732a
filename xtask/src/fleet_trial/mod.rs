//! `cargo xtask fleet-trial`: a data set of many machines, made from real recordings, queried with
//! prof and other engines. Writes docs/results/fleet.md.

mod engines;
mod page;
mod recordings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use clap::Args;
use serde_json::Value;

use crate::bench::{Stopwatch, Usage};
use crate::{process, workspace};
use engines::{Answer, Engine, Sums};
use recordings::Base;

#[derive(Args)]
pub(crate) struct Options {
    /// How many machines.
    #[arg(long, default_value_t = 200)]
    hosts: u64,
    /// Queries all engines after these numbers of hours.
    #[arg(long, value_delimiter = ',', default_values_t = [1])]
    hours: Vec<u64>,
    /// How many machines show how size and time grow.
    #[arg(long, default_value_t = 20)]
    growth_hosts: u64,
    /// Queries prof after these numbers of hours.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 2, 4, 6])]
    growth_hours: Vec<u64>,
    /// The spool of a `prof collect` that recorded one file per minute, on a machine of many CPUs,
    /// or on a small one at a frequency that many times as high [default: ten minutes of this
    /// machine, which needs root]; may be repeated for services that run different programs.
    #[arg(long, value_name = "FOLDER")]
    recordings: Vec<PathBuf>,
    /// Such a spool of a small machine: shows what a recording costs, beside what a sample costs.
    #[arg(long, value_name = "FOLDER")]
    small: Option<PathBuf>,
    /// The prof to try, beside prof-fleet [default: that of target/release].
    #[arg(long)]
    prof: Option<PathBuf>,
    /// The Python that has the engines [default: that of the tests].
    #[arg(long)]
    python: Option<PathBuf>,
    /// Pushes nothing: queries the data of an interrupted trial with as many machines and hours.
    #[arg(long)]
    resume: bool,
    /// The file for the tables.
    #[arg(long, default_value = "docs/results/fleet.md")]
    output: PathBuf,
}

/// The paths of a trial.
struct Paths {
    folder: PathBuf,
    prof: PathBuf,
    fleet: PathBuf,
    python: PathBuf,
    stopwatch: Stopwatch,
}

/// The results after a number of hours.
struct Stage {
    hours: u64,
    recordings: u64,
    samples: u64,
    /// `None` if an earlier trial pushed it.
    pushed: Option<Pushed>,
    /// Bytes by table, compacted.
    sizes: Vec<u64>,
    answers: Vec<Answer>,
    /// How many functions the answers name.
    functions: usize,
}

impl Stages {
    /// Whether all engines found the sums of `prof report`. Those of small machines may differ:
    /// the data set names what one recording has no symbols of and another has.
    fn sums_are_equal(&self) -> bool {
        let stages = self.all.iter().chain(&self.growth);
        let mut answers = stages.flat_map(|stage| &stage.answers);
        answers.all(|answer| answer.own_equal && answer.total_equal)
    }
}

/// The usage of pushing the last hour, and of compaction after it.
struct Pushed {
    usage: Usage,
    samples: u64,
    compaction: Usage,
    /// Bytes by table, before compaction.
    sizes: Vec<u64>,
}

const TABLES: [&str; 3] = ["samples", "stacks", "runs"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let paths = prepare(options)?;
    let spools = match &options.recordings[..] {
        [] => vec![record(&paths)?],
        spools => spools.to_vec(),
    };
    let small = options.small.as_deref().map(|spool| {
        let fleet = Fleet {
            hosts: SMALL_HOSTS,
            hours: &[1],
            data: paths.folder.join("small"),
            engines: &Engine::ALL[..1],
            is_there: false,
        };
        Trial::of(&paths, &[spool.to_owned()], "base-small")?.try_out(&fleet)
    });
    let small = small.transpose()?.unwrap_or_default();
    let trial = Trial::of(&paths, &spools, "base")?;
    let growth = Fleet {
        hosts: options.growth_hosts,
        hours: &options.growth_hours,
        data: paths.folder.join("growth"),
        engines: &Engine::ALL[..1],
        is_there: false,
    };
    let growth = trial.try_out(&growth)?;
    let all = Fleet {
        hosts: options.hosts,
        hours: &options.hours,
        data: paths.folder.join("data"),
        engines: &Engine::ALL,
        is_there: options.resume,
    };
    let all = trial.try_out(&all)?;
    let stages = Stages { all, growth, small };
    let bases = trial.bases.iter().map(Vec::len).sum();
    let text = page::page(options, bases, &stages)?;
    let output = workspace::root().join(&options.output);
    fs::write(&output, &text).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{text}\nwritten to {}", output.display());
    ensure!(stages.sums_are_equal(), "the sums differ");
    Ok(())
}

/// The results.
struct Stages {
    all: Vec<Stage>,
    growth: Vec<Stage>,
    /// Of small machines.
    small: Vec<Stage>,
}

/// The number of services.
const SERVICES: u64 = 5;

/// The number of small machines.
const SMALL_HOSTS: u64 = 5;

/// The bases of all machines' recordings, of one spool after the other.
struct Trial<'a> {
    paths: &'a Paths,
    bases: Vec<Vec<Base>>,
    /// The number of samples and the weights of functions of each base.
    known: Vec<Vec<(u64, Sums)>>,
}

/// Machines, and when to run which queries.
struct Fleet<'a> {
    hosts: u64,
    hours: &'a [u64],
    data: PathBuf,
    engines: &'a [Engine],
    /// Whether an earlier trial pushed it.
    is_there: bool,
}

impl<'a> Trial<'a> {
    /// Stores the names of the recordings in the spools, in this folder of the paths.
    fn of(paths: &'a Paths, spools: &[PathBuf], folder: &str) -> Result<Self> {
        let (mut bases, mut known) = (Vec::new(), Vec::new());
        for (number, spool) in spools.iter().enumerate() {
            let folder = paths.folder.join(format!("{folder}-{number}"));
            let named = recordings::with_names(&paths.prof, spool, &folder)?;
            let reports = named.iter().map(|base| reported(paths, &base.path));
            known.push(reports.collect::<Result<_>>()?);
            bases.push(named);
        }
        Ok(Self {
            paths,
            bases,
            known,
        })
    }

    fn try_out(&self, fleet: &Fleet<'_>) -> Result<Vec<Stage>> {
        if !fleet.is_there {
            let _ = fs::remove_dir_all(&fleet.data);
        }
        let (paths, data) = (self.paths, &fleet.data);
        let mut expected = Sums::new();
        let mut stages: Vec<Stage> = Vec::new();
        let (mut hour, mut samples) = (0, 0);
        for &hours in fleet.hours {
            let (mut usage, mut pushed_samples) = (Usage::default(), 0);
            while hour < hours {
                (usage, pushed_samples) = self.push_hour(fleet, hour, &mut expected)?;
                samples += pushed_samples;
                hour += 1;
                println!("hour {hour}: {pushed_samples} samples");
            }
            let before = sizes(data)?;
            let compaction = prof_data(paths, data, "compact")?;
            prof_data(paths, data, "check")?;
            stages.push(Stage {
                hours,
                recordings: fleet.hosts * hours * 60,
                samples,
                pushed: (!fleet.is_there).then_some(Pushed {
                    usage,
                    samples: pushed_samples,
                    compaction,
                    sizes: before,
                }),
                sizes: sizes(data)?,
                answers: ask_all(paths, data, fleet.engines, &expected)?,
                functions: expected.len(),
            });
        }
        Ok(stages)
    }

    /// Pushes an hour of all machines, and adds up their weights. Returns the usage, and the number
    /// of samples.
    fn push_hour(&self, fleet: &Fleet<'_>, hour: u64, expected: &mut Sums) -> Result<(Usage, u64)> {
        let (mut usage, mut samples) = (Usage::default(), 0);
        for host in 0..fleet.hosts {
            let spool = self.spool_of(host);
            let chosen = choose(host, hour, self.bases[spool].len());
            if !fleet.is_there {
                usage.add(&self.push(&fleet.data, host, hour, &chosen)?);
            }
            for &number in &chosen {
                let (count, sums) = &self.known[spool][number];
                samples += count;
                engines::add(expected, sums);
            }
        }
        Ok((usage, samples))
    }

    /// Which spool has the recordings of a machine: that of its service.
    fn spool_of(&self, host: u64) -> usize {
        (host % SERVICES) as usize % self.bases.len()
    }

    /// Pushes an hour of a machine; returns the usage.
    fn push(&self, data: &Path, host: u64, hour: u64, chosen: &[usize]) -> Result<Usage> {
        const SECOND: u64 = 1_000_000_000;
        let paths = self.paths;
        let folder = paths.folder.join("minutes");
        fs::create_dir_all(&folder)?;
        let today = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400 * 86_400;
        let begin = Duration::from_secs(today - 86_400 + hour * 3600).as_nanos() as u64;
        let mut words = vec![paths.fleet.clone().into_os_string()];
        words.extend(["push", "--service"].map(Into::into));
        words.push(format!("service-{}", host % SERVICES).into());
        words.extend(["--host".into(), format!("host-{host:03}").into()]);
        for (minute, &number) in (0_u64..).zip(chosen) {
            let path = folder.join(format!("{minute}.data"));
            // No two machines' clocks agree to the nanosecond.
            self.bases[self.spool_of(host)][number]
                .write_at(begin + minute * 60 * SECOND + host, &path)?;
            words.push(path.into());
        }
        words.push(data.into());
        Ok(paths.stopwatch.measure(&paths.folder, words)?.0)
    }
}

fn prepare(options: &Options) -> Result<Paths> {
    let target = workspace::target_directory()?;
    let folder = target.join("fleet-trial");
    fs::create_dir_all(&folder)?;
    let prof = options
        .prof
        .clone()
        .unwrap_or_else(|| target.join("release/prof"));
    let prof = fs::canonicalize(&prof).with_context(|| format!("no {}", prof.display()))?;
    let python = options.python.clone();
    Ok(Paths {
        stopwatch: Stopwatch::build(&folder)?,
        fleet: prof.with_file_name("prof-fleet"),
        python: python.unwrap_or_else(|| target.join("python/bin/python3")),
        folder,
        prof,
    })
}

/// Ten minutes of this machine, as recordings of a minute each.
fn record(paths: &Paths) -> Result<PathBuf> {
    let spool = paths.folder.join("spool");
    let mut collect = Command::new(&paths.fleet);
    collect.args([
        "collect",
        "--service",
        "trial",
        "--duration",
        "10m",
        "--spool",
    ]);
    process::run(collect.arg(&spool))?;
    Ok(spool)
}

/// The samples of a recording and the own weights of its functions, as `prof report` has them.
fn reported(paths: &Paths, recording: &Path) -> Result<(u64, Sums)> {
    let mut report = Command::new(&paths.prof);
    report.args(["report", "--json", "-", "-i"]).arg(recording);
    let json: Value = serde_json::from_str(&process::output(&mut report)?)?;
    let samples = json["total"]["samples"].as_u64();
    let mut sums = Sums::new();
    for row in json["functions"].as_array().into_iter().flatten() {
        // As in folded stacks.
        let name = row["name"].as_str().unwrap_or_default().replace(';', ":");
        let own = row["self"]["value"].as_u64().unwrap_or(0);
        if own > 0 {
            *sums.entry(name).or_default() += own;
        }
    }
    Ok((samples.context("a report without samples")?, sums))
}

/// The recordings of a machine in the minutes of an hour: their order differs by machine.
fn choose(host: u64, hour: u64, count: usize) -> Vec<usize> {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let minutes = (0..60).map(|minute| (host << 32 | hour << 16 | minute).wrapping_mul(MIX));
    minutes
        .map(|mixed| (mixed >> 32) as usize % count)
        .collect()
}

fn prof_data(paths: &Paths, data: &Path, verb: &str) -> Result<Usage> {
    let words = [
        paths.fleet.as_os_str(),
        "data".as_ref(),
        verb.as_ref(),
        data.as_os_str(),
    ];
    Ok(paths.stopwatch.measure(&paths.folder, words)?.0)
}

/// Bytes of each table.
fn sizes(data: &Path) -> Result<Vec<u64>> {
    let size = |table: &&str| -> Result<u64> {
        let mut folders = vec![data.join(table)];
        let mut bytes = 0;
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder)? {
                let entry = entry?;
                match entry.file_type()?.is_dir() {
                    true => folders.push(entry.path()),
                    false => bytes += entry.metadata()?.len(),
                }
            }
        }
        Ok(bytes)
    };
    TABLES.iter().map(size).collect()
}

/// Asks those of the engines that there are.
fn ask_all(paths: &Paths, data: &Path, engines: &[Engine], expected: &Sums) -> Result<Vec<Answer>> {
    let engines = engines
        .iter()
        .filter(|engine| engine.is_there(&paths.python));
    let mut answers: Vec<Answer> = Vec::new();
    let mut first = None;
    for engine in engines {
        println!("asking {}", engine.name);
        let (answer, totals) = engine.ask(paths, data, expected, first.as_ref())?;
        first.get_or_insert(totals);
        answers.push(answer);
    }
    Ok(answers)
}
