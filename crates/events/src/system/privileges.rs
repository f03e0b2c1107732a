//! The privileges of this process: its user, its capabilities, its seccomp filters.

use std::io;

use prof_procfs::{Namespace, Seccomp, Status, Task};

/// Our privileges from /proc/self/status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Privileges {
    /// The effective user id.
    pub user: u32,
    /// Effective capabilities, as the kernel's bits.
    capabilities: u64,
    /// Whether user and capabilities are those of a user namespace, as in rootless containers. For
    /// the kernel's settings and other processes we are then another user, without privileges.
    pub in_user_namespace: bool,
    /// Whether system calls are filtered.
    pub seccomp: Seccomp,
}

/// The capabilities that matter to a profiler, by their numbers in linux/capability.h.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Locking memory beyond the limits: rings of any size.
    IpcLock = 14,
    /// Reading and stopping processes of other users.
    SysPtrace = 19,
    /// Nearly everything.
    SysAdmin = 21,
    /// Raising priorities.
    SysNice = 23,
    /// Raising limits.
    SysResource = 24,
    /// Seeing the kernel's addresses.
    Syslog = 34,
    /// All of perf_event_open (Linux 5.8).
    Perfmon = 38,
    /// Loading BPF programs (Linux 5.8).
    Bpf = 39,
}

impl Capability {
    /// All of them, by ascending number.
    pub const ALL: [Self; 8] = [
        Self::IpcLock,
        Self::SysPtrace,
        Self::SysAdmin,
        Self::SysNice,
        Self::SysResource,
        Self::Syslog,
        Self::Perfmon,
        Self::Bpf,
    ];

    /// Its name, as capabilities(7) has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::IpcLock => "CAP_IPC_LOCK",
            Self::SysPtrace => "CAP_SYS_PTRACE",
            Self::SysAdmin => "CAP_SYS_ADMIN",
            Self::SysNice => "CAP_SYS_NICE",
            Self::SysResource => "CAP_SYS_RESOURCE",
            Self::Syslog => "CAP_SYSLOG",
            Self::Perfmon => "CAP_PERFMON",
            Self::Bpf => "CAP_BPF",
        }
    }
}

/// A user without any privilege: the assumption if there is no /proc.
impl Default for Privileges {
    fn default() -> Self {
        Self::of(&Status::default())
    }
}

impl Privileges {
    /// Reads /proc/self/status.
    ///
    /// # Errors
    ///
    /// When it cannot be read: there is no /proc.
    pub fn read() -> io::Result<Self> {
        let ours = Task::this_process();
        let privileges = Self::of(&ours.status()?);
        Ok(match ours.is_in_first(Namespace::User) {
            Some(false) => privileges.confined(),
            _ => privileges,
        })
    }

    /// In a user namespace: only over its own processes do we have any rights.
    fn confined(self) -> Self {
        Self {
            capabilities: self.capabilities & (1 << Capability::SysPtrace as u32),
            in_user_namespace: true,
            ..self
        }
    }

    /// Whether we are the machine's root, not that of a user namespace.
    pub fn is_root(&self) -> bool {
        self.user == 0 && !self.in_user_namespace
    }

    /// Whether the capability is in effect outside of a user namespace, too; CAP_SYS_PTRACE also if
    /// only inside.
    pub fn has(&self, capability: Capability) -> bool {
        self.capabilities & (1 << capability as u32) != 0
    }

    /// Whether `perf_event_paranoid` does not matter: CAP_PERFMON, or CAP_SYS_ADMIN, which
    /// includes it.
    pub fn may_perfmon(&self) -> bool {
        self.has(Capability::Perfmon) || self.has(Capability::SysAdmin)
    }

    fn of(status: &Status) -> Self {
        Self {
            user: status.users().map_or(u32::MAX, |users| users.effective),
            capabilities: status.capabilities().unwrap_or(0),
            in_user_namespace: false,
            seccomp: status.seccomp(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(status: &str, user: u32, capabilities: &[Capability], seccomp: Seccomp) {
        let privileges = Privileges::of(&Status::parse(status));
        let held: Vec<_> = (Capability::ALL.into_iter())
            .filter(|&capability| privileges.has(capability))
            .collect();
        assert_eq!(
            (privileges.user, held.as_slice(), privileges.seccomp),
            (user, capabilities, seccomp),
            "{status}"
        );
    }

    #[test]
    fn status_files() {
        check(
            "Name:\tx\nUid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n",
            0,
            &Capability::ALL,
            Seccomp::Off,
        );
        check(
            "Uid:\t0\t1000\t0\t0\nCapEff:\t0000004000080000\nSeccomp:\t2\nSeccomp_filters:\t1\n",
            1000,
            &[Capability::SysPtrace, Capability::Perfmon],
            Seccomp::Filter,
        );
        check("", u32::MAX, &[], Seccomp::Off);
        check("Uid:\tx\nCapEff:\tzz\n", u32::MAX, &[], Seccomp::Off);
    }

    #[test]
    fn rights_over_a_user_namespace_are_none_over_the_machine() {
        let status = "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\n";
        let root = Privileges::of(&Status::parse(status));
        assert!(root.is_root() && root.may_perfmon());
        let confined = root.confined();
        assert!(!confined.is_root() && !confined.may_perfmon());
        assert!(confined.has(Capability::SysPtrace) && !confined.has(Capability::IpcLock));
    }

    #[test]
    fn our_own_status_is_read() {
        let privileges = Privileges::read().expect("there is /proc");
        assert_eq!(privileges.user, rustix::process::geteuid().as_raw());
    }
}
