//! Uprobes as tracefs defines them.
//!
//! An event of the PMU `uprobe` contains a pointer to the path of its file. The kernel reads the
//! path again for each thread and process that inherits the event (perf_uprobe_init), where the
//! pointer is invalid: the target's `fork` fails. An event defined in tracefs is identified by an
//! id instead. It also closes at once, whereas closing one of the other kind waits until no CPU is
//! in a probe.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

use perf_event_open_sys::bindings as sys;
use prof_procfs::Task;

use crate::parsing::{EventSpec, Family};
use crate::system::tracefs;

/// A uprobe that is defined for as long as this value lives. Events of it must be closed before.
#[derive(Debug, PartialEq, Eq)]
pub struct Definition {
    list: PathBuf,
    /// Group and name.
    name: String,
    id: u64,
}

/// Definitions of this process so far.
static COUNT: AtomicU32 = AtomicU32::new(0);
/// The prefix of group names; the id of the defining process follows.
const GROUP: &str = "prof_";

impl Definition {
    /// Defines the probe of a spec; `None` if the spec is not a probe.
    ///
    /// # Errors
    ///
    /// tracefs is not mounted, may not be written, or rejects the probe.
    pub(crate) fn new(spec: &EventSpec) -> io::Result<Option<Self>> {
        let kind = match spec.family {
            Family::Uprobe => 'p',
            Family::Uretprobe => 'r',
            _ => return Ok(None),
        };
        let Some(path) = &spec.encoding.path else {
            return Ok(None);
        };
        let list = list().ok_or(io::ErrorKind::NotFound)?;
        // A path with a blank would be two words; this other path of the file has none.
        let file = File::open(std::ffi::OsStr::from_bytes(path.to_bytes()))?;
        let process = std::process::id();
        let path = match path.to_bytes().iter().any(u8::is_ascii_whitespace) {
            false => path.to_bytes().to_vec(),
            true => format!("/proc/{process}/fd/{}", file.as_raw_fd()).into_bytes(),
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("{GROUP}{process}/probe_{number}");
        let offset = spec.encoding.config2;
        let mut line = format!("{kind}:{name} ").into_bytes();
        line.extend(path);
        line.extend(format!(":{offset:#x}\n").into_bytes());
        append(&list, &line)?;
        let mut definition = Self { list, name, id: 0 };
        let id = definition.list.with_file_name("events");
        let id = fs::read_to_string(id.join(&definition.name).join("id"))?;
        definition.id = id.trim().parse().map_err(|_| io::ErrorKind::InvalidData)?;
        Ok(Some(definition))
    }

    /// Makes the attribute refer to the definition.
    pub(crate) fn apply(&self, attr: &mut sys::perf_event_attr) {
        attr.type_ = sys::PERF_TYPE_TRACEPOINT;
        attr.config = self.id;
        attr.__bindgen_anon_3.config1 = 0;
        attr.__bindgen_anon_4.config2 = 0;
    }
}

impl Drop for Definition {
    fn drop(&mut self) {
        let _ = append(&self.list, format!("-:{}\n", self.name).as_bytes());
    }
}

fn append(list: &PathBuf, line: &[u8]) -> io::Result<()> {
    OpenOptions::new().append(true).open(list)?.write_all(line)
}

/// Removes the probes that killed prof processes have left defined. Only root may.
pub fn remove_leftovers() {
    let Some(list) = list() else { return };
    let defined = fs::read_to_string(&list).unwrap_or_default();
    for name in defined.lines().filter_map(stale) {
        let _ = append(&list, format!("-:{name}\n").as_bytes());
    }
}

/// The file that holds the definitions.
fn list() -> Option<PathBuf> {
    let folders = tracefs::folders().into_iter();
    let mut lists = folders.map(|root| root.join("uprobe_events"));
    lists.find(|list| list.exists())
}

/// The name in a line of definitions, if it is of a process that has ended.
fn stale(line: &str) -> Option<&str> {
    let name = line.split_once(':')?.1.split_ascii_whitespace().next()?;
    let process: i32 = name.strip_prefix(GROUP)?.split_once('/')?.0.parse().ok()?;
    (!Task::of(process).exists()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_leftovers_are_stale() {
        let check = |line: &str, expected| assert_eq!(stale(line), expected, "{line}");
        let ours = format!("p:prof_{}/probe_0 /lib/x.so:0x10", std::process::id());
        check(&ours, None);
        let gone = "p:prof_2147483647/probe_7 /lib/x.so:0x0000000000000010";
        check(gone, Some("prof_2147483647/probe_7"));
        check("r:probe_libc/malloc /lib/libc.so.6:0x98930", None);
        check("p:prof_x/y /z:0x1", None);
        check("", None);
    }
}
