//! The default target without the permission to watch everything: the user's own processes.

use anyhow::{Result, bail};
use prof_events::system::Privileges;
use prof_procfs::{Task, processes, settings::setting};

use crate::flags::{SamplerFlag, SamplingFlags, TargetSelection};

/// Printed before the first table, or shown until a key is pressed.
pub(super) const NOTE: &str = "only your processes and their children: -a needs root";

/// If no target is given and the kernel does not let us watch everything, watches all of the user's
/// processes that can be watched; returns whether it does so.
///
/// # Errors
/// There are none.
pub(super) fn watch_instead(
    target: &mut TargetSelection,
    sampling: &mut SamplingFlags,
) -> Result<bool> {
    let privileges = Privileges::read().unwrap_or_default();
    let paranoid = setting("kernel/perf_event_paranoid").unwrap_or_default();
    // If the kernel forbids all sampling, its own error says so better.
    if privileges.may_perfmon() || !(1..=2).contains(&paranoid) {
        return Ok(false);
    }
    let own = std::process::id() as i32;
    let others = processes().into_iter().filter(|&pid| pid != own);
    target.pids = others
        .filter(|&pid| is_open(pid, privileges.user))
        .collect();
    if target.pids.is_empty() {
        bail!("none of your processes can be watched, and -a needs root: name a command to run");
    }
    target.all_cpus = false;
    // The user did not request stopping threads, least of all those of all processes.
    if sampling.sampler == SamplerFlag::Auto {
        sampling.sampler = SamplerFlag::Perf;
    }
    Ok(true)
}

/// Whether this is a process of the user that the same user may inspect.
fn is_open(pid: i32, user: u32) -> bool {
    let process = Task::of(pid);
    let users = process.status().ok().and_then(|status| status.users());
    let is_ours = users.is_some_and(|users| (users.real, users.effective) == (user, user));
    // This needs the same permission as perf_event_open(2). Kernel threads have no maps.
    is_ours && (process.maps()).is_ok_and(|maps| maps.iter().next().is_some())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn processes_of_the_user_are_open() {
        let user = Privileges::read().expect("/proc").user;
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let pid = child.id() as i32;
        assert!(is_open(pid, user));
        assert!(!is_open(pid, user ^ 1), "another user's");
        child.kill().expect("killed");
        child.wait().expect("its end");
        assert!(!is_open(pid, user), "it has ended");
    }
}
