//! `cargo xtask fleet-trial`: a data set of many machines, made from real recordings, and what
//! prof and other engines say of it. Writes docs/results/fleet.md.

mod engines;
mod page;
mod recordings;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
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
    /// The engines are asked when so many hours are there.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 6])]
    hours: Vec<u64>,
    /// What `prof collect` recorded in a minute each, its spool [default: ten minutes of this
    /// machine, which needs root].
    #[arg(long, value_name = "FOLDER")]
    recordings: Option<PathBuf>,
    /// The prof to try, beside prof-fleet [default: that of target/release].
    #[arg(long)]
    prof: Option<PathBuf>,
    /// The Python that has the engines [default: that of the tests].
    #[arg(long)]
    python: Option<PathBuf>,
    /// Pushes nothing: asks what an interrupted trial has pushed, of as many machines and hours.
    #[arg(long)]
    resume: bool,
    /// Where the tables go.
    #[arg(long, default_value = "docs/results/fleet.md")]
    output: PathBuf,
}

/// Where things are.
struct Place {
    folder: PathBuf,
    data: PathBuf,
    prof: PathBuf,
    fleet: PathBuf,
    python: PathBuf,
    stopwatch: Stopwatch,
}

/// What was found out when so many hours were there.
struct Stage {
    hours: u64,
    recordings: u64,
    samples: u64,
    /// Nothing if an earlier trial did it.
    pushed: Option<Pushed>,
    /// Bytes by table, compacted.
    sizes: Vec<u64>,
    answers: Vec<Answer>,
    /// How many functions the answers name.
    functions: usize,
}

/// What pushing the last hour took, and then compaction.
struct Pushed {
    usage: Usage,
    samples: u64,
    compaction: Usage,
    /// Bytes by table, before compaction.
    sizes: Vec<u64>,
}

const TABLES: [&str; 3] = ["samples", "stacks", "runs"];

pub(crate) fn run(options: &Options) -> Result<()> {
    let place = prepare(options)?;
    let spool = match &options.recordings {
        Some(folder) => folder.clone(),
        None => record(&place)?,
    };
    let bases = recordings::with_names(&place.prof, &spool, &place.folder.join("base"))?;
    let known: Vec<(u64, Sums)> = bases
        .iter()
        .map(|base| reported(&place, &base.path))
        .collect::<Result<_>>()?;
    let mut expected = Sums::new();
    let mut stages: Vec<Stage> = Vec::new();
    let (mut hour, mut samples) = (0, 0);
    for &hours in &options.hours {
        let (mut usage, mut pushed_samples) = (Usage::default(), 0);
        while hour < hours {
            (usage, pushed_samples) = (Usage::default(), 0);
            for host in 0..options.hosts {
                let chosen = choose(host, hour, bases.len());
                if !options.resume {
                    usage.add(&push(&place, &bases, host, hour, &chosen)?);
                }
                for &number in &chosen {
                    let (count, sums) = &known[number];
                    pushed_samples += count;
                    engines::add(&mut expected, sums);
                }
            }
            samples += pushed_samples;
            hour += 1;
            println!("hour {hour}: {pushed_samples} samples");
        }
        let before = sizes(&place)?;
        let compaction = prof_data(&place, "compact")?;
        prof_data(&place, "check")?;
        stages.push(Stage {
            hours,
            recordings: options.hosts * hours * 60,
            samples,
            pushed: (!options.resume).then_some(Pushed {
                usage,
                samples: pushed_samples,
                compaction,
                sizes: before,
            }),
            sizes: sizes(&place)?,
            answers: ask_all(&place, &expected)?,
            functions: expected.len(),
        });
    }
    let text = page::page(options, bases.len(), &stages)?;
    let output = workspace::root().join(&options.output);
    fs::write(&output, &text).with_context(|| format!("cannot write {}", output.display()))?;
    println!("\n{text}\nwritten to {}", output.display());
    Ok(())
}

fn prepare(options: &Options) -> Result<Place> {
    let target = workspace::target_directory()?;
    let folder = target.join("fleet-trial");
    let data = folder.join("data");
    if !options.resume {
        let _ = fs::remove_dir_all(&data);
    }
    fs::create_dir_all(&folder)?;
    let prof = options
        .prof
        .clone()
        .unwrap_or_else(|| target.join("release/prof"));
    let prof = fs::canonicalize(&prof).with_context(|| format!("no {}", prof.display()))?;
    let python = options.python.clone();
    Ok(Place {
        stopwatch: Stopwatch::build(&folder)?,
        fleet: prof.with_file_name("prof-fleet"),
        python: python.unwrap_or_else(|| target.join("python/bin/python3")),
        folder,
        data,
        prof,
    })
}

/// Ten minutes of this machine, as recordings of a minute each.
fn record(place: &Place) -> Result<PathBuf> {
    let spool = place.folder.join("spool");
    let mut collect = Command::new(&place.fleet);
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
fn reported(place: &Place, recording: &Path) -> Result<(u64, Sums)> {
    let mut report = Command::new(&place.prof);
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

/// Which recordings a machine made in the minutes of an hour: others than the rest.
fn choose(host: u64, hour: u64, count: usize) -> Vec<usize> {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let minutes = (0..60).map(|minute| (host << 32 | hour << 16 | minute).wrapping_mul(MIX));
    minutes
        .map(|mixed| (mixed >> 32) as usize % count)
        .collect()
}

/// Pushes an hour of a machine; returns what that took.
fn push(place: &Place, bases: &[Base], host: u64, hour: u64, chosen: &[usize]) -> Result<Usage> {
    const SECOND: u64 = 1_000_000_000;
    const SERVICES: u64 = 5;
    let folder = place.folder.join("minutes");
    fs::create_dir_all(&folder)?;
    let today = SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs() / 86_400 * 86_400;
    let begin = Duration::from_secs(today - 86_400 + hour * 3600).as_nanos() as u64;
    let mut words = vec![place.fleet.clone().into_os_string()];
    words.extend(["push", "--service"].map(Into::into));
    words.push(format!("service-{}", host % SERVICES).into());
    words.extend(["--host".into(), format!("host-{host:03}").into()]);
    for (minute, &number) in (0_u64..).zip(chosen) {
        let path = folder.join(format!("{minute}.data"));
        // No two machines' clocks agree to the nanosecond.
        bases[number].write_at(begin + minute * 60 * SECOND + host, &path)?;
        words.push(path.into());
    }
    words.push(place.data.clone().into());
    Ok(place.stopwatch.measure(&place.folder, words)?.0)
}

fn prof_data(place: &Place, verb: &str) -> Result<Usage> {
    let words = [
        place.fleet.as_os_str(),
        "data".as_ref(),
        verb.as_ref(),
        place.data.as_os_str(),
    ];
    Ok(place.stopwatch.measure(&place.folder, words)?.0)
}

/// Bytes of each table.
fn sizes(place: &Place) -> Result<Vec<u64>> {
    let size = |table: &&str| -> Result<u64> {
        let mut folders = vec![place.data.join(table)];
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

/// Asks prof and all engines that there are.
fn ask_all(place: &Place, expected: &Sums) -> Result<Vec<Answer>> {
    let engines = Engine::ALL
        .iter()
        .filter(|engine| engine.is_there(&place.python));
    let mut answers: Vec<Answer> = Vec::new();
    let mut first = None;
    for engine in engines {
        println!("asking {}", engine.name);
        let (answer, totals) = engine.ask(place, expected, first.as_ref())?;
        first.get_or_insert(totals);
        answers.push(answer);
    }
    Ok(answers)
}
