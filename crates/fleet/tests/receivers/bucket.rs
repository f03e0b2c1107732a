//! `prof push` to a bucket, as moto's server plays one.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};

use prof_needs::{met, python, tools};

use super::data_set::{Session, by_function, sum};
use super::server::Server;
use super::{Weights, errors, fleet, weights};

const CREDENTIALS: [(&str, &str); 4] = [
    ("AWS_ACCESS_KEY_ID", "key"),
    ("AWS_SECRET_ACCESS_KEY", "secret"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_DEFAULT_REGION", "us-east-1"),
];

/// A server with one bucket, empty at first.
struct Bucket {
    server: Child,
    endpoint: String,
    /// One for each request that it has answered.
    answered: Receiver<()>,
}

impl Bucket {
    /// `None` where there is no moto, which is said.
    fn start() -> Option<Self> {
        let has = Command::new(python())
            .args(["-c", "import moto.server, boto3"])
            .output();
        if !tools(&["gcc"]) || !met(has.unwrap().status.success(), "Python's moto") {
            return None;
        }
        let mut server = Command::new(python())
            .args(["-u", "-m", "moto.server", "-H", "127.0.0.1", "-p", "0"])
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(server.stderr.take().unwrap()).lines();
        let endpoint = lines.find_map(|line| {
            let line = line.unwrap();
            Some(line.split_once("Running on ")?.1.trim().to_owned())
        });
        // It sends each request there, and must not wait for a reader.
        let (answers, answered) = mpsc::channel();
        std::thread::spawn(move || lines.for_each(|_| _ = answers.send(())));
        let bucket = Self {
            server,
            endpoint: endpoint.unwrap(),
            answered,
        };
        let script = "import boto3; boto3.client('s3').create_bucket(Bucket='profiles')";
        let mut made = Command::new(python());
        let made = bucket.with(made.args(["-c", script])).status().unwrap();
        assert!(made.success());
        Some(bucket)
    }

    fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs(CREDENTIALS);
        command.env("AWS_ENDPOINT_URL", &self.endpoint)
    }

    fn push(&self, recording: &Path, prefix: &str) -> Command {
        let mut push = fleet();
        push.args(["push", "--service", "shop", "--host", "a"]);
        push.arg(recording).arg(format!("s3://profiles/{prefix}"));
        self.with(&mut push);
        push
    }

    fn pushed(&self, recording: &Path, prefix: &str) -> String {
        let output = self.push(recording, prefix).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    }

    fn query(&self, prefix: &str) -> Weights {
        let mut query = fleet();
        query.args(["query", "--folded", "-"]);
        query.arg(format!("s3://profiles/{prefix}"));
        let output = self.with(&mut query).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        by_function(&String::from_utf8(output.stdout).unwrap())
    }

    fn data(&self, verb: &str) -> Option<i32> {
        let mut data = fleet();
        data.args(["data", verb, "s3://profiles/team"]);
        self.with(&mut data).output().unwrap().status.code()
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn a_login_page_is_no_bucket() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("first");
    let push = ["push", "--service", "shop", recording.to_str().unwrap()];
    let check = |arguments: &[&str], answers: &[(u16, &'static str)], expected: &str| {
        let server = Server::answering(answers);
        let mut command = fleet();
        command
            .args(arguments)
            .arg("s3://profiles")
            .envs(CREDENTIALS);
        command.env("AWS_ENDPOINT_URL", format!("http://{}", server.address));
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{}", errors(&output));
        assert!(errors(&output).contains(expected), "{}", errors(&output));
    };
    let (redirect, page) = ([(302, ""), (200, "<html>")], [(200, "<html>")]);
    check(&push, &redirect, "redirects to /login");
    check(&push, &page, "the answer is not a table of prof");
    // Whether the run is there, in a file of its own or among others, and a file to store.
    let answers = |stored| [(404, ""), (200, "<ListBucketResult/>"), (200, stored)];
    let stores = "it answers the request to store a file with ";
    check(&push, &answers("<html>"), &format!("{stores}a web page"));
    let text = format!("{stores}a text: Please log in");
    check(&push, &answers("Please log in"), &text);
    check(&["query"], &redirect, "redirects to /login");
    check(
        &["query"],
        &page,
        "it answers the request for a list with none",
    );
}

#[test]
fn an_answer_without_end_is_no_list() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n").unwrap();
        while stream.write_all(&[b'a'; 4096]).is_ok() {}
    });
    let mut query = fleet();
    query.args(["query", "s3://profiles"]).envs(CREDENTIALS);
    let output = query.env("AWS_ENDPOINT_URL", endpoint).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        errors(&output).contains("it answers with over 8388608 bytes"),
        "{}",
        errors(&output)
    );
}

#[test]
fn missing_credentials_are_said() {
    let check = |machine: &str| {
        let mut query = fleet();
        let variables = std::env::vars_os().map(|(name, _)| name);
        for name in variables.filter(|name| name.to_string_lossy().starts_with("AWS_")) {
            query.env_remove(name);
        }
        query.env("AWS_METADATA_ENDPOINT", machine);
        let output = query.args(["query", "s3://profiles/a"]).output().unwrap();
        let expected = "prof: error: there are no credentials for the bucket profiles: set \
                        AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY\n";
        assert_eq!(errors(&output), expected);
    };
    check("http://127.0.0.1:1");
    // A machine without a role.
    let machine = Server::answering(&[(200, "token"), (404, "<html>")]);
    check(&format!("http://{}", machine.address));
    assert_eq!(machine.rest().len(), 2);
}

