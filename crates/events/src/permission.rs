//! Why the kernel forbids an event, and what to do: the same for counting and for sampling.

use prof_procfs::Seccomp;
use rustix::io::Errno;

use crate::parsing::{EventSpec, Family};
use crate::system::{Privileges, System};

/// What this process may measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rights {
    /// /proc/sys/kernel/perf_event_paranoid.
    pub paranoid: i32,
    /// Whether that does not matter: we have CAP_PERFMON.
    pub capable: bool,
    /// Whether we are root, or anybody else, of a user namespace, as in rootless containers.
    pub in_user_namespace: bool,
    /// Whether system calls are filtered (seccomp).
    pub filtered: bool,
}

impl Rights {
    /// Those of a process with these privileges.
    pub fn of(privileges: &Privileges, system: &System) -> Self {
        Self {
            paranoid: system.paranoid,
            capable: privileges.may_perfmon(),
            in_user_namespace: privileges.in_user_namespace,
            filtered: privileges.seccomp != Seccomp::Off,
        }
    }

    /// Why the kernel does not know the system call.
    pub(crate) fn no_system_call(self) -> String {
        match self.filtered {
            true => filter(),
            false => {
                "the kernel has no perf_event_open, or a sandbox hides it (gVisor does)".into()
            }
        }
    }
}

/// What was to be measured, as far as permissions depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject {
    /// User code.
    UserCode,
    /// Kernel code, too.
    KernelCode,
    /// Something that happens in the kernel only.
    KernelOnly,
    /// A tracepoint of the kernel.
    Tracepoint,
    /// A place in a program's code.
    Uprobe,
}

impl Subject {
    pub(crate) fn of(spec: &EventSpec) -> Self {
        match spec.family {
            Family::Uprobe | Family::Uretprobe => Self::Uprobe,
            Family::Tracepoint => Self::Tracepoint,
            _ if spec.happens_in_kernel_only() => Self::KernelOnly,
            _ if spec.modifiers.kernel => Self::KernelCode,
            _ => Self::UserCode,
        }
    }
}

/// An event that the kernel refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The kernel's error.
    pub errno: Errno,
    /// Our rights.
    pub rights: Rights,
    /// What was to be measured.
    pub subject: Subject,
    /// Whether it was to be measured on whole CPUs, or in a cgroup.
    pub system_wide: bool,
    /// Whether nothing may be measured in the target ([`Trial::Thread`](crate::Trial::Thread)).
    pub target_refuses: bool,
}

impl Refusal {
    /// Why the permission is missing (EACCES, EPERM), as the end of a sentence, and what to do.
    pub(crate) fn permission(self) -> String {
        let Rights {
            paranoid,
            capable,
            in_user_namespace,
            filtered,
        } = self.rights;
        // The kernel itself says EPERM of tracepoints only (perf_allow_tracepoint).
        let is_of_filter = self.errno == Errno::PERM && self.subject != Subject::Tracepoint;
        if filtered && (is_of_filter || capable) {
            return filter();
        }
        if capable {
            return "prof has the right to (CAP_PERFMON), but a security module or the kernel's \
                    lockdown forbids it (see /sys/kernel/security/lockdown)"
                .into();
        }
        let root = match in_user_namespace {
            true => "root of the host, not of this user namespace",
            false => "root",
        };
        if self.subject == Subject::Uprobe {
            return format!("uprobes need {root} (CAP_SYS_ADMIN)");
        }
        if self.system_wide && paranoid > 0 {
            return format!(
                "-a needs {root} (CPUs and cgroups do, too), because kernel.perf_event_paranoid is \
                 {paranoid}; `sudo sysctl kernel.perf_event_paranoid=0` allows it to all users; \
                 your own programs need no root (a command, or -p PID)"
            );
        }
        if paranoid > 2 {
            return format!(
                "kernel.perf_event_paranoid is {paranoid}, which forbids all events: `sudo sysctl \
                 kernel.perf_event_paranoid=2` allows them in your own programs"
            );
        }
        if paranoid > 1
            && let Some(text) = self.hidden_kernel(root)
        {
            return text;
        }
        if self.target_refuses {
            return "the process belongs to another user or hides its memory (setuid programs do): \
                    run prof as its user or as root"
                .into();
        }
        match filtered {
            true => filter(),
            false => format!(
                "the kernel does not say why: kernel.perf_event_paranoid ({paranoid}) allows it, \
                 and no seccomp filter is set (`prof doctor` tries what is allowed)"
            ),
        }
    }

