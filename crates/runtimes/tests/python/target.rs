//! Interpreters of this machine, and the program that one runs.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

use object::{Object, ObjectSegment};
use prof_runtimes::Memory;
use prof_runtimes::python::{Interpreter, Symbols};
use serde_json::Value;

/// The interpreters of this machine that are supported: the system's, and those of pyenv.
pub(crate) fn interpreters() -> Vec<PathBuf> {
    let supported = |path: &Path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let minor = name.strip_prefix("python3.").and_then(|it| it.parse().ok());
        minor.is_some_and(|minor: u32| (8..=13).contains(&minor))
    };
    let versions = std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".pyenv/versions"));
    let folders = versions.and_then(|versions| fs::read_dir(versions).ok());
    let folders = folders.into_iter().flatten().flatten();
    let folders = folders.map(|entry| entry.path().join("bin"));
    let mut found: Vec<_> = folders
        .chain(["/usr/bin".into()])
        .filter_map(|folder| fs::read_dir(folder).ok())
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| supported(path))
        .collect();
    found.sort();
    prof_needs::met(!found.is_empty(), "CPython 3.8 to 3.13");
    found
}

/// The program, which waits, and what its threads said of themselves.
pub(crate) struct Target {
    child: Child,
    pub(crate) threads: Vec<Value>,
}

impl Target {
    pub(crate) fn start(interpreter: &Path) -> Self {
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/target.py");
        let mut child = Command::new(interpreter)
            .arg(script)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let threads: Vec<Value> = (0..2).map(|_| line(&mut lines)).collect();
        let target = Self { child, threads };
        for thread in &target.threads {
            target.wait_until_it_reads(&thread[1]);
        }
        target
    }

    /// Waits until a thread is in `read(0, ...)`.
    fn wait_until_it_reads(&self, tid: &Value) {
        let path = format!("/proc/{}/task/{tid}/syscall", self.child.id());
        loop {
            let call = fs::read_to_string(&path).unwrap();
            let mut words = call.split(' ');
            // Of x86-64, and of aarch64.
            let is_read = matches!(words.next(), Some("0" | "63"));
            if is_read && words.next() == Some("0x0") {
                return;
            }
            std::thread::yield_now();
        }
    }

    pub(crate) fn memory(&self) -> LiveMemory {
        LiveMemory(File::open(format!("/proc/{}/mem", self.child.id())).unwrap())
    }

    /// The interpreter, found in the files that are mapped.
    pub(crate) fn interpreter(&self) -> Interpreter {
        let maps = fs::read_to_string(format!("/proc/{}/maps", self.child.id())).unwrap();
        let begins = maps.lines().filter_map(|line| {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            let &[addresses, _, offset, _, _, path] = words.as_slice() else {
                return None;
            };
            let start = u64::from_str_radix(addresses.split('-').next()?, 16).ok()?;
            let is_begin = u64::from_str_radix(offset, 16) == Ok(0);
            (is_begin && path.starts_with('/')).then_some((start, path))
        });
        let found = begins.filter_map(|(start, path)| {
            let bytes = fs::read(path).ok()?;
            let symbols = Symbols::of_elf(&bytes)?;
            let file = object::File::parse(&*bytes).ok()?;
            let first = file.segments().next()?.address();
            let name = Path::new(path).file_name()?.to_str()?;
            let bias = start - first;
            Some(Interpreter::new(symbols, bias, name, &mut self.memory()).unwrap())
        });
        let found: Vec<Interpreter> = found.collect();
        assert_eq!(found.len(), 1, "one file of the interpreter:\n{maps}");
        found[0].clone()
    }
}

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn line(lines: &mut BufReader<ChildStdout>) -> Value {
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    serde_json::from_str(&line).unwrap()
}

pub(crate) struct LiveMemory(File);

impl Memory for LiveMemory {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.0.read_at(buffer, address).unwrap_or(0)
    }
}
