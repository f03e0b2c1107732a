//! HTTP requests: retries, and the messages of refusals.

use std::io::Read;
use std::thread;
use std::time::Duration;

use ureq::http::{HeaderMap, HeaderName, HeaderValue, Response, Uri};
use ureq::{Agent, Body};
use url::Url;

/// Posts to one receiver.
pub(crate) struct Client {
    agent: Agent,
    /// Sent with each request.
    headers: Vec<(String, String)>,
}

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The environment has a header that cannot be sent; its value may be a secret.
    #[error("the environment sets a malformed header {name:?}: check its name and its value")]
    Header {
        /// The header's name.
        name: String,
    },
    /// There was no response.
    #[error("cannot reach {url}: {}", reason(cause))]
    Unreachable {
        /// The requested URL.
        url: String,
        /// The cause.
        cause: Box<ureq::Error>,
    },
    /// The receiver refuses.
    #[error("{url} answers {status}{}{advice}", after_colon(message))]
    Refused {
        /// The requested URL.
        url: String,
        /// The status of HTTP.
        status: u16,
        /// The receiver's message.
        message: String,
        /// The remedy.
        advice: &'static str,
    },
}

impl HttpError {
    /// Whether the receiver will never accept this body, so that keeping it is useless.
    pub(crate) fn is_of_body(&self) -> bool {
        matches!(
            self,
            Self::Refused {
                status: 400 | 413 | 415 | 422,
                ..
            }
        )
    }

    /// Whether the next try may succeed: there was no response, or one that says so.
    fn passes(&self) -> bool {
        match self {
            Self::Header { .. } => false,
            Self::Unreachable { cause, .. } => !matches!(**cause, ureq::Error::BadUri(_)),
            Self::Refused { status, .. } => matches!(status, 429 | 502 | 503 | 504),
        }
    }
}

/// A failed try.
struct Failed {
    error: HttpError,
    /// The wait that the receiver requests.
    retry_after: Option<Duration>,
}

impl Client {
    /// Between tries.
    const WAITS: [Duration; 3] = [
        Duration::from_millis(500),
        Duration::from_secs(1),
        Duration::from_secs(2),
    ];
    /// The longest wait, whatever the receiver requests.
    const LONGEST_WAIT: Duration = Duration::from_secs(30);
    /// For a connection, and for a response.
    const TIMEOUT: Duration = Duration::from_secs(10);
    /// The most bytes of a response that are read.
    const LONGEST_ANSWER: u64 = 64 << 10;

    /// A client that sends these headers with each request.
    ///
    /// # Errors
    /// One of them is none.
    pub(crate) fn new(headers: Vec<(String, String)>) -> Result<Self, HttpError> {
        let is_valid = |(name, value): &&(String, String)| {
            HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok()
        };
        if let Some((name, _)) = headers.iter().find(|header| !is_valid(header)) {
            return Err(HttpError::Header { name: name.clone() });
        }
        let config = Agent::config_builder()
            .timeout_resolve(Some(Self::TIMEOUT))
            .timeout_connect(Some(Self::TIMEOUT))
            .timeout_send_body(Some(Self::TIMEOUT * 6))
            .timeout_recv_response(Some(Self::TIMEOUT))
            .timeout_recv_body(Some(Self::TIMEOUT))
            .http_status_as_error(false)
            // The page that a login redirects to is a success without a receiver.
            .max_redirects(0)
            .user_agent(concat!("prof/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self {
            agent: config.into(),
            headers,
        })
    }

