//! Debug info from servers: Debian's own `debuginfod`, and some that misbehave.

#![allow(clippy::unwrap_used)]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::{build, chains, have, module, offsets_of, options, run};
use prof_model::Module;
use prof_symbols::{
    Debuginfod, Detail, ModuleStatus, Progress, Query, Resolved, Source, SymbolOptions, Symbolizer,
    Watch,
};

const INLINED: &str = "inner:5 middle:9";

/// A stripped program here, its debug file and a copy of it where the server looks.
struct Setup {
    directory: tempfile::TempDir,
    module: Module,
    offsets: Vec<u64>,
    longest: Duration,
    largest: u64,
}

impl Setup {
    fn new() -> Self {
        let (directory, program) = build("gcc", &["-g"]);
        let offsets = offsets_of(&program, "middle");
        fs::create_dir(directory.path().join("served")).unwrap();
        let keep = ["--only-keep-debug", "program", "served/program.debug"];
        run("objcopy", &keep, directory.path());
        run("strip", &["program"], directory.path());
        fs::copy(&program, directory.path().join("served/program")).unwrap();
        Self {
            module: module(&program),
            directory,
            offsets,
            longest: Duration::from_secs(3600),
            largest: 1 << 30,
        }
    }

    fn cache(&self) -> PathBuf {
        self.directory.path().join("cache")
    }

    fn options(&self, url: &str, timeout: Duration) -> SymbolOptions {
        SymbolOptions {
            debuginfod: Some(Debuginfod {
                urls: vec![url.into()],
                cache: self.cache(),
                timeout,
                longest: self.longest,
                largest: self.largest,
            }),
            ..options(Path::new("/nowhere"))
        }
    }

    fn resolve(&self, url: &str, timeout: Duration, watch: Watch<'_>) -> Resolved {
        let query = Query {
            source: Source::File(&self.module),
            addresses: &self.offsets,
        };
        let symbolizer = Symbolizer::new(self.options(url, timeout));
        symbolizer.resolve_watched(&[query], watch).remove(0)
    }

    fn cached(&self, name: &str) -> PathBuf {
        let id = self.module.build_id.unwrap().to_string();
        self.cache().join(id).join(name)
    }
}

const PATIENT: Duration = Duration::from_secs(60);

/// Debian's debuginfod on a port of loopback.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    /// Starts it and waits until it has found the files.
    fn start(setup: &Setup) -> Self {
        let port = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .unwrap()
            .port();
        let child = Command::new("debuginfod")
            .args(["-F", "-d", ":memory:", "-t", "0", "-g", "0", "-p"])
            .arg(port.to_string())
            .arg(setup.directory.path().join("served"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let server = Self {
            child,
            url: format!("http://127.0.0.1:{port}"),
        };
        let id = setup.module.build_id.unwrap();
        let deadline = Instant::now() + PATIENT;
        for kind in ["debuginfo", "executable"] {
            while !server.has(port, &format!("/buildid/{id}/{kind}")) {
                assert!(Instant::now() < deadline, "debuginfod found nothing");
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        server
    }

    fn has(&self, port: u16, path: &str) -> bool {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", port)) else {
            return false;
        };
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        let mut answer = Vec::new();
        stream.write_all(request.as_bytes()).is_ok()
            && stream.read_to_end(&mut answer).is_ok()
            && answer.windows(5).take(16).any(|part| part == b" 200 ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn debug_info_comes_from_a_real_server_and_stays_in_the_shared_cache() {
    if !have("debuginfod", "debuginfod") || !have("debuginfod-find", "debuginfod") {
        return;
    }
    let setup = Setup::new();
    let server = Server::start(&setup);
    let seen = Mutex::new(Vec::new());
    let progress = |progress| seen.lock().unwrap().push(progress);
    let watch = Watch {
        progress: Some(&progress),
        ..Watch::default()
    };
    let url = server.url.clone();
    let resolved = setup.resolve(&url, PATIENT, watch);
    assert!(
        chains(&resolved).contains(&INLINED.into()),
        "{}",
        resolved.status()
    );
    assert_eq!(resolved.detail(), Detail::Inlines);
    let is_download = |progress: &Progress| {
        matches!(progress, Progress::Download { module, received, .. }
            if module == "program" && *received > 0)
    };
    assert!(seen.lock().unwrap().iter().any(is_download));
    drop(server);

    let cached = setup.cached("debuginfo");
    assert_eq!(resolved.file(), Some(&*cached));
    assert_eq!(
        fs::metadata(&cached).unwrap().permissions().mode() & 0o777,
        0o400
    );
    // Now from the cache: by us, and by elfutils' own client.
    let again = setup.resolve(&url, PATIENT, Watch::default());
    assert_eq!(chains(&again), chains(&resolved));
    assert_eq!(find(&setup, &url), cached);
}

#[test]
fn downloads_of_other_clients_are_used() {
    if !have("debuginfod", "debuginfod") || !have("debuginfod-find", "debuginfod") {
        return;
    }
    let setup = Setup::new();
    let server = Server::start(&setup);
    let path = find(&setup, &server.url);
    let url = server.url.clone();
    drop(server);
    let resolved = setup.resolve(&url, PATIENT, Watch::default());
    assert_eq!(resolved.file(), Some(&*path));
    assert!(chains(&resolved).contains(&INLINED.into()));
}

#[test]
fn a_program_that_is_gone_comes_from_the_server_too() {
    if !have("debuginfod", "debuginfod") {
        return;
    }
    let setup = Setup::new();
    fs::remove_file(&setup.module.path).unwrap();
    let server = Server::start(&setup);
    let resolved = setup.resolve(&server.url, PATIENT, Watch::default());
    assert!(
        chains(&resolved).contains(&INLINED.into()),
        "{}",
        resolved.status()
    );
}

/// The path at which elfutils' client finds the debug file.
fn find(setup: &Setup, url: &str) -> PathBuf {
    let id = setup.module.build_id.unwrap().to_string();
    let cache = format!("DEBUGINFOD_CACHE_PATH={}", setup.cache().display());
    let urls = format!("DEBUGINFOD_URLS={url}");
    let arguments = [&cache, &urls, "debuginfod-find", "debuginfo", &id];
    PathBuf::from(run("env", &arguments, setup.directory.path()).trim())
}

/// A server that does `work` with each connection, after it has read the request.
fn serve(work: impl Fn(TcpStream) + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut request = Vec::new();
            let mut byte = [0];
            while !request.ends_with(b"\r\n\r\n") && (&stream).read_exact(&mut byte).is_ok() {
                request.extend(byte);
            }
            work(stream);
        }
    });
    url
}

#[track_caller]
fn check_problem(resolved: &Resolved, expected: &str) {
    let ModuleStatus::Stripped { downloads, .. } = resolved.status() else {
        panic!("{:?}", resolved.status());
    };
    let problem = downloads.as_deref().unwrap_or_default();
    assert!(problem.contains(expected), "{problem}");
    assert!(resolved.status().to_string().contains(problem));
}

#[test]
fn missing_files_are_requested_once() {
    let setup = Setup::new();
    let url = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    });
    let resolved = setup.resolve(&url, PATIENT, Watch::default());
    check_problem(&resolved, "no debuginfod server has the debug info");
    // An empty file says so to all clients for a while.
    assert_eq!(fs::metadata(setup.cached("debuginfo")).unwrap().len(), 0);
    let resolved = setup.resolve("http://127.0.0.1:1", PATIENT, Watch::default());
    check_problem(&resolved, "no debuginfod server has the debug info");
    // Unless the while is over.
    fs::write(setup.cache().join("cache_miss_s"), "0\n").unwrap();
    let old = fs::File::open(setup.cached("debuginfo")).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    let resolved = setup.resolve("http://127.0.0.1:1", PATIENT, Watch::default());
    check_problem(&resolved, "http://127.0.0.1:1/buildid/");
}

