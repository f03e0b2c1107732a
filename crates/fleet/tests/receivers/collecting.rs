//! `prof collect`: waiting recordings are pushed, once, whatever happens in between.

use std::collections::HashSet;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use prof_needs::{met, tools};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use super::server::{Request, Server};
use super::{errors, fleet};

/// A process that never stops, and the spool of its collector.
struct Session {
    folder: TempDir,
    busy: Child,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.busy.kill();
        let _ = self.busy.wait();
    }
}

impl Session {
    fn new() -> Self {
        let busy = Command::new("sh")
            .args(["-c", "while :; do :; done"])
            .spawn();
        Self {
            folder: tempfile::tempdir().unwrap(),
            busy: busy.unwrap(),
        }
    }

    /// Five recordings a second, pushed if there is a URL.
    fn collect(&self, url: Option<&str>) -> Command {
        self.collect_every("200ms", url)
    }

    fn collect_every(&self, time: &str, url: Option<&str>) -> Command {
        let mut collect = fleet();
        collect.args(["collect", "--service", "shop", "-F", "499", "--every", time]);
        collect.arg("--pid").arg(self.busy.id().to_string());
        collect.arg("--spool").arg(self.folder.path()).args(url);
        collect
    }

    /// The recordings that are left.
    fn spool(&self) -> Vec<PathBuf> {
        let entries = fs::read_dir(self.folder.path()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths.filter(|path| !path.ends_with("origin")).collect()
    }
}

#[test]
fn recordings_that_wait_for_the_network_are_pushed_after_a_restart() {
    let session = Session::new();
    let mut offline = session.collect(Some("pyroscope+http://127.0.0.1:1"));
    let offline = offline.args(["--duration", "1s"]).output().unwrap();
    assert!(offline.status.success(), "{}", errors(&offline));
    let said = errors(&offline);
    assert!(
        said.contains("cannot reach http://127.0.0.1:1/ingest"),
        "{said}"
    );
    assert!(said.contains("recordings wait in the spool"), "{said}");
    let waiting = session.spool().len();
    assert!(waiting > 2, "{said}");

    let server = Server::answering(&[]);
    let mut online = session.collect(Some(&format!("pyroscope+http://{}", server.address)));
    let online = online.stderr(Stdio::piped()).spawn().unwrap();
    // With a new one, all that waited were pushed.
    let mut requests: Vec<Request> = (0..=waiting).map(|_| server.next()).collect();
    kill_process(Pid::from_child(&online), Signal::TERM).unwrap();
    let online = online.wait_with_output().unwrap();
    assert!(online.status.success(), "{}", errors(&online));
    assert_eq!(session.spool(), Vec::<PathBuf>::new());
    requests.extend(server.rest());
    let bodies: HashSet<_> = requests.iter().map(|request| &request.body).collect();
    assert_eq!(bodies.len(), requests.len(), "one was pushed twice");
}

#[test]
fn a_recording_that_the_receiver_fails_to_take_holds_up_no_other() {
    let session = Session::new();
    let mut offline = session.collect(None);
    let offline = offline.args(["--duration", "1s"]).status().unwrap();
    assert!(offline.success());
    let waiting = session.spool();
    assert!(waiting.len() > 2, "{waiting:?}");
    let server = Server::answering(&[(500, "cannot")]);
    let mut online = session.collect(Some(&format!("pyroscope+http://{}", server.address)));
    let online = online.args(["--duration", "200ms"]).output().unwrap();
    let said = errors(&online);
    assert!(
        said.contains("answers 500: cannot; recordings wait"),
        "{said}"
    );
    let oldest = waiting.into_iter().min().unwrap();
    assert_eq!(session.spool(), [oldest], "{said}");
}

#[test]
fn a_killed_collector_loses_nothing_and_repeats_nothing() {
    let session = Session::new();
    let server = Server::answering(&[]);
    let url = format!("pyroscope+http://{}", server.address);
    let mut killed = session.collect(Some(&url)).spawn().unwrap();
    let first = server.next();
    // With this one, the first is done with.
    server.next();
    killed.kill().unwrap();
    killed.wait().unwrap();
    server.rest();
    let left = session.spool().len();

    let mut again = session.collect(Some(&url));
    let again = again.args(["--duration", "200ms"]).output().unwrap();
    assert!(again.status.success(), "{}", errors(&again));
    assert_eq!(session.spool(), Vec::<PathBuf>::new(), "{}", errors(&again));
    let requests = server.rest();
    assert!(
        requests.len() >= left,
        "{left} were left, {} came",
        requests.len()
    );
    assert!(requests.iter().all(|request| request.body != first.body));
}

/// Sampling starts anew after sixty recordings.
#[test]
fn recordings_go_on_when_sampling_starts_anew() {
    let session = Session::new();
    let mut collect = session.collect_every("20ms", None);
    let mut collect = collect.stderr(Stdio::piped()).spawn().unwrap();
    while session.spool().len() < 70 && collect.try_wait().unwrap().is_none() {
        thread::yield_now();
    }
    kill_process(Pid::from_child(&collect), Signal::TERM).unwrap();
    let collected = collect.wait_with_output().unwrap();
    assert!(collected.status.success(), "{}", errors(&collected));
    assert_eq!(errors(&collected), "");
}

/// object_store panics over a role of the instance that makes no URL.
#[test]
fn a_collector_whose_pusher_panics_ends() {
    let session = Session::new();
    let instance = Server::answering(&[(200, "token"), (200, "no role")]);
    let mut collect = session.collect(Some("s3://profiles"));
    collect.args(["--duration", "1m"]);
    collect.env(
        "AWS_METADATA_ENDPOINT",
        format!("http://{}", instance.address),
    );
    let collected = collect.output().unwrap();
    let said = errors(&collected);
    assert_eq!(collected.status.code(), Some(1), "{said}");
    assert!(said.contains("pushing ended by a bug of prof"), "{said}");
    assert!(!session.spool().is_empty());
}

#[test]
fn waiting_recordings_keep_their_labels() {
    let session = Session::new();
    let collect = |version: &str, url: Option<&str>| {
        let mut collect = session.collect(url);
        collect.args(["--duration", "500ms", "--label", version]);
        let collected = collect.output().unwrap();
        assert!(collected.status.success(), "{}", errors(&collected));
    };
    collect("version=1", None);
    let waiting = session.spool();
    let server = Server::answering(&[]);
    collect(
        "version=2",
        Some(&format!("pyroscope+http://{}", server.address)),
    );
    assert_eq!(session.spool(), Vec::<PathBuf>::new());
    let requests = server.rest();
    let count = |text: &str| {
        let targets = requests.iter().map(|request| &request.target);
        targets.filter(|target| target.contains(text)).count()
    };
    assert_eq!(count("version%3D1"), waiting.len());
    assert!(count("version%3D2") > 0);
}

/// A collector in a pod is not what runs on the machine.
#[test]
fn what_runs_on_the_cpus_has_only_the_labels_of_the_machine() {
    let session = Session::new();
    let pod = tempfile::tempdir().unwrap();
    fs::write(pod.path().join("labels"), "app=\"prof\"\n").unwrap();
    let names = |target: &[&str]| {
        let server = Server::answering(&[]);
        let mut collect = fleet();
        collect.args(["collect", "--service", "shop", "--duration", "300ms"]);
        collect.args(["--label", "zone=a"]).args(target);
        collect.arg("--podinfo").arg(pod.path());
        collect.arg("--spool").arg(session.folder.path());
        collect.arg(format!("pyroscope+http://{}", server.address));
        collect.env("POD_NAME", "collector-1");
        collect.env("NODE_NAME", "n1");
        collect.env("OTEL_RESOURCE_ATTRIBUTES", "team=ops");
        let collected = collect.output().unwrap();
        assert!(collected.status.success(), "{}", errors(&collected));
        server.next().target
    };
    let pid = session.busy.id().to_string();
    let of_process = names(&["--pid", &pid]);
    let found = [
        "k8s_pod_name%3Dcollector",
        "k8s_pod_label_app%3D",
        "team%3D",
    ];
    for label in found {
        let label = label.replace('_', "%5F");
        assert!(of_process.contains(&label), "{of_process}");
    }
    let of_cpus = names(&["--all-cpus"]);
    let labels = "shop%7Bk8s%5Fnode%5Fname%3Dn1%2Czone%3Da%2Chost%3D";
    assert!(of_cpus.contains(labels), "{of_cpus}");
}

#[test]
fn a_receiver_that_hangs_does_not_hold_up_the_end() {
    let session = Session::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("pyroscope+http://{}", listener.local_addr().unwrap());
    let mut collect = session.collect(Some(&url));
    let collect = collect.stderr(Stdio::piped()).spawn().unwrap();
    let _hanging = listener.accept().unwrap();
    kill_process(Pid::from_child(&collect), Signal::TERM).unwrap();
    // Pushing takes the time from here on.
    kill_process(Pid::from_child(&session.busy), Signal::STOP).unwrap();
    let collected = collect.wait_with_output().unwrap();
    let said = errors(&collected);
    assert!(collected.status.success(), "{}: {said}", collected.status);
    let expected = "in the spool: pushing takes more than 10 s";
    assert!(said.contains("left ") && said.contains(expected), "{said}");
    assert!(!session.spool().is_empty());
}

/// Half a second with the start costs more than prof may use.
#[test]
fn the_last_recording_says_nothing_about_the_next() {
    let session = Session::new();
    let mut collect = fleet();
    collect.args(["collect", "--service", "shop", "--duration", "500ms"]);
    collect.arg("--spool").arg(session.folder.path());
    let collected = collect.output().unwrap();
    assert!(collected.status.success());
    assert_eq!(errors(&collected), "");
}

/// Such a recording does not say it.
#[test]
fn the_recording_that_a_killed_collector_leaves_has_the_host() {
    let session = Session::new();
    let mut killed = session.collect_every("1h", None).spawn().unwrap();
    let recording = session.folder.path().join("recording");
    while fs::metadata(&recording).map_or(0, |file| file.len()) < 32 << 10 {
        // Do not take CPU time from what is sampled.
        thread::sleep(Duration::from_millis(1));
    }
    killed.kill().unwrap();
    killed.wait().unwrap();
    let server = Server::answering(&[]);
    let mut again =
        session.collect_every("1h", Some(&format!("pyroscope+http://{}", server.address)));
    let again = again.args(["--duration", "200ms"]).output().unwrap();
    assert!(again.status.success(), "{}", errors(&again));
    let requests = server.rest();
    let is_unknown = |request: &Request| request.target.contains("host%3Dunknown");
    assert_eq!(requests.len(), 2);
    assert!(!requests.iter().any(is_unknown));
}

#[test]
fn a_full_spool_drops_the_oldest() {
    let session = Session::new();
    let old = session.folder.path().join("recording.2026");
    fs::write(&old, vec![0; 2 << 20]).unwrap();
    let mut collect = session.collect(None);
    collect.args(["--duration", "200ms", "--spool-size", "1"]);
    let collected = collect.output().unwrap();
    assert!(collected.status.success());
    let said = errors(&collected);
    assert!(said.contains("dropped 1 recording, the oldest"), "{said}");
    assert!(!old.exists() && !session.spool().is_empty());
}

/// A mount namespace in which a folder is a small disk.
struct SmallDisk(Child);

impl SmallDisk {
    /// `None` where that is not permitted, which is said.
    fn at(folder: &Path) -> Option<Self> {
        let mut namespace = Command::new("unshare");
        let script = "mount -t tmpfs -o size=200k none \"$0\" && echo && exec cat";
        namespace.args(["--mount", "sh", "-c", script]).arg(folder);
        namespace.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holder = namespace.stderr(Stdio::null()).spawn().unwrap();
        let mounted = holder.stdout.as_mut().unwrap().read(&mut [0]).unwrap() == 1;
        let disk = Self(holder);
        met(mounted, "the permission to mount").then_some(disk)
    }

