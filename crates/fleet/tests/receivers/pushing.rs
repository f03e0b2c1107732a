//! `prof push` to them.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use prof_needs::{met, tools};
use prof_recorder::{Options, Program, Signals, Target};
use serde_json::Value;
use tempfile::TempDir;

use super::server::{Request, Server};
use super::{Weights, build, errors, fleet, weights};

/// A recording, and a server that receives it.
struct Session {
    folder: TempDir,
    recording: PathBuf,
}

impl Session {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recording = folder.path().join("prof.data");
        let program = build(folder.path());
        let target = Target::Command(Program::new([program]));
        let signals = Signals::block().unwrap();
        prof_recorder::record(&Options::new(target, &recording), &signals).unwrap();
        Self { folder, recording }
    }

    /// `prof push` with a service and a label.
    fn push(&self, url: &str, environment: &[(&str, &str)]) -> Output {
        let mut push = fleet();
        push.args(["push", "--service", "shop", "--host", "node{7}"]);
        push.args(["--label", "zone=a b", "--label", "k8s.pod.name=web-1"]);
        push.arg(&self.recording).arg(url);
        push.envs(environment.iter().copied()).output().unwrap()
    }

    fn save(&self, request: &Request) -> PathBuf {
        let path = self.folder.path().join("body");
        fs::write(&path, &request.body).unwrap();
        path
    }
}

#[test]
fn go_decodes_our_pyroscope_profiles() {
    if !tools(&["gcc", "go"]) {
        return;
    }
    let session = Session::new();
    let server = Server::answering(&[]);
    let url = format!("pyroscope+http://{}/", server.address);
    let environment = [
        ("PYROSCOPE_BASIC_AUTH_USER", "ann"),
        ("PYROSCOPE_BASIC_AUTH_PASSWORD", "secret"),
        ("PYROSCOPE_TENANT_ID", "team"),
    ];
    let pushed = session.push(&url, &environment);
    assert!(pushed.status.success(), "{}", errors(&pushed));
    let request = server.next();
    assert_eq!(
        request.header("authorization"),
        Some("Basic YW5uOnNlY3JldA==")
    );
    assert_eq!(request.header("x-scope-orgid"), Some("team"));
    let query: BTreeMap<&str, &str> = request
        .target
        .strip_prefix("/ingest?")
        .unwrap()
        .split('&')
        .filter_map(|pair| pair.split_once('='))
        .collect();
    let name = percent_encoding::percent_decode_str(query["name"])
        .decode_utf8()
        .unwrap();
    assert_eq!(name, "shop{k8s_pod_name=web-1,zone=a b,host=node_7_}");
    assert_eq!(query["format"], "pprof");
    let raw = raw(&session.save(&request));
    assert_eq!(pprof_weights(&raw), weights(&session.recording));
    let number = |name: &str| -> i64 {
        let line = raw
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .unwrap();
        line.trim().parse().unwrap()
    };
    assert!(number("Period:") > 0);
    let seconds: i64 = query["from"].parse().unwrap();
    assert!(raw.contains("Time: "), "{raw}");
    assert!(seconds > 1_700_000_000);
    assert!(server.rest().is_empty());
}

/// The output of Go's pprof.
fn raw(body: &Path) -> String {
    let raw = Command::new("go")
        .args(["tool", "pprof", "-raw"])
        .arg(body)
        .output()
        .unwrap();
    assert!(raw.status.success(), "{}", errors(&raw));
    String::from_utf8(raw.stdout).unwrap()
}

/// The weight of each function, from the text of `go tool pprof -raw`:
///
/// ```text
/// Samples:
/// samples/count cpu/nanoseconds[dflt]
///          12   12000000: 1 2 3
///                 thread:[work]
/// Locations
///      1: 0x401136 M=1 burn /tmp/work.c:3:0 s=0
/// Mappings
/// ```
fn pprof_weights(raw: &str) -> Weights {
    let (samples, rest) = raw
        .split_once("Samples:\n")
        .unwrap()
        .1
        .split_once("Locations\n")
        .unwrap();
    let (locations, _) = rest.split_once("Mappings\n").unwrap();
    let mut functions: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    let mut last = 0;
    for line in locations.lines() {
        let mut words = line.split_whitespace().peekable();
        let id = words
            .peek()
            .and_then(|word| word.strip_suffix(':')?.parse().ok());
        if let Some(id) = id {
            last = id;
            words.next();
        }
        let name = words.find(|word| !word.starts_with("0x") && !word.starts_with("M="));
        functions.entry(last).or_default().extend(name);
    }
    let mut weights = Weights::new();
    for line in samples.lines() {
        let Some((values, stack)) = line.split_once(':') else {
            continue;
        };
        let Some(Ok(weight)) = values.split_whitespace().nth(1).map(str::parse::<u64>) else {
            continue;
        };
        let ids = stack.split_whitespace().filter_map(|id| id.parse().ok());
        let mut on_stack: Vec<&str> = ids.flat_map(|id: u64| functions[&id].clone()).collect();
        on_stack.sort_unstable();
        on_stack.dedup();
        for name in on_stack {
            *weights.entry(name.to_owned()).or_default() += weight;
        }
    }
    weights
}

