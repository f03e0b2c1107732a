//! What to do about an error of perf_event_open or of mapping its ring.

use rustix::io::Errno;

/// Everything that the advice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kernel's error.
    pub errno: Errno,
    /// /proc/sys/kernel/perf_event_paranoid.
    pub paranoid: i32,
    /// Whether kernel code was to be sampled.
    pub kernel: bool,
    /// Whether all that runs on a CPU was to be sampled.
    pub everybody: bool,
    /// Whether a process was to be sampled that we did not start.
    pub attach: bool,
    /// Whether /proc/sys/kernel/perf_event_paranoid does not matter: we have CAP_PERFMON.
    pub capable: bool,
    /// Whether we are root, or anybody else, of a user namespace, as in rootless containers.
    pub in_user_namespace: bool,
    /// Whether system calls are filtered (seccomp).
    pub filtered: bool,
    /// Whether it was the ring buffer that was refused, not the event.
    pub ring: bool,
}

/// What to do, as the end of a sentence that began with the error; never empty.
pub fn advice(refusal: Refusal) -> String {
    match refusal.errno {
        Errno::PERM | Errno::NOMEM | Errno::AGAIN if refusal.ring => {
            "the limit on locked memory is too low for the ring buffers: raise it with `ulimit \
             -l` or kernel.perf_event_mlock_kb, or ask for smaller buffers (-m)"
                .into()
        }
        Errno::ACCESS | Errno::PERM => permission(refusal),
        Errno::NOSYS if refusal.filtered => filter(),
        Errno::NOSYS => {
            "the kernel has no perf_event_open, or a sandbox hides it (gVisor does)".into()
        }
        Errno::SRCH => "the process does not exist, or has ended".into(),
        Errno::MFILE | Errno::NFILE => {
            "sampling needs two file descriptors for each thread and CPU: raise the limit with \
             `ulimit -n`"
                .into()
        }
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            "this machine cannot count that event: use -e cpu-clock".into()
        }
        Errno::BUSY => "another program has reserved the counter: use -e cpu-clock".into(),
        Errno::TOOBIG | Errno::INVAL => {
            "the kernel does not support this event or flag: it may be too old (prof needs Linux \
             5.10 or newer)"
                .into()
        }
        Errno::NOMEM => "the kernel has no memory left".into(),
        _ => "the kernel gives no reason".into(),
    }
}

fn permission(refusal: Refusal) -> String {
    let Refusal { paranoid, .. } = refusal;
    // The kernel itself says EACCES where paranoid or the target's owner is the reason.
    if refusal.filtered && (refusal.errno == Errno::PERM || refusal.capable) {
        return filter();
    }
    if refusal.capable {
        return "prof has the right to (CAP_PERFMON), but a security module or the kernel's \
                lockdown forbids it (see /sys/kernel/security/lockdown)"
            .into();
    }
    if refusal.everybody && paranoid > 0 {
        let root = match refusal.in_user_namespace {
            true => "root of the host, not of this user namespace",
            false => "root",
        };
        return format!(
            "-a needs {root} (-C and --cgroup do, too), because kernel.perf_event_paranoid is \
             {paranoid}; `sudo sysctl kernel.perf_event_paranoid=0` allows it to all users; your own \
             programs need no root (prof record COMMAND, or -p PID)"
        );
    }
    if paranoid > 2 {
        return format!(
            "kernel.perf_event_paranoid is {paranoid}, which forbids all sampling: `sudo sysctl \
             kernel.perf_event_paranoid=2` allows your own programs"
        );
    }
    if refusal.kernel && paranoid > 1 {
        return format!(
            "kernel.perf_event_paranoid is {paranoid}, which allows user code only: add :u to the \
             event, or run `sudo sysctl kernel.perf_event_paranoid=1`"
        );
    }
    if refusal.attach {
        return "the process belongs to another user or hides its memory (setuid programs do): run \
                prof as its user or as root"
            .into();
    }
    match refusal.filtered {
        true => filter(),
        false => "a security module or a sandbox forbids it".into(),
    }
}

fn filter() -> String {
    "a seccomp filter forbids it (in Docker and Podman: start the container with --security-opt \
     seccomp=unconfined, or --cap-add PERFMON; in systemd units: SystemCallFilter=)"
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Refusal), expected: &str) {
        let mut refusal = Refusal {
            errno: Errno::ACCESS,
            paranoid: 2,
            kernel: false,
            everybody: false,
            attach: false,
            capable: false,
            in_user_namespace: false,
            filtered: false,
            ring: false,
        };
        change(&mut refusal);
        let text = advice(refusal);
        assert!(text.contains(expected), "{refusal:?}: {text}");
    }

    #[test]
    fn the_advice_fits_the_cause() {
        check(|r| r.paranoid = 4, "paranoid=2");
        check(|r| r.kernel = true, "add :u");
        check(|r| r.attach = true, "run prof as its user");
        check(|r| r.everybody = true, "-a needs root (-C");
        check(
            |r| (r.everybody, r.in_user_namespace) = (true, true),
            "-a needs root of the host",
        );
        check(|r| r.capable = true, "lockdown");
        check(|_| (), "security module");
        check(|r| r.filtered = true, "a seccomp filter");
        check(
            |r| (r.errno, r.filtered) = (Errno::PERM, true),
            "a seccomp filter",
        );
        check(
            |r| (r.errno, r.filtered, r.paranoid) = (Errno::PERM, true, 4),
            "a seccomp filter",
        );
        check(
            |r| (r.errno, r.filtered) = (Errno::NOSYS, true),
            "a seccomp filter",
        );
        check(
            |r| (r.filtered, r.capable) = (true, true),
            "a seccomp filter",
        );
        check(|r| (r.filtered, r.paranoid) = (true, 4), "paranoid=2");
        check(
            |r| (r.filtered, r.attach) = (true, true),
            "run prof as its user",
        );
        check(|r| (r.errno, r.ring) = (Errno::PERM, true), "ulimit -l");
        check(|r| r.errno = Errno::MFILE, "ulimit -n");
        check(|r| r.errno = Errno::SRCH, "does not exist");
        check(|r| r.errno = Errno::NOENT, "cpu-clock");
        check(|r| r.errno = Errno::NOSYS, "gVisor");
        check(|r| r.errno = Errno::INVAL, "too old");
        check(|r| r.errno = Errno::IO, "no reason");
    }
}
