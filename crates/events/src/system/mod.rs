//! The machine and its settings.

pub(crate) mod hotplug;
mod priority;
mod privileges;
pub(crate) mod tracefs;

use std::fs;
use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

pub use priority::{Ahead, Priority, lower_thread_priority, raise_thread_priority};
pub use privileges::{Capability, Privileges};
use prof_procfs::settings::{cpu_info, setting};
use rustix::process::{Resource, getrlimit};

pub use crate::process::limits::raise_limits;
use crate::process::signals::SignalMask;

/// The machine's settings that limit sampling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct System {
    /// /proc/sys/kernel/perf_event_paranoid; 2, the kernel's default, if it cannot be read.
    pub paranoid: i32,
    /// /proc/sys/kernel/perf_event_max_sample_rate, samples per second.
    pub max_rate: u64,
    /// /proc/sys/kernel/perf_event_max_stack: the most frames in a callchain.
    pub max_stack: i64,
    /// The online CPUs, in ascending order.
    pub cpus: Vec<u32>,
    /// Whether a hypervisor says that it runs this machine (CPUID's bit for that, as
    /// /proc/cpuinfo shows it on x86; ARM has none).
    pub virtual_machine: bool,
}

impl System {
    /// Reads the settings.
    ///
    /// # Errors
    ///
    /// The list of online CPUs cannot be read or is invalid; the error names the file.
    pub fn read() -> io::Result<Self> {
        Ok(Self {
            paranoid: setting("kernel/perf_event_paranoid").map_or(2, |level| level as i32),
            max_rate: setting("kernel/perf_event_max_sample_rate")
                .and_then(|rate| u64::try_from(rate).ok())
                .unwrap_or(100_000),
            max_stack: setting("kernel/perf_event_max_stack").unwrap_or(127),
            cpus: online_cpus()?,
            virtual_machine: cpu_info("flags")
                .is_some_and(|flags| flags.split(' ').any(|flag| flag == "hypervisor")),
        })
    }
}

/// The CPUs that are online now, in ascending order.
///
/// # Errors
///
/// The list cannot be read or is invalid; the error names the file.
pub fn online_cpus() -> io::Result<Vec<u32>> {
    const ONLINE: &str = "/sys/devices/system/cpu/online";
    let unreadable = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("{ONLINE}: {error} (is /sys mounted?)"),
        )
    };
    let online = fs::read_to_string(ONLINE).map_err(unreadable)?;
    parse_list(online.trim()).ok_or_else(|| unreadable(io::ErrorKind::InvalidData.into()))
}

/// Bytes of memory of this machine.
pub(crate) fn memory() -> u64 {
    let info = rustix::system::sysinfo();
    (info.totalram as u64).saturating_mul(info.mem_unit.into())
}

/// The most bytes of each of this number of ring buffers: a power of two. For users with a limit,
/// all of them together may be as large as the kernel allows to lock.
pub fn largest_ring(rings: usize) -> u64 {
    const MOST: u64 = 1 << 30;
    const PAGE: u64 = 4096;
    let privileges = Privileges::read().unwrap_or_default();
    let is_unlimited = privileges.has(Capability::IpcLock)
        || setting("kernel/perf_event_paranoid").is_some_and(|level| level < 0);
    let Some(locked) = getrlimit(Resource::Memlock)
        .maximum
        .filter(|_| !is_unlimited)
    else {
        return MOST;
    };
    let per_cpu = setting("kernel/perf_event_mlock_kb").unwrap_or(516);
    let cpus = online_cpus().map_or(1, |cpus| cpus.len()) as u64;
    let shared = cpus.saturating_mul(per_cpu.unsigned_abs().saturating_mul(1024));
    let each = locked.saturating_add(shared) / rings.max(1) as u64;
    let most = each.saturating_sub(PAGE).min(MOST);
    most.checked_ilog2().map_or(0, |bits| 1 << bits)
}

/// The kernel's version, as `uname -r` prints it.
pub fn kernel_release() -> String {
    let name = rustix::system::uname();
    name.release().to_string_lossy().into_owned()
}

/// The machine's name, as `uname -n` prints it.
pub fn host_name() -> String {
    let name = rustix::system::uname();
    name.nodename().to_string_lossy().into_owned()
}

/// The processor's model, from /proc/cpuinfo.
pub fn cpu_description() -> Option<String> {
    cpu_info("model name")
}

/// CLOCK_MONOTONIC, in nanoseconds: the clock of every record.
pub fn monotonic_now() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    (now.tv_sec as u64)
        .saturating_mul(1_000_000_000)
        .saturating_add(now.tv_nsec as u64)
}

/// The local time as digits, year first, down to hundredths of a second: `2026112111034927`.
pub fn local_time_digits() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    let mut local = std::mem::MaybeUninit::<libc::tm>::zeroed();
    // SAFETY: both point to live memory of their types. If it fails, the zeros that it leaves are
    // numbers, too.
    let local = unsafe {
        libc::localtime_r(&raw const now.tv_sec, local.as_mut_ptr());
        local.assume_init()
    };
    format!(
        "{:04}{:02}{:02}{:02}{:02}{:02}{:02}",
        local.tm_year + 1900,
        local.tm_mon + 1,
        local.tm_mday,
        local.tm_hour,
        local.tm_min,
        local.tm_sec,
        now.tv_nsec / 10_000_000
    )
}

/// Calls `work` with a stack of at least this many bytes: on a thread of its own if the limit on
/// ours is lower. Signals then go to that thread, as if it were the only one.
///
/// # Errors
///
/// When no thread can be started.
pub fn with_stack<T: Send>(bytes: usize, work: fn() -> T) -> io::Result<T> {
    let limit = rustix::process::getrlimit(Resource::Stack).current;
    if limit.is_none_or(|limit| limit >= bytes as u64) {
        return Ok(work());
    }
    let before = SignalMask::block_all();
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(bytes);
        let running = thread.spawn_scoped(scope, move || {
            before.restore();
            work()
        })?;
        running
            .join()
            .or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A descriptor that we were started with, under another number and closed on exec.
///
/// # Errors
///
/// When it is not open.
pub fn inherited(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: no memory is involved; the kernel checks the number.
    let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3) };
    match copy {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor is new and owned by nothing else.
        copy => Ok(unsafe { OwnedFd::from_raw_fd(copy) }),
    }
}

/// Numbers and ranges, as in `0-3,8`.
pub fn parse_list(text: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last) = (first.parse().ok()?, last.parse::<u32>().ok()?);
        if first > last || last > 1 << 16 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}

/// Ascending numbers as the kernel writes them: `0-3,8`.
pub(crate) fn list(numbers: &[u32]) -> String {
    let runs = numbers.chunk_by(|a, b| a + 1 == *b);
    let parts = runs.filter_map(|run| match run {
        [] => None,
        [one] => Some(one.to_string()),
        [first, .., last] => Some(format!("{first}-{last}")),
    });
    parts.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists() {
        let cases: [(&str, Option<&[u32]>); 6] = [
            ("0", Some(&[0])),
            ("0-2", Some(&[0, 1, 2])),
            ("0,2-3,9", Some(&[0, 2, 3, 9])),
            ("", None),
            ("3-1", None),
            ("0-4294967295", None),
        ];
        for (text, expected) in cases {
            assert_eq!(parse_list(text).as_deref(), expected, "{text:?}");
            if let Some(numbers) = expected {
                assert_eq!(list(numbers), text);
            }
        }
    }

    #[test]
    fn this_machine_has_cpus() {
        assert!(System::read().is_ok_and(|system| !system.cpus.is_empty()));
    }
}
