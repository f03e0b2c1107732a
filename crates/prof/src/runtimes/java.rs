//! Requesting the symbols of compiled code from a running JVM.
//!
//! HotSpot opens a socket, `/tmp/.java_pidPID`, when it gets SIGQUIT and there is a file
//! `/tmp/.attach_pidPID` of its user or of root (`attachListener_posix.cpp`). Through it, `jcmd
//! Compiler.perfmap` writes `/tmp/perf-PID.map`. A JVM without such a file, or one that accepts no
//! requests, prints the stacks of its threads instead, so it must not get the signal.

use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

use prof_filemap::Rights;
use prof_model::Pid;
use prof_procfs::{Task, descriptor};
use rustix::event::PollFlags;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use rustix::process::Signal;

use super::deadline::Deadline;
use super::perf_maps::{PerfMap, file_name, open_tmp};

/// It answers when its threads have reached a safepoint. Whatever else answers in its place, and
/// however slowly: the exchange ends then.
const TIMEOUT: Duration = Duration::from_secs(5);
const LONGEST_ANSWER: usize = 64 << 10;

/// Makes a process write its perf map, if it is a JVM that has none; `None` if not. `all` is the
/// deadline of the requests to all JVMs.
///
/// # Errors
///
/// It does not write one in time, or a signal came (`Interrupted`).
pub(super) fn request_perf_map(pid: Pid, all: &Deadline<'_>) -> io::Result<Option<PerfMap>> {
    let process = Task::of(pid);
    let is_jvm = process.maps().is_ok_and(|maps| {
        let mut files = maps.iter().map(|entry| Path::new(&entry.path).to_owned());
        files.any(|file| file.file_name() == Some("libjvm.so".as_ref()))
    });
    if !is_jvm {
        return Ok(None);
    }
    let Some(inner) = process.status().ok().and_then(|status| status.inner_pid()) else {
        return Ok(None);
    };
    let deadline = all.at_most(TIMEOUT);
    let held = open_tmp(&process.root())?;
    let directory = descriptor(&held);
    let path = directory.join(file_name(inner));
    if path.exists() {
        return Ok(None);
    }
    let socket = directory.join(format!(".java_pid{inner}"));
    if !is_socket(&socket) {
        let trigger = directory.join(format!(".attach_pid{inner}"));
        open_socket(&process, pid, &trigger, &socket, &deadline)?;
    }
    let answer = send_request(&socket, &deadline)?;
    match answer.lines().next() {
        Some("0") if path.exists() => Ok(Some(PerfMap::inside(pid, path, held))),
        _ => {
            let why = answer.lines().nth(1).unwrap_or("it does not say why");
            Err(io::Error::other(why.chars().take(200).collect::<String>()))
        }
    }
}

/// Makes it open its socket.
fn open_socket(
    process: &Task,
    pid: Pid,
    trigger: &Path,
    socket: &Path,
    deadline: &Deadline<'_>,
) -> io::Result<()> {
    let refusal = |why: &str| io::Error::new(ErrorKind::PermissionDenied, why.to_owned());
    let status = process.status().map_err(io::Error::other)?;
    if !status.catches(Signal::QUIT.as_raw()) {
        return Err(refusal("it has just begun"));
    }
    let arguments = process.arguments();
    if arguments
        .iter()
        .any(|it| it == b"-XX:+DisableAttachMechanism")
    {
        return Err(refusal("it runs with -XX:+DisableAttachMechanism"));
    }
    let rights = Rights::of_process(pid)?;
    let _trigger = rights.with(|| Trigger::create(trigger))?;
    let target = rustix::process::Pid::from_raw(pid).ok_or(ErrorKind::InvalidInput)?;
    rustix::process::kill_process(target, Signal::QUIT)?;
    while !is_socket(socket) {
        if !process.exists() {
            return Err(io::Error::other("it has ended"));
        }
        deadline.pause()?;
    }
    Ok(())
}

/// Sends the request, and returns the answer: a line with a number, which is 0 for success, then
/// text for users.
fn send_request(socket: &Path, deadline: &Deadline<'_>) -> io::Result<String> {
    let mut stream = connect(socket, deadline)?;
    // The protocol's version, the request and its three arguments.
    let mut request: &[u8] = b"1\0jcmd\0Compiler.perfmap\0\0\0";
    while !request.is_empty() {
        deadline.ready(stream.as_fd(), PollFlags::OUT)?;
        let written = done(stream.write(request))?.unwrap_or(0);
        request = &request[written..];
    }
    let mut answer = Vec::new();
    let mut part = [0; 4096];
    while answer.len() < LONGEST_ANSWER {
        deadline.ready(stream.as_fd(), PollFlags::IN)?;
        match done(stream.read(&mut part))? {
            Some(0) => break,
            read => answer.extend_from_slice(&part[..read.unwrap_or(0)]),
        }
    }
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// Connects without blocking: a process whose backlog is full accepts nobody.
fn connect(socket: &Path, deadline: &Deadline<'_>) -> io::Result<UnixStream> {
    let address = SocketAddrUnix::new(socket)?;
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let kind = SocketType::STREAM;
    let stream = rustix::net::socket_with(AddressFamily::UNIX, kind, flags, None)?;
    loop {
        match rustix::net::connect(&stream, &address) {
            Ok(()) => return Ok(stream.into()),
            // Nothing announces that there is room.
            Err(Errno::AGAIN | Errno::INTR) => deadline.pause()?,
            Err(error) => return Err(error.into()),
        }
    }
}

/// The bytes of a read or write; `None` if none were ready after all.
fn done(result: io::Result<usize>) -> io::Result<Option<usize>> {
    match result {
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
            Ok(None)
        }
        result => result.map(Some),
    }
}

fn is_socket(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket())
}

/// The file that makes the JVM open its socket; removed when dropped.
struct Trigger(PathBuf);

impl Trigger {
    fn create(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)?;
        Ok(Self(path.to_owned()))
    }
}

impl Drop for Trigger {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zombie_is_no_jvm() {
        let mut child = std::process::Command::new("true").spawn().expect("started");
        let pid = child.id() as Pid;
        let ended = || Task::of(pid).stat().is_ok_and(|it| it.state.has_ended());
        while !ended() {
            std::thread::yield_now();
        }
        let signals = prof_events::Signals::block().expect("a descriptor");
        let all = Deadline::after(TIMEOUT, &signals);
        let requested = request_perf_map(pid, &all);
        assert!(requested.is_ok_and(|map| map.is_none()));
        child.wait().expect("waited for");
    }
}
