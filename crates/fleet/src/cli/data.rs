//! `prof data`.

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use prof_console::{say, write_stdout};
use prof_model::counted;

use crate::store::Store;
use crate::upkeep::{Health, check, compact};

/// The action on a data set.
#[derive(Debug, Args)]
pub(super) struct DataFlags {
    #[command(subcommand)]
    verb: DataVerb,
}

#[derive(Debug, Subcommand)]
enum DataVerb {
    /// Make few files of the many that a day of a service on a machine has
    Compact(UrlFlags),
    /// Read all of a data set, and list what is damaged, duplicated or incomplete
    Check(UrlFlags),
}

#[derive(Debug, Args)]
struct UrlFlags {
    /// The data set: a directory or s3://BUCKET/PREFIX
    #[arg(value_name = "URL")]
    url: String,
}

/// The exit status for a data set that is not well, as that of `prof report --strict`.
const CHECK_FAILED: u8 = 3;

/// Compacts or checks.
pub(super) fn run(flags: &DataFlags) -> Result<ExitCode> {
    match &flags.verb {
        DataVerb::Compact(flags) => {
            let done = compact(&Store::open_existing(&flags.url)?)?;
            for error in &done.failed {
                say(&format!("error: {error}"));
            }
            if done.unfinished > 0 {
                let unfinished = counted(done.unfinished as u64, "unfinished file");
                say(&format!("removed {unfinished} of killed pushes"));
            }
            match done.before {
                0 if !done.failed.is_empty() => {}
                0 => say("nothing to compact: no partition has several small files"),
                before => {
                    let before = counted(before as u64, "file");
                    say(&format!("compacted {before} to {}", done.after));
                }
            }
            Ok(match done.failed.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            })
        }
        DataVerb::Check(flags) => {
            let health = check(&Store::open_existing(&flags.url)?)?;
            if health.is_empty() {
                bail!(
                    "there is no data set in {}: it has no files of one",
                    flags.url
                );
            }
            write_stdout(|out| Ok(write(&health, out)?))?;
            Ok(match health.is_bad() {
                true => CHECK_FAILED.into(),
                false => ExitCode::SUCCESS,
            })
        }
    }
}

fn write(health: &Health, out: &mut dyn Write) -> std::io::Result<()> {
    let files = counted(health.files as u64, "file");
    writeln!(out, "{files}, {} bytes", health.bytes)?;
    for damaged in &health.damaged {
        writeln!(
            out,
            "damaged: {damaged}: remove it, and push its recordings again"
        )?;
    }
    for path in &health.strays {
        writeln!(
            out,
            "{path} is in a folder where prof stores nothing, but other engines may read it: \
             remove it"
        )?;
    }
    for alias in &health.aliases {
        writeln!(
            out,
            "{alias}: prof counts it once, other engines may count it twice: remove {}",
            alias.path
        )?;
    }
    for path in &health.doubled {
        writeln!(
            out,
            "{path} has samples of another file, too: `prof data compact` repairs that"
        )?;
    }
    for paths in &health.repeated {
        writeln!(
            out,
            "one recording counts several times, as {}: remove the files of this name of all but \
             one service, host and day, in `runs` and in `samples`; of a compacted partition \
             (`merged-…`) remove all files, and push its other recordings again",
            paths.join(" and ")
        )?;
    }
    for path in &health.incomplete {
        writeln!(
            out,
            "{path} is of a recording that was not pushed completely: push it again (or remove \
             the file, if it is a copy from another host)"
        )?;
    }
    for run in &health.mismatches {
        let expected = counted(run.expected, "sample");
        let remedy = match run.found {
            0 => "push the recording again",
            _ => "remove the files that have some of them, and push their recordings again",
        };
        writeln!(
            out,
            "{} names {expected}, `samples` has {}: {remedy}",
            run.path, run.found
        )?;
    }
    write_counts(health, out)
}

/// The findings that are counted only.
fn write_counts(health: &Health, out: &mut dyn Write) -> std::io::Result<()> {
    if health.being_pushed > 0 {
        let files = counted(health.being_pushed as u64, "file");
        writeln!(
            out,
            "{files} of recordings whose push began within the last hour and has not ended"
        )?;
    }
    if health.without_stack > 0 {
        let samples = counted(health.without_stack, "sample");
        writeln!(out, "{samples} without frames: push their recordings again")?;
    }
    if health.unused_stacks > 0 {
        let stacks = counted(health.unused_stacks, "stack");
        writeln!(out, "{stacks} without samples, which does no harm")?;
    }
    if health.scattered > 0 {
        let partitions = counted(health.scattered as u64, "partition");
        writeln!(
            out,
            "{partitions} of several small files: `prof data compact` merges them"
        )?;
    }
    if health.unfinished > 0 {
        let unfinished = counted(health.unfinished as u64, "unfinished file");
        writeln!(
            out,
            "{unfinished} of killed pushes, which no query reads: run `prof data compact` to clean up"
        )?;
    }
    Ok(())
}
