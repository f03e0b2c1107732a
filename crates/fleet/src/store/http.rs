//! The object store's requests through the HTTP client that the rest of prof has.
//!
//! It waits for each response: nothing else would run meanwhile, and an asynchronous client would
//! add another TLS library.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use ureq::{Agent, Body};

use crate::http::{page, redirect};

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        const CONNECT: Duration = Duration::from_secs(10);
        const ANSWER: Duration = Duration::from_secs(30);
        const BODY: Duration = Duration::from_secs(120);
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // The page that a login redirects to is a success without a store.
            .max_redirects(0)
            .timeout_resolve(Some(CONNECT))
            .timeout_connect(Some(CONNECT))
            .timeout_send_body(Some(BODY))
            .timeout_recv_response(Some(ANSWER))
            .timeout_recv_body(Some(BODY))
            .build()
            .new_agent();
        Ok(HttpClient::new(Client(agent)))
    }
}

#[derive(Debug)]
struct Client(Agent);

/// Of requests to a machine of EC2 for its credentials.
const MACHINE_HEADERS: [&str; 2] = [
    "x-aws-ec2-metadata-token-ttl-seconds",
    "x-aws-ec2-metadata-token",
];

/// What no store answers: object_store would not say so.
#[derive(Debug, thiserror::Error)]
#[error("it answers {0} (is AWS_ENDPOINT_URL the store's address?)")]
struct NoStore(String);

/// The machine, which is asked for credentials where the environment has none, has none either.
#[derive(Debug, thiserror::Error)]
#[error("the machine has no credentials")]
pub(super) struct NoCredentials;

#[async_trait::async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = http::Request::from_parts(parts, &body[..]);
        let query = request.uri().query().unwrap_or_default();
        let lists = query.contains("list-type=2");
        // Other requests, as those for credentials, are answered with texts.
        let stores = request.headers().contains_key(http::header::IF_NONE_MATCH);
        let asks_machine = MACHINE_HEADERS.map(|name| request.headers().contains_key(name));
        let asks_machine = asks_machine.contains(&true);
        // Where it is not EC2's, nobody answers: trying again would only take time.
        let no_credentials = || HttpError::new(HttpErrorKind::Unknown, NoCredentials);
        let response = self.0.run(request).map_err(|error| match asks_machine {
            true => no_credentials(),
            false => failed(error),
        })?;
        if asks_machine && response.status() == StatusCode::NOT_FOUND {
            return Err(no_credentials());
        }
        if response.status().is_redirection() && response.headers().contains_key("location") {
            let message = format!("{}: {}", response.status().as_u16(), redirect(&response));
            return Err(HttpError::new(HttpErrorKind::Unknown, NoStore(message)));
        }
        let (parts, body) = response.into_parts();
        let body = whole(body)?;
        // object_store takes a page for a list of nothing.
        if lists && parts.status.is_success() && !is_list(&body) {
            let message = "the request for a list with none".to_owned();
            return Err(HttpError::new(HttpErrorKind::Unknown, NoStore(message)));
        }
        let kind = parts.headers.get("content-type");
        if stores
            && parts.status.is_success()
            && let Some(page) = page(kind, &body)
        {
            let message = format!("the request to store a file with {page}");
            return Err(HttpError::new(HttpErrorKind::Unknown, NoStore(message)));
        }
        let body = Full::new(body).map_err(|never| match never {});
        Ok(Response::from_parts(parts, HttpResponseBody::new(body)))
    }
}

fn is_list(body: &[u8]) -> bool {
    const LIST: &[u8] = b"ListBucketResult";
    body.windows(LIST.len()).any(|window| window == LIST)
}

fn whole(body: Body) -> Result<Bytes, HttpError> {
    let mut bytes = Vec::new();
    let read = body.into_reader().read_to_end(&mut bytes);
    read.map_err(|error| HttpError::new(HttpErrorKind::Interrupted, error))?;
    Ok(bytes.into())
}

/// Which errors are retried.
fn failed(error: ureq::Error) -> HttpError {
    let kind = match &error {
        ureq::Error::Timeout(_) => HttpErrorKind::Timeout,
        ureq::Error::Io(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
            HttpErrorKind::Connect
        }
        ureq::Error::Io(_) => HttpErrorKind::Interrupted,
        ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => HttpErrorKind::Connect,
        _ => HttpErrorKind::Request,
    };
    HttpError::new(kind, error)
}
