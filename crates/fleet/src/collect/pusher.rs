//! Pushes the recordings of the spool.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, UNIX_EPOCH};

use prof_model::counted;

use super::Collection;
use crate::address;
use crate::destination::{Destination, Failures, Pushed};
use crate::error::Error;
use crate::run::{Origin, Run};
use crate::spool::Spool;

/// Pushes recordings in the order of their times.
pub(super) struct Pusher {
    spool: Arc<Spool>,
    destination: Option<Box<dyn Destination + Send>>,
    report: fn(&str),
    /// Recordings that waited longer than usual; `None` without an outage.
    outage: Option<u64>,
}

impl Pusher {
    /// How often the spool is read.
    const INTERVAL: Duration = Duration::from_secs(5);
    /// How often, while nothing can be pushed.
    const LONGEST: Duration = Duration::from_secs(60);

    /// # Errors
    /// The URL names no destination.
    pub(super) fn new(collection: &Collection, spool: Arc<Spool>) -> Result<Self, Error> {
        let url = collection.url.as_deref();
        Ok(Self {
            spool,
            destination: url.map(address::open).transpose()?,
            report: collection.report,
            outage: None,
        })
    }

    /// Pushes complete recordings, until the recorder has `ended`, and then once more.
    pub(super) fn run(mut self, ended: &Receiver<()>) {
        let mut pause = Self::INTERVAL;
        loop {
            let is_last = ended.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected);
            let pushed = self.push_all();
            let dropped = self.spool.drop_oldest();
            pause = match pushed {
                Ok(()) => Self::INTERVAL,
                Err(_) => (pause * 2).min(Self::LONGEST),
            };
            self.report_outage(pushed.and(dropped));
            if is_last {
                return;
            }
        }
    }

    /// Pushes all that waits, unless the destination is down.
    fn push_all(&mut self) -> Result<(), Error> {
        let Some(destination) = &mut self.destination else {
            return Ok(());
        };
        let (spool, outage) = (&self.spool, &mut self.outage);
        spool.push_all(&mut Failures::default(), |path| {
            let pushed = push(path, spool.origin(path)?, destination.as_mut())?;
            let sent = u64::from(pushed != Pushed::Empty);
            *outage = outage.map(|before| before + sent);
            Ok(pushed)
        })
    }

    /// Reports a problem once, and its end once.
    fn report_outage(&mut self, done: Result<(), Error>) {
        match (done, self.outage) {
            (Err(error), None) => {
                (self.report)(&format!("{error}; recordings wait in the spool"));
                self.outage = Some(0);
            }
            (Ok(()), Some(pushed)) => {
                (self.report)(&format!(
                    "pushed {} that waited",
                    counted(pushed, "recording")
                ));
                self.outage = None;
            }
            _ => {}
        }
    }
}

fn push(path: &Path, origin: Origin, destination: &mut dyn Destination) -> Result<Pushed, Error> {
    // An incomplete recording has no time of day, but its file has.
    let origin = Origin {
        start: created(path),
        ..origin
    };
    destination.push(&Run::load(path, &origin)?)
}

/// When a file was created, in µs since 1970.
fn created(path: &Path) -> Option<i64> {
    let metadata = fs::metadata(path).ok()?;
    let time = metadata.created().or_else(|_| metadata.modified()).ok()?;
    i64::try_from(time.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
}
