//! `prof push`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Args;
use prof_console::{Console, say};
use prof_model::counted;
use prof_report::recording_file;

use super::values::{label, labels, mebibytes, name, time};
use crate::address;
use crate::dataset::content_name;
use crate::destination::{Destination, Failures, Pushed};
use crate::error::Error;
use crate::run::{Origin, Run, Symbols};
use crate::spool::Spool;

/// The recordings to push, and the destination.
#[derive(Debug, Args)]
#[command(override_usage = "prof push [OPTIONS] FILE... URL")]
pub(super) struct PushFlags {
    /// Recordings, and at the end where they go: a directory, s3://BUCKET/PREFIX,
    /// pyroscope+http://HOST:4040, or otlp+http://HOST:4318 (OTLP's profiles are alpha)
    #[arg(value_name = "FILE... URL", required = true)]
    files_and_url: Vec<OsString>,

    /// The program, team or cluster that the recordings are of [default: the recorded program]
    #[arg(long, value_name = "NAME", value_parser = name)]
    service: Option<String>,

    /// The machine's name [default: that in the recording]
    #[arg(long, value_name = "NAME", value_parser = name)]
    host: Option<String>,

    /// Mark the samples with this, to query by it; may be repeated
    #[arg(long = "label", value_name = "NAME=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,

    /// When the first sample was taken (2026-11-24T13:00:00Z), for recordings without a time of
    /// day; times without a zone are UTC
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<i64>,

    /// Where symbols come from
    #[arg(long, value_enum, default_value_t = Symbols::Local)]
    symbols: Symbols,

    /// Recordings that cannot be pushed now wait here: the next push to this URL that names the
    /// folder sends them first
    #[arg(long, value_name = "DIRECTORY")]
    spool: Option<PathBuf>,

    /// The most MiB of recordings there: the oldest ones are dropped
    #[arg(long, value_name = "MIB", default_value_t = 256, requires = "spool", value_parser = mebibytes)]
    spool_size: u64,
}

/// Pushes one recording after the other, after those that wait.
pub(super) fn run(flags: &PushFlags) -> Result<ExitCode> {
    let [files @ .., url] = &*flags.files_and_url else {
        return Ok(ExitCode::SUCCESS);
    };
    let url = url.to_str().ok_or_else(|| Error::NoDestination {
        url: url.to_string_lossy().into_owned(),
    })?;
    ensure!(
        !files.is_empty(),
        "name recordings and then a destination, as in `prof push prof.data {url}`"
    );
    let origin = Origin {
        service: flags.service.clone(),
        host: flags.host.clone(),
        labels: labels(&flags.labels)?,
        start: flags.time,
        symbols: flags.symbols,
    };
    let mut delivery = Delivery {
        destination: address::open(url)?,
        spool: flags.spool(url)?,
        failures: Failures::default(),
    };
    delivery.push_waiting();
    Ok(match delivery.push_all(files, &origin) {
        true => ExitCode::SUCCESS,
        false => ExitCode::FAILURE,
    })
}

impl PushFlags {
    /// The folder of recordings that wait for this destination.
    fn spool(&self, url: &str) -> Result<Option<Spool>> {
        let Some(folder) = &self.spool else {
            return Ok(None);
        };
        let folder = folder.join(content_name(url.as_bytes()));
        let spool = Spool::open_when_free(&folder, self.spool_size << 20, say)?;
        Ok(Some(spool))
    }
}

/// The destination of recordings, at once or later.
struct Delivery {
    destination: Box<dyn Destination + Send>,
    spool: Option<Spool>,
    /// Of the destination: once it is down, nothing more is tried.
    failures: Failures,
}

impl Delivery {
    fn push_waiting(&mut self) {
        let Some(spool) = &self.spool else {
            return;
        };
        let mut pushed = 0;
        let done = spool.push_all(&mut self.failures, |path| {
            let run = Run::load(path, &spool.origin(path)?)?;
            let stored = self.destination.push(&run)?;
            pushed += u64::from(stored != Pushed::Empty);
            Ok(stored)
        });
        if pushed > 0 {
            say(&format!(
                "pushed {} that waited",
                counted(pushed, "recording")
            ));
        }
        if let Err(error) = done {
            say(&format!("{error}; recordings wait in the spool"));
        }
    }

    /// Pushes recordings, and names each that fails. Returns whether none does.
    fn push_all(&mut self, files: &[OsString], origin: &Origin) -> bool {
        let mut all = true;
        let mut files = files.iter().map(Path::new);
        while let Some(file) = files.next() {
            let pushed = recording_file(file)
                .map_err(anyhow::Error::from)
                .and_then(|recording| Ok(self.push(&recording, origin)?));
            let Err(error) = pushed.with_context(|| format!("cannot push {}", file.display()))
            else {
                continue;
            };
            Console::error(&error);
            all = false;
            if self.spool.is_none() && self.failures.is_down() && files.len() > 0 {
                let rest = counted(files.len() as u64, "recording");
                say(&format!("did not try {rest}: the destination is down"));
                break;
            }
        }
        all
    }

    fn push(&mut self, file: &Path, origin: &Origin) -> Result<(), Error> {
        let run = Run::load(file, origin)?;
        if origin.start.is_some_and(|start| start != first_time(&run)) {
            let file = file.display();
            say(&format!(
                "{file} says itself when it was recorded: --time is ignored"
            ));
        }
        if !self.failures.is_down() {
            let pushed = self.destination.push(&run);
            self.failures.count(&pushed);
            match (pushed, &self.spool) {
                (Ok(pushed), _) => {
                    say(&match pushed {
                        Pushed::Stored => format!("pushed {}", file.display()),
                        Pushed::Known => format!("{} was pushed before", file.display()),
                        Pushed::Empty => {
                            format!("{} has no samples: nothing was sent", file.display())
                        }
                    });
                    return Ok(());
                }
                (Err(error), Some(_)) if !error.is_of_recording() => say(&error.to_string()),
                (Err(error), _) => return Err(error),
            }
        }
        if let Some(spool) = &self.spool {
            spool.add(file, run.id, origin)?;
            say(&format!("{} waits in the spool", file.display()));
        }
        Ok(())
    }
}

/// When the first sample was taken, in µs since 1970.
fn first_time(run: &Run) -> i64 {
    let first = run.profile.profile().samples.iter().next();
    run.micros(first.map_or(0, |sample| sample.time))
}