    /// Posts a body with these headers, and returns the response's body.
    ///
    /// # Errors
    /// [`HttpError`], after the last try.
    pub(crate) fn post(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, HttpError> {
        let mut waits = Self::WAITS.iter();
        loop {
            let failed = match self.try_once(url, headers, body) {
                Ok(body) => return Ok(body),
                Err(failed) => failed,
            };
            match waits.next() {
                Some(&wait) if failed.error.passes() => {
                    thread::sleep(failed.retry_after.unwrap_or(wait).min(Self::LONGEST_WAIT));
                }
                _ => return Err(failed.error),
            }
        }
    }

    fn try_once(
        &self,
        url: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Result<Vec<u8>, Failed> {
        let mut request = self.agent.post(url);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let unreachable = |cause| Failed {
            error: HttpError::Unreachable {
                url: without_password(url),
                cause: Box::new(cause),
            },
            retry_after: None,
        };
        let response = request.send(body).map_err(unreachable)?;
        let (status, retry_after) = (response.status().as_u16(), retry_after(&response));
        let kind = response.headers().get("content-type").cloned();
        let message = match response.status() {
            status if status.is_redirection() => redirect(response.headers()),
            status if status.is_success() => {
                let body = read(response).map_err(unreachable)?;
                match page(kind.as_ref(), &body) {
                    None => return Ok(body),
                    Some(page) => page,
                }
            }
            _ => excerpt(&read(response).unwrap_or_default()),
        };
        let error = HttpError::Refused {
            url: without_password(url),
            status,
            message,
            advice: match status {
                401 | 403 => " (credentials come from the environment: docs/fleet.md)",
                200..=399 | 404 => " (is this the receiver's address?)",
                _ => "",
            },
        };
        Err(Failed { error, retry_after })
    }
}

/// A URL for messages, which logs keep.
pub(crate) fn without_password(url: &str) -> String {
    match Url::parse(url) {
        Ok(mut shown) if shown.password().is_some() => {
            // Any URL with a password has a host.
            let _ = shown.set_password(None);
            shown.into()
        }
        _ => url.to_owned(),
    }
}

/// Whether this is the address of a server.
pub(crate) fn is_http(url: &str) -> bool {
    url.parse().is_ok_and(|uri: Uri| {
        let host = uri.host().unwrap_or_default();
        matches!(uri.scheme_str(), Some("http" | "https")) && !host.is_empty()
    })
}

/// Whether this is the address of a server, to which paths may be added.
pub(crate) fn is_base(url: &str) -> bool {
    is_http(url) && !url.contains(['?', '#'])
}

/// Where a response redirects to, for people.
pub(crate) fn redirect(headers: &HeaderMap) -> String {
    let location = headers.get("location");
    let location = location.and_then(|location| location.to_str().ok());
    match location {
        Some(location) => format!("it redirects to {location}, which prof does not follow"),
        None => "it redirects".to_owned(),
    }
}

/// What a body is if it is for people, as the page of a login is. Receivers answer a profile with
/// nothing, with a message of protobuf, or with `{}`, which is `text/plain` where nobody says so.
pub(crate) fn page(kind: Option<&HeaderValue>, body: &[u8]) -> Option<String> {
    let is_text = match kind.map(HeaderValue::as_bytes) {
        Some(kind) => kind.to_ascii_lowercase().starts_with(b"text/"),
        None => true,
    };
    match body.trim_ascii_start() {
        [b'<', ..] => Some("a web page".to_owned()),
        [] | [b'{', ..] => None,
        text => is_text.then(|| format!("a text: {}", excerpt(text))),
    }
}

/// The beginning of a text.
fn excerpt(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    text.trim().chars().take(300).collect()
}

/// The beginning of the body: pages of logins are long.
fn read(mut response: Response<Body>) -> Result<Vec<u8>, ureq::Error> {
    let mut body = Vec::new();
    let reader = response.body_mut().as_reader();
    reader.take(Client::LONGEST_ANSWER).read_to_end(&mut body)?;
    Ok(body)
}

fn retry_after(response: &Response<Body>) -> Option<Duration> {
    let seconds = response.headers().get("retry-after")?.to_str().ok()?;
    Some(Duration::from_secs(seconds.parse().ok()?))
}

/// The system's error without the library's prefix.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}

fn after_colon(message: &str) -> String {
    match message {
        "" => String::new(),
        message => format!(": {message}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_for_people_are_no_answers() {
        let of = |kind: Option<&'static str>, body: &[u8]| {
            page(kind.map(HeaderValue::from_static).as_ref(), body)
        };
        let (text, protobuf) = (
            Some("Text/Plain; charset=utf-8"),
            Some("application/x-protobuf"),
        );
        let log_in = Some("a text: Please log in".to_owned());
        assert_eq!(of(text, b"Please log in\n"), log_in);
        assert_eq!(of(None, b"Please log in"), log_in);
        assert_eq!(of(Some("text/html"), b"Please log in"), log_in);
        for kind in [None, text, protobuf] {
            assert_eq!(of(kind, b"\n<html>").as_deref(), Some("a web page"));
            assert_eq!(of(kind, b""), None);
            assert_eq!(of(kind, b"{}"), None);
        }
        // Of a profile that is accepted with a message.
        assert_eq!(of(protobuf, b"\x0a\x04\x12\x02ok"), None);
    }
}
