//! The object store's requests through the HTTP client that the rest of prof has.
//!
//! It waits for each response: nothing else would run meanwhile, and an asynchronous client would
//! add another TLS library.

use std::sync::Arc;
use std::time::Duration;

use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use object_store::ClientOptions;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService,
};
use ureq::Agent;

use super::MOST_BYTES;
use super::exchange::{Failed, exchange};
use super::limits::Limits;
use crate::http::{page, redirect};

/// Makes clients.
#[derive(Debug)]
pub(super) struct Connector(pub(super) Arc<Limits>);

impl HttpConnector for Connector {
    fn connect(&self, _: &ClientOptions) -> object_store::Result<HttpClient> {
        const CONNECT: Duration = Duration::from_secs(10);
        // The limits end an exchange that is slow in all steps, these a thread that waits for one.
        const ANSWER: Duration = Limits::TIME_OUT;
        const BODY: Duration = Duration::from_secs(MOST_BYTES / Limits::SLOWEST);
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
        let limits = Arc::clone(&self.0);
        Ok(HttpClient::new(Client { agent, limits }))
    }
}

#[derive(Debug)]
struct Client {
    agent: Agent,
    limits: Arc<Limits>,
}

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
        let request = http::Request::from_parts(parts, body);
        let query = request.uri().query().unwrap_or_default();
        let lists = query.contains("list-type=2");
        // Other requests, as those for credentials, are answered with texts.
        let stores = request.headers().contains_key(http::header::IF_NONE_MATCH);
        let asks_machine = MACHINE_HEADERS.map(|name| request.headers().contains_key(name));
        let asks_machine = asks_machine.contains(&true);
        // Where it is not EC2's, nobody answers: trying again would only take time.
        let no_credentials = || HttpError::new(HttpErrorKind::Unknown, NoCredentials);
        let answer = exchange(&self.agent, request, &self.limits);
        let (parts, body) = answer.map_err(|error| match error {
            Failed::Request(_) if asks_machine => no_credentials(),
            Failed::Request(error) => failed(error),
            Failed::Answer(error) => error,
        })?;
        if asks_machine && parts.status == StatusCode::NOT_FOUND {
            return Err(no_credentials());
        }
        if parts.status.is_redirection() && parts.headers.contains_key("location") {
            let message = format!("{}: {}", parts.status.as_u16(), redirect(&parts.headers));
            return Err(HttpError::new(HttpErrorKind::Unknown, NoStore(message)));
        }
        // object_store takes a page for a list of nothing.
        if lists && parts.status.is_success() && !is_list(&body) {
            let message = "the request for a list with none".to_owned();
            return Err(HttpError::new(HttpErrorKind::Unknown, NoStore(message)));
        }
        if lists {
            let next = self.limits.next_page();
            next.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
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

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{SocketAddr, TcpListener, TcpStream};
    use std::thread;

    use object_store::client::HttpRequestBody;

    use super::*;

    /// A server that answers one request.
    fn server(answer: impl FnOnce(TcpStream) + Send + 'static) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address");
        thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a client");
            // The request is short.
            let read = stream.read(&mut [0; 4096]);
            assert!(read.is_ok_and(|count| count > 0));
            answer(stream);
        });
        address
    }

    /// The length of the answer, or why there is none.
    fn answer(address: SocketAddr, time_out: Duration) -> Result<u64, String> {
        let limits = Arc::new(Limits::new(time_out));
        let agent = Agent::config_builder().build().new_agent();
        let client = Client { agent, limits };
        let url = format!("http://{address}/a");
        let request = http::Request::get(url).body(HttpRequestBody::empty());
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let answer = async {
            let response = client.call(request.expect("a request")).await;
            let response = response.map_err(|error| format!("{error:?}"))?;
            let body = response.into_body().bytes().await;
            Ok(body.expect("a whole body").len() as u64)
        };
        runtime.expect("a runtime").block_on(answer)
    }

    const LONG: Duration = Duration::from_secs(3600);
    const SHORT: Duration = Duration::from_millis(300);
    /// Without a length, the body ends with the connection.
    const HEAD: &[u8] = b"HTTP/1.1 200 OK\r\n\r\n";

    fn send(mut stream: &TcpStream, bytes: &[u8]) -> bool {
        stream.write_all(bytes).is_ok()
    }

    #[test]
    fn whole_answers_are_read() {
        let length = Limits::MOST_ANSWER;
        let address = server(move |stream| {
            send(&stream, HEAD);
            send(&stream, &vec![0; length as usize]);
        });
        assert_eq!(answer(address, LONG), Ok(length));
    }

    #[test]
    fn an_answer_without_end_is_given_up() {
        let address = server(|stream| {
            send(&stream, HEAD);
            while send(&stream, &[0; 4096]) {}
        });
        let error = answer(address, LONG).expect_err("given up");
        assert!(
            error.contains("it answers with over") || error.contains("Bytes"),
            "{error}"
        );
    }

    #[test]
    fn bytes_that_drip_do_not_extend_the_wait() {
        // In the body, and in the head.
        for head in [HEAD, b"HTTP/1.1 200 OK\r\na: "] {
            let address = server(move |stream| {
                send(&stream, head);
                while send(&stream, b"a") {
                    thread::sleep(Duration::from_millis(10));
                }
            });
            let error = answer(address, SHORT).expect_err("given up");
            assert!(error.contains("Time"), "{error}");
        }
    }

    #[test]
    fn silence_ends_an_exchange() {
        let (hold, held) = std::sync::mpsc::channel::<()>();
        let address = server(move |stream| {
            send(&stream, HEAD);
            // Until the test has ended.
            let _ = held.recv();
        });
        let error = answer(address, SHORT).expect_err("given up");
        assert!(error.contains("Time"), "{error}");
        drop(hold);
    }
}
