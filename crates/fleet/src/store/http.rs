//! The object store's requests through the HTTP client that the rest of prof has.
//!
//! It waits for each response: nothing else would run meanwhile, and an asynchronous client would
//! add another TLS library.

use std::io::Read;
use std::time::Duration;

use bytes::Bytes;
use http::Response;
use http_body_util::{BodyExt, Full};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use ureq::{Agent, Body};

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector;

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        const CONNECT: Duration = Duration::from_secs(10);
        const WHOLE: Duration = Duration::from_secs(300);
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT))
            .timeout_global(Some(WHOLE))
            .build()
            .new_agent();
        Ok(HttpClient::new(Client(agent)))
    }
}

#[derive(Debug)]
struct Client(Agent);

#[async_trait::async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let body = body.collect().await?.to_bytes();
        let request = http::Request::from_parts(parts, &body[..]);
        let response = self.0.run(request).map_err(failed)?;
        let (parts, body) = response.into_parts();
        let body = Full::new(whole(body)?).map_err(|never| match never {});
        Ok(Response::from_parts(parts, HttpResponseBody::new(body)))
    }
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
