//! The kernel's settings, its processors, and mounted file systems.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A setting of the kernel (sysctl) that is a number, such as `kernel/perf_event_paranoid`; `None`
/// if this kernel does not have it or does not show it.
pub fn setting(name: &str) -> Option<i64> {
    let text = fs::read_to_string(Path::new("/proc/sys").join(name)).ok()?;
    text.trim().parse().ok()
}

/// The value of this key in /proc/cpuinfo for the first CPU; the others, of which there may be
/// hundreds, are not read.
pub fn cpu_info(key: &str) -> Option<String> {
    let lines = BufReader::new(File::open("/proc/cpuinfo").ok()?).lines();
    let mut first = lines.map_while(Result::ok).take_while(|it| !it.is_empty());
    let value = |line: String| {
        let (found, value) = line.split_once(':')?;
        (found.trim_end() == key).then(|| value.trim().to_owned())
    };
    first.find_map(value)
}

/// A mounted file system: a line of /proc/self/mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its mount point.
    pub point: PathBuf,
    /// Its type, such as `cgroup2`.
    pub kind: String,
    /// Its options, separated by commas.
    pub options: String,
}

/// The file systems mounted in our namespace; empty if unavailable.
pub fn mounts() -> Vec<Mount> {
    let text = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    text.lines().filter_map(Mount::parse).collect()
}

impl Mount {
    /// `cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0`; a blank in a path is written as `\040`.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(1);
        Some(Self {
            point: fields.next()?.replace("\\040", " ").into(),
            kind: fields.next()?.to_owned(),
            options: fields.next()?.to_owned(),
        })
    }

    /// Whether it has an option.
    pub fn has_option(&self, name: &str) -> bool {
        self.options.split(',').any(|option| option == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_mounts() {
        let mount = Mount::parse("cgroup2 /sys/fs/my\\040own cgroup2 rw,nosuid 0 0").unwrap();
        assert_eq!(
            (mount.point, &*mount.kind),
            ("/sys/fs/my own".into(), "cgroup2")
        );
        assert_eq!(Mount::parse("cgroup2 /sys"), None);
        let proc = mounts().into_iter().find(|mount| mount.kind == "proc");
        assert!(proc.is_some_and(|mount| mount.has_option("rw")));
    }

    #[test]
    fn settings_are_numbers() {
        assert!(setting("kernel/pid_max").is_some_and(|most| most > 0));
        assert_eq!(setting("kernel/no_such_setting"), None);
        assert_eq!(setting("kernel/osrelease"), None, "no number");
    }
}
