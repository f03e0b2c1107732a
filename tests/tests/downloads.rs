//! Debug info from debuginfod servers, as users experience it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prof_tests::{Need, Outcome, Program, Session, USER_CODE, needs, signal};

const INLINING: Program = Program::cpp(&["inlining.cpp"]);

/// A recording of a program that is stripped; its debug file is in `served`.
fn record_stripped(session: &Session) {
    let program = session.install(&INLINING.build());
    std::fs::create_dir(session.path("served")).unwrap();
    for arguments in [
        &[
            "objcopy",
            "--only-keep-debug",
            "inlining",
            "served/inlining.debug",
        ][..],
        &["strip", "inlining"],
    ] {
        Outcome::of(session.command(Path::new(arguments[0]), &arguments[1..])).assert_code(0);
    }
    session.record(USER_CODE, &[program]);
}

/// `prof report` with the server at `url`.
fn report(session: &Session, url: &str, options: &[&str]) -> Command {
    let mut command = session.prof(["report"].iter().chain(options));
    command
        .env("DEBUGINFOD_URLS", url)
        .env("DEBUGINFOD_CACHE_PATH", session.path("cache"))
        .env("DEBUGINFOD_TIMEOUT", "3600");
    command
}

struct Server(Child);

impl Server {
    /// Starts Debian's own server, and waits until it has found its files.
    fn start(session: &Session) -> (Self, String) {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let mut command = session.command(
            Path::new("debuginfod"),
            ["-F", "-d", ":memory:", "-t", "0", "-g", "0", "served", "-p"],
        );
        let quiet = command.arg(port.to_string()).stderr(Stdio::null());
        let server = Self(quiet.stdout(Stdio::null()).spawn().unwrap());
        let deadline = Instant::now() + Duration::from_secs(60);
        while !has_found_files(port) {
            assert!(Instant::now() < deadline, "debuginfod found nothing");
            std::thread::sleep(Duration::from_millis(20));
        }
        (server, format!("http://127.0.0.1:{port}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The server counts the files that it has scanned.
fn has_found_files(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
        return false;
    };
    let mut answer = String::new();
    let sent = stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n");
    sent.is_ok()
        && stream.read_to_string(&mut answer).is_ok()
        && answer.lines().any(|line| {
            line == "groom{statistic=\"files scanned\"} 1"
                || line.starts_with("scanned_files_total{source=\"file\"} ")
        })
}

#[test]
fn names_and_inlined_functions_come_from_the_server() {
    if !needs(&[Need::Tool("g++"), Need::Tool("debuginfod")]) {
        return;
    }
    let session = Session::new();
    record_stripped(&session);
    let (server, url) = Server::start(&session);
    let has_names = |outcome: &Outcome| {
        outcome.assert_code(0);
        outcome.stdout.contains("shapes::innermost")
    };
    let folded = ["--folded", "-"];
    let with = |url: &str, options: &[&str]| {
        Outcome::of(report(&session, url, &[&folded, options].concat()))
    };
    let refused = with(&url, &["--no-debuginfod"]);
    refused.assert_says(&["symbols are missing in inlining", "DEBUGINFOD_URLS"]);
    assert!(!has_names(&refused), "{refused}");
    assert!(!has_names(&with("", &[])));
    with("", &["--debuginfod"]).assert_refused(&["DEBUGINFOD_URLS"]);

    let named = with(&url, &[]);
    assert!(has_names(&named), "{named}");
    let directory = std::fs::read_dir(session.path("cache")).unwrap();
    let cached: Vec<_> = directory
        .map(|entry| entry.unwrap().path().join("debuginfo"))
        .filter(|path| path.metadata().is_ok_and(|found| found.len() > 0))
        .collect();
    assert_eq!(cached.len(), 1, "only what the server has: {cached:?}");
    drop(server);

    // All subcommands use the cache now; the server is gone.
    let option = format!("--debuginfod={url}");
    assert!(has_names(&with("", &[&option])));
    let diff = ["diff", "prof.data", "prof.data", "--json", "-"];
    for verb in [&["script"][..], &diff] {
        let mut command = session.prof(verb.iter().chain(&[option.as_str()]));
        command.env("DEBUGINFOD_CACHE_PATH", session.path("cache"));
        let outcome = Outcome::of(command);
        assert!(has_names(&outcome), "{outcome}");
    }
    let mut command = session.prof(["annotate", "--asm", "shapes::innermost", &option]);
    command.env("DEBUGINFOD_CACHE_PATH", session.path("cache"));
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    assert!(outcome.stdout.contains("instructions"), "{outcome}");
}

/// A server that accepts requests and never responds.
fn silent_server() -> (TcpListener, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    (listener, url)
}

/// `prof report` on a terminal of its own.
fn on_a_terminal(session: &Session, url: &str) -> Child {
    let inner = report(session, url, &["--no-inline"]);
    let prof = inner.get_program().to_str().unwrap().to_owned();
    let arguments = inner.get_args().map(|argument| argument.to_str().unwrap());
    let line = [&[prof.as_str()][..], &arguments.collect::<Vec<_>>()].concat();
    let mut command = session.command(
        Path::new("script"),
        [
            "-q",
            "-e",
            "-c",
            &format!("exec {}", line.join(" ")),
            "/dev/null",
        ],
    );
    command.envs(
        inner
            .get_envs()
            .filter_map(|(name, value)| Some((name, value?))),
    );
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped());
    piped.spawn().unwrap()
}

/// Reads on until `words` came.
#[track_caller]
fn read_up_to(output: &mut impl Read, words: &str) -> String {
    let mut seen = Vec::new();
    let mut byte = [0];
    while !seen.ends_with(words.as_bytes()) {
        let read = output.read(&mut byte).unwrap();
        assert!(
            read > 0,
            "no {words:?} in {}",
            String::from_utf8_lossy(&seen)
        );
        seen.extend(byte);
    }
    String::from_utf8_lossy(&seen).into_owned()
}

/// The first one skips the download, even without a terminal; the next one is for prof itself.
#[test]
fn the_second_interrupt_ends_prof() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    record_stripped(&session);
    let (listener, url) = silent_server();
    let mut command = session.prof(["script"]);
    command.env("DEBUGINFOD_URLS", &url);
    command.env("DEBUGINFOD_CACHE_PATH", session.path("cache"));
    command.env("DEBUGINFOD_TIMEOUT", "3600");
    let mut prof = command.stdout(Stdio::piped()).spawn().unwrap();
    let interrupt = |prof: &Child| signal("-INT", prof.id());
    let connection = listener.accept().unwrap();
    interrupt(&prof);
    // It has cancelled the download and prints, and waits for us to read more than a pipe holds.
    let mut output = prof.stdout.take().unwrap();
    read_up_to(&mut output, "inlining");
    interrupt(&prof);
    assert_eq!(prof.wait().unwrap().signal(), Some(2));
    drop((output, connection));
}

#[test]
fn control_c_skips_downloads() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    record_stripped(&session);
    let (listener, url) = silent_server();
    let control_c = |child: &Child| child.stdin.as_ref().unwrap().write_all(&[3]).unwrap();

    let mut waiting = on_a_terminal(&session, &url);
    let mut output = waiting.stdout.take().unwrap();
    read_up_to(&mut output, "downloading debug info (Ctrl-C skips)");
    control_c(&waiting);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(
        rest.contains("the download of the debug info was skipped"),
        "{rest}"
    );
    assert!(rest.contains("verdict: "), "{rest}");
    assert!(waiting.wait().unwrap().success());
    drop(listener);
}
