//! Where symbols come from.

use prof_procfs::kernel::shows_addresses;
use prof_procfs::settings::setting;
use prof_symbols::Debuginfod;

use super::Check;
use super::machine::Machine;

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    vec![kernel_symbols(machine), debuginfod()]
}

/// Checks whether /proc/kallsyms shows addresses: the effect of `kptr_restrict` depends on the
/// reader.
fn kernel_symbols(machine: &Machine) -> Check {
    const NAME: &str = "kernel-symbols";
    const COST: &str = "kernel functions have no names";
    let Ok(shown) = shows_addresses() else {
        return Check::no(NAME, "/proc/kallsyms cannot be read", COST);
    };
    if shown {
        return Check::ok(NAME, "/proc/kallsyms shows them");
    }
    let level = setting("kernel/kptr_restrict").unwrap_or(1);
    let paranoid = machine.system.paranoid;
    let check = |found: String, fix| Check::no(NAME, found, COST).fix(fix);
    match level {
        // Without a restriction, users who may sample the kernel see them.
        0 => check(
            format!("hidden, because kernel.perf_event_paranoid is {paranoid}"),
            machine.sysctl("kernel.perf_event_paranoid", 1),
        ),
        _ => check(
            format!("hidden, because kernel.kptr_restrict is {level}"),
            machine.sysctl("kernel.kptr_restrict", 0),
        ),
    }
}

fn debuginfod() -> Check {
    const NAME: &str = "debuginfod";
    match Debuginfod::from_environment() {
        Some(servers) => Check::ok(NAME, servers.urls.join(" ")),
        None => Check::limited(
            NAME,
            "DEBUGINFOD_URLS names no server",
            "libraries without debug info on this machine show only the names of exported functions",
        )
        .fix("export DEBUGINFOD_URLS=https://debuginfod.elfutils.org/".to_owned()),
    }
}
