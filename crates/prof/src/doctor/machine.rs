//! Our privileges and our environment, on which all checks depend.

use std::path::Path;

use anyhow::{Context, Result};
use prof_events::system::{Capability, Privileges, System};
use prof_procfs::{Namespace, Seccomp, Task};
use rustix::fs::StatVfsMountFlags;

use super::Check;

/// Our privileges and our environment.
pub(super) struct Machine {
    pub(super) system: System,
    pub(super) privileges: Privileges,
    pub(super) container: Option<Container>,
    /// Whether the kernel's settings can be changed only outside of the container.
    settings_are_the_hosts: bool,
}

/// How we detect that we run in a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Container {
    /// A file of Docker.
    Docker,
    /// A file of Podman.
    Podman,
    /// A PID namespace of our own.
    Namespace,
}

impl Machine {
    pub(super) fn read(system: System) -> Result<Self> {
        let privileges = Privileges::read().context("cannot read /proc/self/status")?;
        let read_only = rustix::fs::statvfs("/proc/sys")
            .is_ok_and(|mount| mount.f_flag.contains(StatVfsMountFlags::RDONLY));
        Ok(Self {
            system,
            container: Container::detect(),
            settings_are_the_hosts: read_only || privileges.in_user_namespace,
            privileges,
        })
    }

    /// The command that changes a setting of the kernel.
    pub(super) fn sysctl(&self, name: &str, value: impl std::fmt::Display) -> String {
        self.as_root(&format!("sysctl {name}={value}"))
    }

    /// The command, to be run as root of the machine.
    pub(super) fn as_root(&self, command: &str) -> String {
        match self.settings_are_the_hosts {
            true => format!("sudo {command}   (on the host)"),
            false if self.is_root() => command.to_owned(),
            false => format!("sudo {command}"),
        }
    }

    /// The command that lets perf_event_open through the current seccomp filter.
    pub(super) fn unfilter(&self) -> Option<String> {
        let engine = match self.container? {
            Container::Podman => "podman",
            Container::Docker | Container::Namespace => "docker",
        };
        Some(format!(
            "{engine} run --security-opt seccomp=unconfined ..."
        ))
    }

    pub(super) fn is_root(&self) -> bool {
        self.privileges.is_root()
    }

    pub(super) fn is_filtered(&self) -> bool {
        self.privileges.seccomp != Seccomp::Off
    }

    pub(super) fn checks(&self) -> Vec<Check> {
        vec![
            self.capabilities(),
            self.seccomp(),
            self.containment(),
            self.cpus(),
        ]
    }

    fn capabilities(&self) -> Check {
        let held: Vec<&str> = Capability::ALL
            .into_iter()
            .filter(|&capability| self.privileges.has(capability))
            .map(Capability::name)
            .collect();
        let found = match held.is_empty() {
            true => "none that prof can use".into(),
            false => held.join(" "),
        };
        match self.privileges.in_user_namespace {
            true => Check::limited(
                "capabilities",
                format!("{found}, only in a user namespace (as in rootless containers)"),
                "outside of it, this root is a plain user: it cannot change the kernel's settings",
            ),
            false => Check::ok("capabilities", found),
        }
    }

    fn seccomp(&self) -> Check {
        Check::ok(
            "seccomp",
            match self.privileges.seccomp {
                Seccomp::Off => "system calls are not filtered",
                Seccomp::Strict => "nearly all system calls are forbidden",
                Seccomp::Filter => "system calls are filtered",
            },
        )
    }

    fn containment(&self) -> Check {
        Check::ok(
            "container",
            match self.container {
                None => "none",
                Some(Container::Docker) => "Docker (/.dockerenv)",
                Some(Container::Podman) => "Podman (/run/.containerenv)",
                Some(Container::Namespace) => "a separate PID namespace",
            },
        )
    }

    fn cpus(&self) -> Check {
        let online = self.system.cpus.len();
        let allowed = std::thread::available_parallelism().map_or(online, usize::from);
        let found = format!("{online} online; prof may use {allowed} of them");
        match allowed < online {
            true => Check::limited(
                "cpus",
                found,
                "prof and the programs that it starts share these CPUs",
            ),
            false => Check::ok("cpus", found),
        }
    }
}

impl Container {
    fn detect() -> Option<Self> {
        let there = |path| Path::new(path).exists();
        if there("/.dockerenv") {
            return Some(Self::Docker);
        }
        if there("/run/.containerenv") {
            return Some(Self::Podman);
        }
        let is_in_first = Task::this_process().is_in_first(Namespace::Pid)?;
        (!is_in_first).then_some(Self::Namespace)
    }
}
