//! In place of HTTP, in builds without it: only the cache is used.

use std::sync::mpsc::SyncSender;

use super::cache::Download;
use crate::options::Debuginfod;

#[derive(Clone)]
pub(super) struct Agent;

#[allow(dead_code, reason = "the same as with HTTP")]
pub(super) enum Event {
    Received { bytes: u64, total: Option<u64> },
    Done(Result<Download, Failed>),
}

#[allow(dead_code, reason = "the same as with HTTP")]
pub(super) enum Failed {
    NotFound,
    Other(String),
}

impl Agent {
    pub(super) fn new(_: &Debuginfod) -> Self {
        Self
    }
}

pub(super) fn download(_: &Agent, _: &str, mut target: Download, events: &SyncSender<Event>) {
    let _ = target.writer();
    let reason = "this build of prof has no HTTP".into();
    let _ = events.send(Event::Done(Err(Failed::Other(reason))));
}
