//! `prof push` to a bucket, as moto's server plays one.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prof_needs::{met, python, tools};

use super::data_set::{Session, by_function, sum};
use super::{Weights, errors, fleet, weights};

/// A server with one bucket, empty at first.
struct Bucket {
    server: Child,
    endpoint: String,
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
        // It says each request there, and must not wait for a reader.
        std::thread::spawn(move || lines.for_each(drop));
        let bucket = Self {
            server,
            endpoint: endpoint.unwrap(),
        };
        let script = "import boto3; boto3.client('s3').create_bucket(Bucket='profiles')";
        let mut made = Command::new(python());
        let made = bucket.with(made.args(["-c", script])).status().unwrap();
        assert!(made.success());
        Some(bucket)
    }

    fn with<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.envs([
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ]);
        command.env("AWS_ENDPOINT_URL", &self.endpoint)
    }

    fn push(&self, recording: &Path) -> Command {
        let mut push = fleet();
        push.args(["push", "--service", "shop", "--host", "a"]);
        push.arg(recording).arg("s3://profiles/team");
        self.with(&mut push);
        push
    }

    fn pushed(&self, recording: &Path) -> String {
        let output = self.push(recording).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
        errors(&output)
    }

    fn query(&self) -> Weights {
        let mut query = fleet();
        query.args(["query", "s3://profiles/team", "--folded", "-"]);
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
fn a_bucket_has_each_recording_once_whoever_is_killed() {
    let Some(bucket) = Bucket::start() else {
        return;
    };
    let session = Session::new();
    let (first, second) = (session.record("first"), session.record("second"));
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..50 {
        let mut push = bucket.push(&first).spawn().unwrap();
        // Wherever it is: nothing is waited for.
        std::thread::sleep(Duration::from_millis(random.u64(0..300)));
        push.kill().unwrap();
        push.wait().unwrap();
    }
    bucket.pushed(&first);
    assert!(bucket.pushed(&first).contains("was pushed before"));
    assert_eq!(bucket.query(), weights(&first));
    // Another machine of the same name.
    bucket.pushed(&second);
    let whole = sum(&weights(&first), &weights(&second));
    assert_eq!(bucket.query(), whole);
    assert_eq!(bucket.data("check"), Some(0));
    assert_eq!(bucket.data("compact"), Some(0));
    assert_eq!(bucket.query(), whole);
    assert!(bucket.pushed(&second).contains("was pushed before"));
}
