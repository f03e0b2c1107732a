//! `prof collect`.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use prof_console::say;
use prof_events::system;
use prof_procfs::Task;
use prof_recorder::{CpuTarget, Signals, Target};

use super::values::{duration, hertz, label, labels, mebibytes, name, period, pid};
use crate::collect::{self, Collection};
use crate::run::{Origin, Symbols};

/// What to collect, and the destination.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("target").args(["all_cpus", "pids", "cgroup"]))]
pub(super) struct CollectFlags {
    /// The destination: a directory, s3://BUCKET/PREFIX, pyroscope+http://HOST:4040, or
    /// otlp+http://HOST:4318 (OTLP's profiles are alpha); by default recordings stay in the spool
    #[arg(value_name = "URL")]
    url: Option<String>,

    /// The service of the machines: a program, a team, a cluster
    #[arg(long, value_name = "NAME", value_parser = name)]
    service: String,

    /// Record everything on all CPUs (the default)
    #[arg(short, long)]
    all_cpus: bool,

    /// Record running processes, with all their threads and later children
    #[arg(short, long = "pid", value_name = "PID", value_delimiter = ',', value_parser = pid)]
    pids: Vec<i32>,

    /// Record everything in this cgroup
    #[arg(short = 'G', long, value_name = "NAME")]
    cgroup: Option<String>,

    /// Samples per second of each CPU or thread [default: 19, or fewer if these cost too much]
    #[arg(short = 'F', long = "freq", value_name = "HZ", value_parser = hertz)]
    hertz: Option<u64>,

    /// Push each TIME
    #[arg(long, value_name = "TIME", default_value = "1m", value_parser = period)]
    every: Duration,

    /// End after TIME
    #[arg(short, long, value_name = "TIME", value_parser = duration)]
    duration: Option<Duration>,

    /// Where symbols come from
    #[arg(long, value_enum, default_value_t = Symbols::Later)]
    symbols: Symbols,

    /// The machine's name [default: the host name]
    #[arg(long, value_name = "NAME", value_parser = name)]
    host: Option<String>,

    /// Mark the samples with this, to query by it; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// The volume of Kubernetes' downward API with the pod's labels, for -p and -G
    #[arg(long, value_name = "DIRECTORY", default_value = "/etc/podinfo")]
    podinfo: PathBuf,

    /// The folder in which recordings wait to be pushed
    #[arg(long, value_name = "DIRECTORY", default_value = "/var/lib/prof/spool")]
    spool: PathBuf,

    /// The most MiB of recordings there: the oldest ones are dropped
    #[arg(long, value_name = "MIB", default_value_t = 256, value_parser = mebibytes)]
    spool_size: u64,
}

/// The processes that these ids mean: that of a thread, which `top -H` shows, means its process.
fn processes_of(ids: Vec<i32>) -> Vec<i32> {
    let process = |id: i32| match Task::of(id).process() {
        Some(pid) if pid != id => {
            say(&format!(
                "{id} is a thread of process {pid}: -p takes the whole process"
            ));
            pid
        }
        _ => id,
    };
    let pids: BTreeSet<i32> = ids.into_iter().map(process).collect();
    pids.into_iter().collect()
}

/// Collects until a signal ends it.
pub(super) fn run(flags: CollectFlags) -> Result<()> {
    // Before any thread starts: threads inherit the blocked signals.
    let signals = Signals::block().context("cannot watch for signals")?;
    let target = match flags.pids.is_empty() {
        true => Target::Cpus(CpuTarget {
            cgroup: flags.cgroup,
            ..CpuTarget::default()
        }),
        false => Target::Processes(processes_of(flags.pids)),
    };
    let labels = labels(&flags.labels)?;
    let collection = Collection {
        origin: Origin {
            service: Some(flags.service),
            // The recording that a killed collector leaves does not say it.
            host: Some(flags.host.unwrap_or_else(system::host_name)),
            labels: collect::labels(&target, &flags.podinfo, labels),
            start: None,
            symbols: flags.symbols,
        },
        target,
        hertz: flags.hertz,
        rotation: flags.every,
        duration: flags.duration,
        url: flags.url,
        spool: flags.spool,
        spool_bytes: flags.spool_size << 20,
        report: say,
    };
    Ok(collection.run(&signals)?)
}