    /// The command with this disk.
    fn with(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--mount=/proc/{}/ns/mnt", self.0.id()));
        inside.arg("--").arg(command.get_program());
        inside.args(command.get_args());
        inside
    }

    /// The complete recordings that wait there.
    fn waiting(&self, folder: &Path) -> usize {
        let inside = format!("/proc/{}/root{}", self.0.id(), folder.display());
        let names = fs::read_dir(inside).unwrap().map(|entry| entry.unwrap());
        let names = names.map(|entry| entry.file_name().into_string().unwrap());
        names.filter(|name| name.starts_with("recording.2")).count()
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_full_disk_is_said_and_loses_nothing_that_waits() {
    if !tools(&["unshare", "nsenter"]) {
        return;
    }
    let session = Session::new();
    let folder = session.folder.path();
    let Some(disk) = SmallDisk::at(folder) else {
        return;
    };
    let mut collect = disk.with(&session.collect(None));
    let mut collect = collect.stderr(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut lines = BufReader::new(collect.stderr.take().unwrap());
    lines.read_line(&mut said).unwrap();
    assert!(said.contains("No space left on device"), "{said}");
    assert!(said.ends_with("; prof tries again every 10 s\n"), "{said}");
    kill_process(Pid::from_child(&collect), Signal::TERM).unwrap();
    assert!(collect.wait().unwrap().success());
    let waiting = disk.waiting(folder);
    assert!(waiting > 0);

    // It is still full.
    let server = Server::answering(&[]);
    let url = format!("pyroscope+http://{}", server.address);
    let mut again = session.collect(Some(&url));
    let again = disk.with(again.args(["--duration", "200ms"])).output();
    let again = again.unwrap();
    assert!(again.status.success(), "{}", errors(&again));
    assert_eq!(disk.waiting(folder), 0, "{}", errors(&again));
    let requests = server.rest();
    let bodies: HashSet<_> = requests.iter().map(|request| &request.body).collect();
    assert!(bodies.len() >= waiting, "{} of {waiting}", bodies.len());
}

#[test]
fn a_recording_without_a_reader_is_dropped_and_reported() {
    let session = Session::new();
    let server = Server::answering(&[(400, "too old")]);
    fs::write(session.folder.path().join("recording.2026"), "no recording").unwrap();
    let mut collect = session.collect(Some(&format!("pyroscope+http://{}", server.address)));
    let collected = collect.args(["--duration", "500ms"]).output().unwrap();
    let said = errors(&collected);
    assert!(said.contains("dropped a recording: cannot read"), "{said}");
    assert!(said.contains("dropped a recording: http"), "{said}");
    assert!(said.contains("answers 400: too old"), "{said}");
    assert_eq!(session.spool(), Vec::<PathBuf>::new());
}

#[test]
fn one_spool_has_one_collector() {
    let session = Session::new();
    let server = Server::answering(&[]);
    let url = format!("pyroscope+http://{}", server.address);
    let mut first = session.collect(Some(&url)).spawn().unwrap();
    server.next();
    let second = session.collect(Some(&url)).output().unwrap();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(
        errors(&second).contains("in use by another collector"),
        "{}",
        errors(&second)
    );
}
