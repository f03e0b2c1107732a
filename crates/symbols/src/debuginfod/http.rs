//! One download over HTTP.

use std::io::{Read, Write};
use std::sync::mpsc::SyncSender;

use super::cache::Download;
use crate::options::Debuginfod;

/// Makes requests and keeps connections.
#[derive(Clone)]
pub(super) struct Agent {
    http: ureq::Agent,
    /// In bytes.
    largest: u64,
}

/// An event of a download.
pub(super) enum Event {
    Received { bytes: u64, total: Option<u64> },
    Done(Result<Download, Failed>),
}

/// How a download failed.
pub(super) enum Failed {
    NotFound,
    Other(String),
}

impl Agent {
    /// Waits for a connection, for an answer, for each next part of it, and for all of it, as long
    /// as the options say.
    pub(super) fn new(options: &Debuginfod) -> Self {
        let timeout = options.timeout;
        let config = ureq::Agent::config_builder()
            .timeout_resolve(Some(timeout))
            .timeout_connect(Some(timeout))
            .timeout_recv_response(Some(timeout))
            .timeout_per_read(Some(timeout))
            .timeout_global(Some(options.longest))
            .user_agent(concat!("prof/", env!("CARGO_PKG_VERSION")))
            .build();
        Self {
            http: config.into(),
            largest: options.largest,
        }
    }
}

/// Downloads `url` into `target` and reports progress; ends early if the channel is closed.
pub(super) fn download(agent: &Agent, url: &str, target: Download, events: &SyncSender<Event>) {
    let result = transfer(agent, url, target, events);
    // A closed channel means that the download was given up.
    let _ = events.send(Event::Done(result));
}

fn transfer(
    agent: &Agent,
    url: &str,
    mut target: Download,
    events: &SyncSender<Event>,
) -> Result<Download, Failed> {
    let response = agent.http.get(url).call()?;
    let total = response.body().content_length();
    let mut body = response.into_body().into_reader();
    let mut buffer = vec![0; 1 << 16];
    let mut received = 0;
    loop {
        if received.max(total.unwrap_or(0)) > agent.largest {
            return Err(Failed::Other(format!(
                "it is larger than {} bytes (DEBUGINFOD_MAXSIZE)",
                agent.largest
            )));
        }
        let count = body.read(&mut buffer)?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok(target);
        };
        target.writer().write_all(part)?;
        received += count as u64;
        let event = Event::Received {
            bytes: received,
            total,
        };
        if events.send(event).is_err() {
            return Err(Failed::Other("given up".into()));
        }
    }
}

impl From<ureq::Error> for Failed {
    fn from(error: ureq::Error) -> Self {
        match error {
            ureq::Error::StatusCode(404) => Self::NotFound,
            other => Self::Other(other.to_string()),
        }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Self {
        Self::Other(error.to_string())
    }
}