#[test]
fn opentelemetry_decodes_our_otlp_profiles() {
    let python = prof_needs::python();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/receivers/decode_otlp.py");
    let package =
        "import opentelemetry.proto.collector.profiles.v1development.profiles_service_pb2";
    let imports = Command::new(&python).args(["-c", package]).output();
    let is_there = imports.is_ok_and(|output| output.status.success());
    let needed = "the Python package opentelemetry-proto 1.45.2 (tests/python.txt)";
    if !tools(&["gcc"]) || !met(is_there, needed) {
        return;
    }
    let session = Session::new();
    let server = Server::answering(&[(503, "busy"), (200, "{}")]);
    let url = format!("otlp+http://{}", server.address);
    let environment = [(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "authorization=Bearer%20x,team=a",
    )];
    let pushed = session.push(&url, &environment);
    assert!(pushed.status.success(), "{}", errors(&pushed));
    let (refused, request) = (server.next(), server.next());
    assert_eq!(refused.body, request.body, "tried again");
    assert_eq!(request.target, "/v1development/profiles");
    assert_eq!(
        request.header("content-type"),
        Some("application/x-protobuf")
    );
    assert_eq!(request.header("authorization"), Some("Bearer x"));
    let mut decode = Command::new(python);
    let decoded = decode
        .arg(script)
        .arg(session.save(&request))
        .output()
        .unwrap();
    assert!(decoded.status.success(), "{}", errors(&decoded));
    let decoded: Value = serde_json::from_slice(&decoded.stdout).unwrap();
    let functions: Weights = serde_json::from_value(decoded["functions"].clone()).unwrap();
    assert_eq!(functions, weights(&session.recording));
    assert_eq!(decoded["type"], serde_json::json!(["cpu", "nanoseconds"]));
    assert!(decoded["period"].as_i64() > Some(0) && decoded["time"].as_u64() > Some(1 << 60));
    let attributes = serde_json::json!({
        "service.name": "shop", "host.name": "node{7}", "zone": "a b", "k8s.pod.name": "web-1",
    });
    assert_eq!(decoded["resource"], attributes);
    assert_eq!(decoded["threads"], serde_json::json!(["work"]));
    assert!(server.rest().is_empty());
}

#[test]
fn refusals_say_why() {
    if !tools(&["gcc"]) {
        return;
    }
    let session = Session::new();
    let check = |answers: &[(u16, &'static str)], expected: &str| {
        for receiver in ["pyroscope", "otlp"] {
            let server = Server::answering(answers);
            let pushed = session.push(&format!("{receiver}+http://{}", server.address), &[]);
            assert!(!pushed.status.success(), "{expected}");
            assert!(errors(&pushed).contains(expected), "{}", errors(&pushed));
        }
    };
    check(&[(400, "no such format")], "answers 400: no such format");
    check(
        &[(401, "")],
        "answers 401 (credentials come from the environment",
    );
    check(&[(503, ""); 4], "answers 503");
    check(
        &[(302, "")],
        "answers 302: it redirects to /login, which prof does not follow (is this the receiver's",
    );
    check(&[(200, "\n<!doctype html>")], "answers 200: a web page (");
    check(
        &[(200, "Please log in")],
        "answers 200: a text: Please log in (is this the receiver's",
    );
    let page: &str = Box::leak(format!("<html>{}", " ".repeat(100_000)).into());
    check(&[(200, page)], "answers 200: a web page (");
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "a b=c")];
    let malformed = errors(&session.push("otlp+http://127.0.0.1:1", &headers));
    let expected = "the environment sets a malformed header \"a b\"";
    assert!(malformed.contains(expected), "{malformed}");
    let nowhere = session.push("otlp+http://127.0.0.1:1", &[]);
    assert!(
        errors(&nowhere).contains("cannot reach http://127.0.0.1:1/v1dev"),
        "{}",
        errors(&nowhere)
    );
    for receiver in ["pyroscope", "otlp"] {
        let server = Server::answering(&[(401, "")]);
        for address in ["127.0.0.1:1", &server.address.to_string()] {
            let pushed = session.push(&format!("{receiver}+http://ann:s3cr3t@{address}"), &[]);
            let said = errors(&pushed);
            assert!(said.contains("http://ann@127.0.0.1:"), "{said}");
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }
}