    /// The reason if users may not see the kernel.
    fn hidden_kernel(self, root: &str) -> Option<String> {
        let paranoid = self.rights.paranoid;
        match self.subject {
            Subject::Tracepoint => Some(format!(
                "tracepoints need {root}, because kernel.perf_event_paranoid is {paranoid}; `sudo \
                 sysctl kernel.perf_event_paranoid=1` allows them to all users"
            )),
            Subject::KernelOnly => Some(format!(
                "it happens in the kernel, which is hidden because kernel.perf_event_paranoid is \
                 {paranoid}: `sudo sysctl kernel.perf_event_paranoid=1` shows it"
            )),
            Subject::KernelCode => Some(format!(
                "kernel.perf_event_paranoid is {paranoid}, which allows user code only: add :u to \
                 the event, or run `sudo sysctl kernel.perf_event_paranoid=1`"
            )),
            Subject::UserCode | Subject::Uprobe => None,
        }
    }
}

fn filter() -> String {
    "a seccomp filter forbids it (in Docker and Podman: start the container with --security-opt \
     seccomp=unconfined, or --cap-add PERFMON; in systemd units: SystemCallFilter=)"
        .into()
}

#[cfg(test)]
impl Refusal {
    /// Of user code in a command of a plain user, with the kernel's usual settings.
    pub(crate) fn of_plain_user(errno: Errno) -> Self {
        Self {
            errno,
            rights: Rights {
                paranoid: 2,
                capable: false,
                in_user_namespace: false,
                filtered: false,
            },
            subject: Subject::UserCode,
            system_wide: false,
            target_refuses: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(change: impl FnOnce(&mut Refusal), expected: &str) {
        let mut refusal = Refusal::of_plain_user(Errno::ACCESS);
        change(&mut refusal);
        let text = refusal.permission();
        assert!(text.contains(expected), "{refusal:?}: {text}");
    }

    #[test]
    fn the_reason_fits_what_is_measured() {
        check(|_| (), "does not say why");
        check(|r| r.rights.paranoid = 4, "paranoid=2");
        check(|r| r.target_refuses = true, "run prof as its user");
        check(|r| r.system_wide = true, "-a needs root (CPUs");
        check(|r| r.subject = Subject::KernelCode, "add :u");
        check(|r| r.subject = Subject::KernelOnly, "happens in the kernel");
        check(|r| r.subject = Subject::Tracepoint, "tracepoints need root");
        check(|r| r.subject = Subject::Uprobe, "uprobes need root (");
        let confined = |r: &mut Refusal| r.rights.in_user_namespace = true;
        check(
            |r| {
                confined(r);
                r.system_wide = true;
            },
            "-a needs root of the host",
        );
        check(
            |r| {
                confined(r);
                r.subject = Subject::Uprobe;
            },
            "uprobes need root of the host",
        );
    }

    #[test]
    fn the_reason_fits_our_rights() {
        let filter = "a seccomp filter";
        check(|r| r.rights.capable = true, "lockdown");
        check(|r| r.rights.filtered = true, filter);
        check(
            |r| (r.rights.filtered, r.rights.capable) = (true, true),
            filter,
        );
        check(
            |r| (r.errno, r.rights.filtered) = (Errno::PERM, true),
            filter,
        );
        check(
            |r| (r.errno, r.rights.filtered, r.rights.paranoid) = (Errno::PERM, true, 4),
            filter,
        );
        check(
            |r| (r.rights.filtered, r.rights.paranoid) = (true, 4),
            "paranoid=2",
        );
        check(
            |r| (r.rights.filtered, r.target_refuses) = (true, true),
            "run prof as its user",
        );
        check(
            |r| {
                (r.errno, r.rights.filtered) = (Errno::PERM, true);
                r.subject = Subject::Tracepoint;
            },
            "tracepoints need root",
        );
    }
}