#[test]
fn a_bucket_that_does_not_exist_is_named() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("first");
    let answer = "<Error><Code>NoSuchBucket</Code><BucketName>profiles</BucketName></Error>";
    let check = |arguments: &[&str]| {
        let server = Server::answering(&[(404, answer); 20]);
        let mut command = fleet();
        command.args(arguments).arg("s3://profiles/a");
        command.envs(CREDENTIALS);
        command.env("AWS_ENDPOINT_URL", format!("http://{}", server.address));
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let said = errors(&output);
        let expected = ": the bucket profiles does not exist: check its name, or create it\n";
        assert!(said.ends_with(expected), "{said}");
    };
    check(&["query"]);
    check(&["push", recording.to_str().unwrap()]);
}

#[test]
fn a_store_that_does_not_answer_is_not_tried_for_each_recording() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("first");
    let check = |status: u16, requests: usize| {
        let server = Server::answering(&[(status, ""); 4]);
        let mut push = fleet();
        push.arg("push").args([&recording; 4]).arg("s3://profiles");
        push.envs(CREDENTIALS);
        push.env("AWS_ENDPOINT_URL", format!("http://{}", server.address));
        let output = push.output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(server.rest().len(), requests, "{}", errors(&output));
    };
    // The redirection to a login is none of a store.
    check(302, 1);
    check(403, 2);
}

/// Opening a bucket checks them, which needs no recording.
#[test]
fn settings_that_make_no_url_are_refused() {
    let check = |variable: &str, value: &str, expected: &str| {
        let mut query = fleet();
        query.args(["query", "s3://profiles"]).envs(CREDENTIALS);
        let output = query.env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        let expected = format!("{variable} is {value:?}: write {expected}");
        assert!(errors(&output).contains(&expected), "{}", errors(&output));
    };
    for value in ["localhost:5999", "", "http://", "ftp://localhost"] {
        check("AWS_ENDPOINT_URL", value, "a URL");
    }
    for value in ["http://127.0.0.1:99999", "http://1.2.3.999", "http://a/?b"] {
        check("AWS_ENDPOINT_URL", value, "a URL");
    }
    check("AWS_ENDPOINT_URL_S3", "localhost", "a URL");
    check("AWS_REGION", "eu west", "the name of a region");
    check("AWS_DEFAULT_REGION", "eu\n", "the name of a region");
    for variable in ["AWS_METADATA_ENDPOINT", "AWS_ENDPOINT_URL_STS"] {
        check(variable, "localhost", "a URL");
    }
    check("AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://a b", "a URL");
    check("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/a b", "a path");
}

#[test]
fn keys_that_make_no_header_are_refused_without_showing_them() {
    let check = |variable: &str, value: &str, expected: &str| {
        let mut query = fleet();
        query.args(["query", "s3://profiles"]).envs(CREDENTIALS);
        // Nobody is there.
        query.env("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
        let output = query.env(variable, value).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", errors(&output));
        let expected = format!("{variable} {expected}: remove it\n");
        assert!(errors(&output).ends_with(&expected), "{}", errors(&output));
        assert!(!errors(&output).contains("s3cr3t"), "{}", errors(&output));
    };
    for variable in [
        "AWS_SESSION_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
    ] {
        check(variable, "s3cr3t\n", "ends with a line end");
        check(variable, "s3cr3t\r\n", "ends with a line end");
    }
    let space = "has a character that no key has, such as a space";
    check("AWS_SESSION_TOKEN", "s3cr3t ", space);
    check("AWS_ACCESS_KEY_ID", "kéy", space);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "s3cr3t\n").unwrap();
    let (file, variable) = (
        file.to_str().unwrap(),
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    );
    check(variable, file, "ends with a line end");
}

#[test]
fn empty_variables_are_unset_ones() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let recording = session.record("first");
    let server = Server::answering(&[(403, "")]);
    let mut push = fleet();
    push.args(["push", "--service", "shop"]).arg(recording);
    push.arg("s3://profiles").envs(CREDENTIALS);
    push.env("AWS_ENDPOINT_URL", format!("http://{}", server.address));
    push.env("AWS_SESSION_TOKEN", "").env("AWS_REGION", "");
    assert_eq!(push.output().unwrap().status.code(), Some(1));
    let request = server.next();
    assert_eq!(request.header("x-amz-security-token"), None);
    let signed = request.header("authorization").unwrap();
    assert!(signed.contains("/us-east-1/s3/"), "{signed}");
}

#[test]
fn a_bucket_has_each_recording_once_even_after_kills() {
    let Some(bucket) = Bucket::start() else {
        return;
    };
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    let of_first = weights(&first);
    for number in 0..50 {
        // The store is empty: a push takes four requests, to check for the run, and to store
        // stacks, samples and the run.
        let prefix = format!("killed/{number}");
        bucket.answered.try_iter().for_each(drop);
        let mut push = bucket.push(&first, &prefix).spawn().unwrap();
        bucket.answered.iter().take(number % 4).for_each(drop);
        push.kill().unwrap();
        push.wait().unwrap();
        bucket.pushed(&first, &prefix);
        assert_eq!(bucket.query(&prefix), of_first, "{number}");
    }
    bucket.pushed(&first, "team");
    assert!(bucket.pushed(&first, "team").contains("was pushed before"));
    // Another machine with the same name.
    bucket.pushed(&second, "team");
    let whole = sum(&of_first, &weights(&second));
    assert_eq!(bucket.query("team"), whole);
    assert_eq!(bucket.data("check"), Some(0));
    assert_eq!(bucket.data("compact"), Some(0));
    assert_eq!(bucket.query("team"), whole);
    assert!(bucket.pushed(&second, "team").contains("was pushed before"));
}
