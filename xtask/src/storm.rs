//! `cargo xtask storm`: processes, threads and libraries that come and go by the ten thousand.
//!
//! Like the tests, but for minutes: prof's memory stays bounded, and no record of a thread, process
//! or mapping is lost.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use clap::Args;

use crate::{bench, process, workspace};

#[derive(Args)]
pub(crate) struct Options {
    /// Divides the numbers of processes, threads and libraries.
    #[arg(long, default_value_t = 1)]
    smaller: u64,
}

/// A storm, and the counts that perf must find in its recording.
struct Storm {
    name: &'static str,
    /// Its name in storm.c.
    argument: &'static str,
    count: u64,
    show: &'static str,
    record: &'static str,
}

const STORMS: [Storm; 3] = [
    Storm {
        name: "processes",
        argument: "fork",
        count: 10_000,
        show: "--show-task-events",
        record: "PERF_RECORD_FORK",
    },
    Storm {
        name: "threads",
        argument: "thread",
        count: 100_000,
        show: "--show-task-events",
        record: "PERF_RECORD_FORK",
    },
    Storm {
        name: "loads of a library",
        argument: "dlopen",
        count: 50_000,
        show: "--show-mmap-events",
        record: "/plugin.so",
    },
];

/// The most memory that a storm may use: rings, queue and unwinder are bounded.
const MEMORY_KIB: u64 = 300 << 10;

struct Paths {
    directory: PathBuf,
    prof: PathBuf,
}

/// How prof fared.
struct Fared {
    bare: Duration,
    recorded: Duration,
    peak_kib: u64,
    samples: u64,
    lost: Option<u64>,
    found: u64,
}

/// Raises all storms, and prints a table.
pub(crate) fn run(options: &Options) -> Result<()> {
    let paths = prepare()?;
    let mut rows = String::new();
    let mut failed = Vec::new();
    for storm in &STORMS {
        let count = (storm.count / options.smaller.max(1)).max(1);
        println!("{count} {}", storm.name);
        let fared = raise(&paths, storm, count)?;
        rows += &row(storm, count, &fared);
        if fared.found != count {
            failed.push(format!("{} of {count} {} found", fared.found, storm.name));
        }
        if fared.peak_kib > MEMORY_KIB {
            failed.push(format!("{} KiB for {}", fared.peak_kib, storm.name));
        }
    }
    println!(
        "\n| storm | alone, s | recorded, s | samples | lost | peak memory of prof | records found |"
    );
    println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: |\n{rows}");
    ensure!(failed.is_empty(), "{}", failed.join(", "));
    Ok(())
}

fn prepare() -> Result<Paths> {
    ensure!(
        process::find("perf").is_some(),
        "perf must read the recordings, and is not installed"
    );
    let target = workspace::target_directory()?;
    let directory = target.join("storm");
    fs::create_dir_all(&directory)
        .with_context(|| format!("cannot make {}", directory.display()))?;
    let mut build = process::cargo();
    build.current_dir(workspace::root());
    process::run(build.args(["build", "--release", "--locked", "--package", "prof"]))?;
    compile(&directory, "storm.c", "storm", &["-pthread", "-ldl"])?;
    compile(
        &directory,
        "plugin.c",
        "plugin.so",
        &["-shared", "-fPIC", "-DNAME=plugin"],
    )?;
    Ok(Paths {
        directory,
        prof: target.join("release/prof"),
    })
}

fn compile(directory: &Path, source: &str, output: &str, flags: &[&str]) -> Result<()> {
    let source = workspace::root().join("tests/programs").join(source);
    let mut compile = Command::new("gcc");
    compile
        .args(["-O2", "-g", "-o"])
        .arg(directory.join(output));
    process::run(compile.arg(source).args(flags))
}

fn raise(paths: &Paths, storm: &Storm, count: u64) -> Result<Fared> {
    let words = [
        paths.directory.join("storm"),
        storm.argument.into(),
        count.to_string().into(),
        paths.directory.join("plugin.so"),
    ];
    let begin = Instant::now();
    process::run(Command::new(&words[0]).args(&words[1..]))?;
    let bare = begin.elapsed();
    let file = paths.directory.join("storm.data");
    let mut record = Command::new(&paths.prof);
    record.args(["record", "-e", "cpu-clock", "-o"]).arg(&file);
    record.arg("--").args(&words).stderr(Stdio::piped());
    let begin = Instant::now();
    let mut child = record.spawn().context("cannot start prof")?;
    let mut peak_kib = 0;
    while child.try_wait()?.is_none() {
        peak_kib = peak_of(child.id()).unwrap_or(0).max(peak_kib);
        // Do not take CPU time from the measured program.
        thread::sleep(Duration::from_millis(20));
    }
    let recorded = begin.elapsed();
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "prof: {}\n{said}", output.status);
    print!("{said}");
    let counts = bench::counts_of_prof(&said)?;
    let found = records(&file, storm)?;
    fs::remove_file(&file)?;
    Ok(Fared {
        bare,
        recorded,
        peak_kib,
        samples: counts.samples,
        lost: counts.lost,
        found,
    })
}

/// The most memory that a process has had, in KiB.
fn peak_of(pid: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let mut lines = status.lines();
    let line = lines.find_map(|line| line.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// How many records of the storm's kind perf finds.
fn records(file: &Path, storm: &Storm) -> Result<u64> {
    let mut perf = Command::new("perf");
    perf.args(["script", storm.show, "-F", "comm", "-i"])
        .arg(file);
    let output = perf.output().context("cannot start perf")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().filter(|line| line.contains(storm.record));
    Ok(found.count() as u64)
}

fn row(storm: &Storm, count: u64, fared: &Fared) -> String {
    format!(
        "| {count} {} | {:.1} | {:.1} | {} | {} | {:.1} MB | {} |\n",
        storm.name,
        fared.bare.as_secs_f64(),
        fared.recorded.as_secs_f64(),
        fared.samples,
        fared
            .lost
            .map_or_else(|| "not reported".into(), |lost| lost.to_string()),
        fared.peak_kib as f64 * 1024.0 / 1e6,
        fared.found,
    )
}
