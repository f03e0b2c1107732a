//! One request and its answer, on a thread of its own, so that neither takes longer than the
//! [`Limits`]: the HTTP client has limits for each step, but a server may be slow in each of them.

use std::io::Read;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::thread;

use bytes::Bytes;
use http::response::Parts;
use object_store::client::{HttpError, HttpErrorKind};
use ureq::Agent;

use super::limits::Limits;

/// What the thread hands over.
enum Part {
    Head(Box<Parts>),
    Bytes(Vec<u8>),
}

/// The thread's channel: it waits when so many parts wait.
const AHEAD: usize = 4;

/// Why there is no answer: the client's error, or a limit.
pub(super) enum Failed {
    /// Before there was a status.
    Request(ureq::Error),
    /// Other errors.
    Answer(HttpError),
}

/// Sends a request, and waits for its whole answer.
pub(super) fn exchange(
    agent: &Agent,
    request: http::Request<Bytes>,
    limits: &Limits,
) -> Result<(Parts, Bytes), Failed> {
    let (sender, parts) = mpsc::sync_channel(AHEAD);
    let sent = request.body().len() as u64;
    let agent = agent.clone();
    // If prof waits no longer, it ends at its next part, or by the client's own limits.
    let _thread = thread::Builder::new()
        .name("exchange".into())
        .spawn(move || run(&agent, request, &sender))
        .map_err(|error| Failed::Answer(HttpError::new(HttpErrorKind::Unknown, error)))?;
    let exceeded = |error| Failed::Answer(HttpError::new(HttpErrorKind::Unknown, error));
    let mut head = None;
    let mut answer = Vec::new();
    loop {
        let received = answer.len() as u64;
        match parts.recv_timeout(limits.left(sent + received)) {
            Ok(Ok(Part::Head(parts))) => head = Some(*parts),
            Ok(Ok(Part::Bytes(bytes))) => {
                let more = received + bytes.len() as u64;
                limits.admits(more).map_err(exceeded)?;
                answer.extend_from_slice(&bytes);
            }
            Ok(Err(failed)) => return Err(failed),
            Err(RecvTimeoutError::Timeout) => return Err(exceeded(limits.too_slow(received))),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    match head {
        Some(head) => Ok((head, answer.into())),
        None => {
            let gone = std::io::Error::other("the thread of the request has panicked");
            let error = HttpError::new(HttpErrorKind::Unknown, gone);
            Err(Failed::Answer(error))
        }
    }
}

/// Hands over the parts of the answer, until nobody wants more.
fn run(agent: &Agent, request: http::Request<Bytes>, to: &SyncSender<Result<Part, Failed>>) {
    let (parts, body) = request.into_parts();
    let response = match agent.run(http::Request::from_parts(parts, &body[..])) {
        Ok(response) => response,
        Err(error) => {
            let _ = to.send(Err(Failed::Request(error)));
            return;
        }
    };
    let (parts, body) = response.into_parts();
    if to.send(Ok(Part::Head(Box::new(parts)))).is_err() {
        return;
    }
    let mut reader = body.into_reader();
    let mut bytes = vec![0; 64 << 10];
    loop {
        let part = match reader.read(&mut bytes) {
            Ok(0) => return,
            Ok(count) => Ok(Part::Bytes(bytes[..count].to_vec())),
            Err(error) => {
                let error = HttpError::new(HttpErrorKind::Interrupted, error);
                Err(Failed::Answer(error))
            }
        };
        let is_last = part.is_err();
        if to.send(part).is_err() || is_last {
            return;
        }
    }
}
