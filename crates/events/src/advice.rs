//! What to do about an error of perf_event_open or of mapping its ring.

use rustix::io::Errno;

/// All that the advice depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What the kernel answered.
    pub errno: Errno,
    /// /proc/sys/kernel/perf_event_paranoid.
    pub paranoid: i32,
    /// Whether kernel code was to be sampled.
    pub kernel: bool,
    /// Whether a process was to be sampled that we did not start.
    pub attach: bool,
    /// Whether we are root.
    pub root: bool,
    /// Whether it was the ring buffer that was refused, not the event.
    pub ring: bool,
}

/// Says what to do, as the end of a sentence that began with the error; never empty.
pub fn advice(refusal: Refusal) -> String {
    match refusal.errno {
        Errno::PERM | Errno::NOMEM | Errno::AGAIN if refusal.ring => {
            "the limit on locked memory leaves no room for ring buffers: raise it with `ulimit -l` \
             or kernel.perf_event_mlock_kb, or ask for smaller ones with -m"
                .into()
        }
        Errno::ACCESS | Errno::PERM => permission(refusal),
        Errno::NOSYS => "the kernel has no perf_event_open, or a sandbox hides it (a seccomp \
             filter, as in gVisor and some containers)"
            .into(),
        Errno::SRCH => "the process does not exist, or has ended".into(),
        Errno::MFILE | Errno::NFILE => "sampling takes a file descriptor for each thread and CPU: \
             raise the limit with `ulimit -n`"
            .into(),
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            "this machine cannot count that event: use -e cpu-clock".into()
        }
        Errno::BUSY => "another program has the counter to itself: use -e cpu-clock".into(),
        Errno::TOOBIG | Errno::INVAL => {
            "the kernel does not know what was asked for: it may be too old (Linux 5.10 is the \
             oldest that prof is made for)"
                .into()
        }
        Errno::NOMEM => "the kernel has no memory left for it".into(),
        _ => "the kernel gives no reason".into(),
    }
}

fn permission(refusal: Refusal) -> String {
    let Refusal { paranoid, root, .. } = refusal;
    if root {
        return "even for root: a sandbox refuses it (seccomp filter or lockdown; in Docker: \
                --security-opt seccomp=unconfined or --cap-add PERFMON)"
            .into();
    }
    if paranoid > 2 {
        return format!(
            "kernel.perf_event_paranoid is {paranoid}, which allows no sampling at all: \
             `sudo sysctl kernel.perf_event_paranoid=2` allows one's own programs"
        );
    }
    if refusal.kernel && paranoid > 1 {
        return format!(
            "kernel.perf_event_paranoid is {paranoid}, which allows user code only: add :u to the \
             event, or `sudo sysctl kernel.perf_event_paranoid=1`"
        );
    }
    if refusal.attach {
        return "the process belongs to someone else or hides its memory (setuid programs do): \
                run prof as its user or as root"
            .into();
    }
    "a sandbox refuses it (a seccomp filter; in Docker: --security-opt seccomp=unconfined or \
     --cap-add PERFMON)"
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
            attach: false,
            root: false,
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
        check(|r| r.root = true, "even for root");
        check(|_| (), "seccomp");
        check(|r| r.errno = Errno::PERM, "seccomp");
        check(|r| (r.errno, r.ring) = (Errno::PERM, true), "ulimit -l");
        check(|r| r.errno = Errno::MFILE, "ulimit -n");
        check(|r| r.errno = Errno::SRCH, "does not exist");
        check(|r| r.errno = Errno::NOENT, "cpu-clock");
        check(|r| r.errno = Errno::NOSYS, "sandbox");
        check(|r| r.errno = Errno::INVAL, "too old");
        check(|r| r.errno = Errno::IO, "no reason");
    }
}
