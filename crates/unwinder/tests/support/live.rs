//! Stopped processes, and their memory.

use std::ffi::OsStr;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use prof_model::{AbsoluteAddress, FileOffset, Mapping, Module, Modules, Pid, Process, Processes};
use prof_unwinder::Memory;

use super::Samples;
use super::programs::Workshop;

/// A child process; killed when dropped.
pub struct Target(pub Child);

impl Drop for Target {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Target {
    pub fn start(program: &Path, arguments: &[&str]) -> Self {
        let child = Command::new(program)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("program");
        Self(child)
    }

    pub fn pid(&self) -> Pid {
        self.0.id() as Pid
    }

    /// Samples the running process until it has used some time of a CPU, then stops it.
    pub fn sample_and_stop(&self, workshop: &Workshop, bytes: u32) -> Samples {
        let pid = self.pid().to_string();
        // The command only serves to end the recording: after 15 ticks of user time, the fourteenth
        // field.
        let wait = "used() { cut -d' ' -f14 /proc/$0/stat || echo 99999; }; first=$(used); \
                    until [ $(($(used) - first)) -ge 15 ]; do sleep 0.02; done";
        let words = ["-p", &pid, "--", "sh", "-c", wait, &pid].map(OsStr::new);
        let samples = workshop.perf_record(&words, bytes);
        signal("STOP", &pid);
        samples
    }
}

pub fn signal(name: &str, pid: &str) {
    // The shell's own kill: not every machine has a program for it.
    let script = format!("kill -s {name} {pid}");
    let sent = Command::new("sh").args(["-c", &script]).status();
    assert!(sent.expect("sh").success());
}

/// The memory of a live process.
pub struct ProcessMemory {
    memory: File,
    maps: String,
}

impl ProcessMemory {
    pub fn of(pid: Pid) -> Self {
        let memory = File::open(format!("/proc/{pid}/mem")).expect("memory");
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).expect("maps");
        Self { memory, maps }
    }

    fn ranges(&self) -> impl Iterator<Item = (Range<u64>, &str)> {
        self.maps.lines().filter_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (start, end) = range.split_once('-')?;
            let number = |text| u64::from_str_radix(text, 16).ok();
            Some((number(start)?..number(end)?, rest))
        })
    }

    /// The process as perf's records would have described it.
    pub fn process(&self, pid: Pid, modules: &mut Modules) -> Process {
        let mut processes = Processes::default();
        for (range, rest) in self.ranges() {
            let mut fields = rest.split_whitespace();
            let permissions = fields.next().unwrap_or_default();
            let offset = fields.next().unwrap_or_default();
            let path = fields.nth(2).unwrap_or_default();
            let mapping = Mapping {
                start: AbsoluteAddress(range.start),
                end: AbsoluteAddress(range.end),
                file_offset: FileOffset(u64::from_str_radix(offset, 16).expect("offset")),
                module: modules.intern(Module::from_path(path)),
                executable: permissions.contains('x'),
            };
            processes.map(pid, mapping);
        }
        processes.get(pid).expect("mappings").clone()
    }
}

impl Memory for ProcessMemory {
    fn read(&mut self, address: u64, buffer: &mut [u8]) -> usize {
        self.memory.read_at(buffer, address).unwrap_or(0)
    }

    fn mapping(&mut self, address: u64) -> Option<Range<u64>> {
        self.ranges()
            .map(|(range, _)| range)
            .find(|range| range.contains(&address))
    }
}
