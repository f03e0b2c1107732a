//! A receiver on the loopback interface.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Answers each request, and hands it on.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    requests: Receiver<Request>,
}

/// A request.
pub(crate) struct Request {
    /// Path and query.
    pub(crate) target: String,
    /// Names in lower case, and values.
    headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map(|(_, value)| &**value)
    }
}

impl Server {
    /// Answers with these statuses and texts, one after the other, then with success.
    pub(crate) fn answering(answers: &[(u16, &'static str)]) -> Self {
        Self::at(([127, 0, 0, 1], 0).into(), answers)
    }

    /// Like `answering`, at this address.
    pub(crate) fn at(address: SocketAddr, answers: &[(u16, &'static str)]) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::channel();
        let mut answers: VecDeque<_> = answers.iter().copied().collect();
        thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = BufReader::new(stream.unwrap());
                // A client may send several over one connection.
                while let Some(request) = read(&mut stream) {
                    answer(stream.get_mut(), answers.pop_front().unwrap_or((200, "")));
                    if sender.send(request).is_err() {
                        return;
                    }
                }
            }
        });
        Self { address, requests }
    }

    /// The next request, when it comes.
    pub(crate) fn next(&self) -> Request {
        self.requests.recv().unwrap()
    }

    /// The requests so far that were not taken.
    pub(crate) fn rest(&self) -> Vec<Request> {
        self.requests.try_iter().collect()
    }
}

fn read(stream: &mut BufReader<TcpStream>) -> Option<Request> {
    let mut line = String::new();
    stream
        .read_line(&mut line)
        .ok()
        .filter(|&count| count > 0)?;
    let target = line.split(' ').nth(1)?.to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        let Some((name, value)) = line.split_once(':') else {
            break;
        };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let mut request = Request {
        target,
        headers,
        body: Vec::new(),
    };
    let length = request.header("content-length").unwrap_or("0");
    let length: usize = length.parse().ok()?;
    request.body.resize(length, 0);
    stream.read_exact(&mut request.body).ok()?;
    Some(request)
}

fn answer(stream: &mut TcpStream, (status, text): (u16, &str)) {
    let length = text.len();
    let location = match status {
        300..=399 => "location: /login\r\n",
        _ => "",
    };
    // The type that servers in Go state by default, and the version of a file that stores state.
    let headers = "content-type: text/plain; charset=utf-8\r\netag: \"1\"\r\n";
    let answer = format!(
        "HTTP/1.1 {status} So\r\n{location}{headers}content-length: {length}\r\n\r\n{text}"
    );
    // A killed client does not listen.
    let _ = stream.write_all(answer.as_bytes());
}
