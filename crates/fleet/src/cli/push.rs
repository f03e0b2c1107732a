//! `prof push`.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use clap::Args;
use prof_console::say;

use super::values::{label, time};
use crate::address;
use crate::destination::{Destination, Pushed};
use crate::run::{Origin, Run, Symbols};

/// What to push, and where to.
#[derive(Debug, Args)]
pub(super) struct PushFlags {
    /// Recordings, and at the end where they go: a directory, s3://BUCKET/PREFIX,
    /// pyroscope+http://HOST:4040, or otlp+http://HOST:4318 (OTLP's profiles are alpha)
    #[arg(value_name = "FILE... URL", required = true, num_args = 2..)]
    files_and_url: Vec<String>,

    /// The program, team or cluster that the recordings are of [default: the recorded program]
    #[arg(long, value_name = "NAME")]
    service: Option<String>,

    /// The machine's name [default: that in the recording]
    #[arg(long, value_name = "NAME")]
    host: Option<String>,

    /// Mark the samples with this, to query by it; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// When the first sample was taken (2026-11-24T13:00:00Z), if a recording does not say it
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<i64>,

    /// Where names come from
    #[arg(long, value_enum, default_value_t = Symbols::Local)]
    symbols: Symbols,
}

/// Pushes one recording after the other.
pub(super) fn run(flags: &PushFlags) -> Result<()> {
    let Some((url, files)) = flags.files_and_url.split_last() else {
        bail!("name recordings, and where they go");
    };
    let mut destination = address::open(url)?;
    let origin = Origin {
        service: flags.service.clone(),
        host: flags.host.clone(),
        labels: flags.labels.iter().cloned().collect(),
        start: flags.time,
        symbols: flags.symbols,
    };
    for file in files.iter().map(PathBuf::from) {
        push_one(&file, &origin, destination.as_mut())
            .with_context(|| format!("cannot push {}", file.display()))?;
    }
    Ok(())
}

fn push_one(file: &Path, origin: &Origin, destination: &mut dyn Destination) -> Result<()> {
    let run = Run::load(file, origin)?;
    match destination.push(&run)? {
        Pushed::Stored => say(&format!("pushed {}", file.display())),
        Pushed::Known => say(&format!("{} was pushed before", file.display())),
    }
    Ok(())
}