#[test]
fn a_server_that_hangs_is_given_up_after_the_timeout() {
    let setup = Setup::new();
    let (keep, kept) = std::sync::mpsc::channel();
    let url = serve(move |stream| keep.send(stream).unwrap_or_default());
    let resolved = setup.resolve(&url, Duration::from_millis(100), Watch::default());
    check_problem(&resolved, "timeout");
    drop(kept);
}

#[test]
fn waiting_for_a_server_can_be_cut_short() {
    let setup = Setup::new();
    let skip: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (keep, _kept) = std::sync::mpsc::channel();
    let url = serve(move |stream| {
        skip.store(true, Ordering::Relaxed);
        keep.send(stream).unwrap_or_default();
    });
    let watch = Watch {
        skip_downloads: Some(skip),
        ..Watch::default()
    };
    // An hour: if the flag had no effect, this would not end.
    let resolved = setup.resolve(&url, Duration::from_secs(3600), watch);
    check_problem(&resolved, "skipped");
}

#[test]
fn data_from_servers_is_checked() {
    let setup = Setup::new();
    let other = fs::read("/proc/self/exe").unwrap();
    let url = serve(move |mut stream| {
        let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", other.len());
        let _ = stream.write_all(head.as_bytes());
        let _ = stream.write_all(&other);
    });
    let resolved = setup.resolve(&url, PATIENT, Watch::default());
    check_problem(&resolved, "the server sent another file");
    let left: Vec<_> = fs::read_dir(setup.cached("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_download_that_breaks_off_leaves_nothing() {
    let setup = Setup::new();
    let url = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n\x7fELF");
    });
    let resolved = setup.resolve(&url, PATIENT, Watch::default());
    check_problem(&resolved, "could not be downloaded");
    assert!(!setup.cached("debuginfo").exists());
}

#[test]
fn an_answer_without_end_has_one() {
    let mut setup = Setup::new();
    setup.largest = 1 << 20;
    let kept = setup.cached("debuginfo.killed");
    fs::create_dir_all(kept.parent().unwrap()).unwrap();
    let old = fs::File::create(&kept).unwrap();
    old.set_modified(std::time::UNIX_EPOCH).unwrap();
    let url = serve(|mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
        while stream.write_all(&[b'x'; 1 << 16]).is_ok() {}
    });
    let resolved = setup.resolve(&url, PATIENT, Watch::default());
    check_problem(
        &resolved,
        "it is larger than 1048576 bytes (DEBUGINFOD_MAXSIZE)",
    );
    // Neither this one nor the incomplete download of a killed process.
    let left: Vec<_> = fs::read_dir(setup.cached("")).unwrap().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn a_file_may_take_only_so_long() {
    let mut setup = Setup::new();
    setup.longest = Duration::from_millis(100);
    let (keep, _kept) = std::sync::mpsc::channel();
    let url = serve(move |mut stream| {
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n\x7fELF");
        keep.send(stream).unwrap_or_default();
    });
    // An hour: if only the next part were waited for, this would not end.
    let resolved = setup.resolve(&url, Duration::from_secs(3600), Watch::default());
    check_problem(&resolved, "timeout");
}
