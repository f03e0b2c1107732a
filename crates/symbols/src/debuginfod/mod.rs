//! Files from debuginfod servers, by build id, through the cache that all clients share.

mod cache;
#[cfg(feature = "debuginfod")]
mod http;
#[cfg(not(feature = "debuginfod"))]
#[path = "no_http.rs"]
mod http;

use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use prof_model::BuildId;

use crate::options::Debuginfod;
use crate::progress::{Progress, Watch};
use cache::{Cache, Cached};
use http::{Agent, Event, Failed};

/// A file that a server has for a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The program itself.
    Executable,
    /// Its debug file.
    DebugInfo,
}

impl Kind {
    /// The last part of the URL, and the name of the file in the cache.
    fn name(self) -> &'static str {
        match self {
            Self::Executable => "executable",
            Self::DebugInfo => "debuginfo",
        }
    }
}

/// Asks servers, one file at a time for each thread that calls it.
pub(crate) struct Client<'a> {
    urls: &'a [String],
    agent: Agent,
    cache: Cache,
    watch: Watch<'a>,
}

/// Why a file is unavailable.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// No server has it.
    NotFound,
    /// The user did not want to wait.
    Skipped,
    /// Something else, in words.
    Failed(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => write!(f, "no debuginfod server has the debug info"),
            Self::Skipped => write!(f, "the download of the debug info was skipped"),
            Self::Failed(reason) => write!(f, "the debug info could not be downloaded: {reason}"),
        }
    }
}

/// How often a waiting thread looks whether it should still wait.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

impl<'a> Client<'a> {
    pub(crate) fn new(options: &'a Debuginfod, watch: Watch<'a>) -> Self {
        Self {
            urls: &options.urls,
            agent: Agent::new(options),
            cache: Cache::new(options),
            watch,
        }
    }

    /// The path of a file in the cache, after a download if need be. `module` is for the progress
    /// report.
    pub(crate) fn fetch(&self, id: BuildId, kind: Kind, module: &str) -> Result<PathBuf, Problem> {
        match self.cache.find(id, kind) {
            Cached::Here(path) => return Ok(path),
            Cached::KnownToBeMissing => return Err(Problem::NotFound),
            Cached::Unknown => {}
        }
        let mut problem = Problem::NotFound;
        for url in self.urls {
            let url = format!("{}/buildid/{id}/{}", url.trim_end_matches('/'), kind.name());
            match self.download(&url, id, kind, module) {
                Ok(path) => return Ok(path),
                Err(Problem::Skipped) => return Err(Problem::Skipped),
                Err(Problem::NotFound) => {}
                Err(failed) => problem = failed,
            }
        }
        if problem == Problem::NotFound {
            self.cache.remember_missing(id, kind);
        }
        Err(problem)
    }

    fn download(
        &self,
        url: &str,
        id: BuildId,
        kind: Kind,
        module: &str,
    ) -> Result<PathBuf, Problem> {
        if self.is_skipped() {
            return Err(Problem::Skipped);
        }
        let failed = |reason: String| Problem::Failed(format!("{url}: {reason}"));
        let target = self
            .cache
            .create(id, kind)
            .map_err(|error| failed(error.to_string()))?;
        self.report(module, 0, None);
        // A thread of its own, so that a server that hangs can be left behind at once.
        let (events, inbox) = mpsc::sync_channel(1);
        let agent = self.agent.clone();
        let request = url.to_owned();
        std::thread::spawn(move || http::download(&agent, &request, target, &events));
        loop {
            match inbox.recv_timeout(POLL_INTERVAL) {
                Ok(Event::Received { bytes, total }) => self.report(module, bytes, total),
                Ok(Event::Done(Ok(target))) => {
                    return target.persist().map_err(|error| failed(error.to_string()));
                }
                Ok(Event::Done(Err(Failed::NotFound))) => return Err(Problem::NotFound),
                Ok(Event::Done(Err(Failed::Other(reason)))) => return Err(failed(reason)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(failed("gave up".into())),
            }
            if self.is_skipped() {
                // The thread ends when it finds the channel closed.
                return Err(Problem::Skipped);
            }
        }
    }

    fn is_skipped(&self) -> bool {
        let flag = self.watch.skip_downloads;
        flag.is_some_and(|flag| flag.load(Ordering::Relaxed))
    }

    fn report(&self, module: &str, received: u64, total: Option<u64>) {
        if let Some(progress) = self.watch.progress {
            progress(Progress::Download {
                module: module.into(),
                received,
                total,
            });
        }
    }
}
