//! The needs of a test.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::session::Outcome;
use crate::target::prof;

/// Something that not every machine has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// A program in `PATH`.
    Tool(&'static str),
    /// We are root, so that we can become another user.
    Root,
    /// The permission to make mount namespaces and to mount in them.
    MountNamespaces,
    /// Cgroups of version 2, and the permission to make them (root; not in all containers).
    Cgroups,
    /// Cgroups that say which CPUs to run on, of either version (root). Where version 2 is all
    /// there is, this controller is often switched off; so CI's machines may lack it.
    Cpusets,
    /// A plain user may sample its own processes: perf_event_paranoid is at most 2.
    PlainSampling,
    /// PHP of a version that prof reads, without thread safety.
    Php,
    /// Ruby of a version that prof reads.
    Ruby,
    /// .NET, in the package `dotnetcore2` of Python, which `.ci/run` installs.
    Dotnet,
    /// The CPU's counters, which CI's kind of machine lacks by nature.
    HardwareCounters,
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Self::Tool(name) => {
                let mut command = Command::new(name);
                let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
                // Debian's perf is a script that fails where there is no perf for the kernel.
                let status = quiet.stdin(Stdio::null()).arg("--version").status();
                status.is_ok_and(|status| name != "perf" || status.success())
            }
            Self::Root => effective_uid() == Some(0),
            Self::MountNamespaces => {
                let mut command = Command::new("unshare");
                command.args([
                    "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "x", "/tmp",
                ]);
                let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
                quiet.status().is_ok_and(|status| status.success())
            }
            Self::Cgroups => cgroups().is_some(),
            Self::Cpusets => cpusets().is_some(),
            Self::PlainSampling => paranoid().is_some_and(|level| level <= 2),
            Self::Php => {
                let version = "echo PHP_MAJOR_VERSION, '.', PHP_MINOR_VERSION, ' ', (int) PHP_ZTS;";
                let output = Command::new("php").args(["-r", version]).output();
                output.is_ok_and(|output| output.stdout == b"8.2 0" || output.stdout == b"8.4 0")
            }
            Self::Ruby => {
                let output = Command::new("ruby")
                    .args(["-e", "print RUBY_VERSION"])
                    .output();
                output.is_ok_and(|output| {
                    [b"3.1.", b"3.3."]
                        .iter()
                        .any(|version| output.stdout.starts_with(*version))
                })
            }
            Self::Dotnet => dotnet().is_some(),
            Self::HardwareCounters => has_hardware_counters(),
        }
    }
}

/// Whether all needs are met; if not, says so visibly, and fails under `CI=true` unless CI's
/// machines are known to lack it.
///
/// A test begins with `if !needs(&[...]) { return; }`.
pub fn needs(needs: &[Need]) -> bool {
    let missing: Vec<Need> = needs
        .iter()
        .copied()
        .filter(|need| !need.is_met())
        .collect();
    if missing.is_empty() {
        return true;
    }
    let in_ci = std::env::var_os("CI").is_some_and(|value| value == "true");
    let by_nature = |need: &Need| matches!(need, Need::HardwareCounters | Need::Cpusets);
    let excused = missing.iter().all(by_nature);
    assert!(!in_ci || excused, "this machine lacks {missing:?}");
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test");
    // Not eprintln!, which libtest keeps to itself when a test passes.
    let message = format!("\n!!! {test} NOT RUN: this machine lacks {missing:?}\n");
    let _ = std::io::stderr().write_all(message.as_bytes());
    false
}

/// Whether a command succeeds that makes a user namespace or the like; if not, says so. Many
/// machines forbid it, and installing a package does not change that.
///
/// # Panics
/// If it cannot be started.
pub fn allowed(mut command: Command) -> bool {
    let allowed = command.status().unwrap().success();
    if !allowed {
        let message = format!("\n!!! NOT RUN: this machine forbids {command:?}\n");
        let _ = std::io::stderr().write_all(message.as_bytes());
    }
    allowed
}

/// The program that runs those of .NET.
pub fn dotnet() -> Option<PathBuf> {
    let python = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/python/bin/python3");
    let code = "import dotnetcore2; print(*dotnetcore2.__path__)";
    let output = Command::new(python).args(["-c", code]).output().ok()?;
    let package = String::from_utf8(output.stdout).ok()?;
    let program = Path::new(package.trim_end()).join("bin/dotnet");
    // The package leaves that to its own code.
    fs::set_permissions(&program, Permissions::from_mode(0o755)).ok()?;
    Some(program)
}

/// The folder in which cgroups of version 2 can be made.
pub fn cgroups() -> Option<PathBuf> {
    cgroup_mounts(" cgroup2 rw").find(|point| can_be_made(point, "cgroup.procs"))
}

/// The folder in which cgroups can be made that restrict the CPUs.
pub fn cpusets() -> Option<PathBuf> {
    cgroup_mounts(" cgroup").find(|point| can_be_made(point, "cpuset.cpus"))
}

fn cgroup_mounts(kind: &str) -> impl Iterator<Item = PathBuf> {
    let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let mounts = mounts.lines().filter(|line| line.contains(kind));
    let points = mounts.filter_map(|line| line.split(' ').nth(1).map(PathBuf::from));
    points.collect::<Vec<_>>().into_iter()
}

/// Whether a cgroup can be made there, and has this file.
fn can_be_made(point: &Path, file: &str) -> bool {
    /// Several tests may ask at once.
    static PROBES: AtomicU32 = AtomicU32::new(0);
    let number = PROBES.fetch_add(1, Ordering::Relaxed);
    let probe = point.join(format!("prof-probe-{}-{number}", std::process::id()));
    if std::fs::create_dir(&probe).is_err() {
        return false;
    }
    let found = probe.join(file).exists();
    std::fs::remove_dir(&probe).is_ok() && found
}

/// Whether prof can open one.
fn has_hardware_counters() -> bool {
    let mut doctor = Command::new(prof());
    doctor.args(["doctor", "--json"]);
    let lacking = r#""name":"hardware-counters","status":"no""#;
    !Outcome::of(doctor).stdout.contains(lacking)
}

fn paranoid() -> Option<i32> {
    let text = std::fs::read_to_string("/proc/sys/kernel/perf_event_paranoid").ok()?;
    text.trim().parse().ok()
}

/// Our effective user id, from /proc because that needs no unsafe code and no dependency.
fn effective_uid() -> Option<u32> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("Uid:"))?;
    line.split_whitespace().nth(2)?.parse().ok()
}
