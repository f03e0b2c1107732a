//! How much can be recorded without loss: rings, rates, descriptors, priorities.

use prof_events::system::Capability;
use prof_events::{
    Sampler, USUAL_HERTZ,
    system::{self, Ahead, Priority},
};
use prof_model::counted;
use prof_procfs::settings::setting;
use rustix::process::{Resource, getrlimit};

use super::Check;
use super::events::{no_events, own_recording};
use super::machine::Machine;

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    vec![
        rings(machine),
        rate(machine),
        stack_depth(machine),
        descriptors(machine),
        priority(machine),
    ]
}

/// Opens the rings that a recording of ourselves would: the kernel charges them to us.
fn rings(machine: &Machine) -> Check {
    const NAME: &str = "ring-buffers";
    let budget = budget(machine);
    match Sampler::open(&own_recording()) {
        Ok(sampler) => {
            let sizes = sampler.opened().sizes;
            let dump = sizes.dump.unwrap_or(0);
            let found = format!(
                "{} KiB per CPU, and {dump} bytes of each stack ({budget})",
                sizes.ring >> 10
            );
            match sizes.ring >= GOOD_RING {
                true => Check::ok(NAME, found),
                false => Check::limited(NAME, found, "samples may be lost on a busy machine")
                    .fix(more_memory(machine)),
            }
        }
        Err(prof_events::Error::Ring { errno, .. }) => Check::no(
            NAME,
            format!("not even one page can be mapped: {errno} ({budget})"),
            "perf_event_open cannot record anything",
        )
        .fix(more_memory(machine)),
        Err(_) => no_events(NAME),
    }
}

/// The size that holds eight of the largest stack dumps.
const GOOD_RING: u64 = 512 << 10;

fn more_memory(machine: &Machine) -> String {
    machine.sysctl("kernel.perf_event_mlock_kb", 8192)
}

fn budget(machine: &Machine) -> String {
    if machine.privileges.has(Capability::IpcLock) {
        return "no limit: CAP_IPC_LOCK".into();
    }
    let per_cpu = setting("kernel/perf_event_mlock_kb").unwrap_or(516);
    let locked = match getrlimit(Resource::Memlock).maximum {
        Some(bytes) => format!("{} KiB", bytes >> 10),
        None => "none".into(),
    };
    format!("kernel.perf_event_mlock_kb is {per_cpu}; hard limit on locked memory: {locked}")
}

fn rate(machine: &Machine) -> Check {
    const NAME: &str = "sample-rate";
    let rate = machine.system.max_rate;
    if setting("kernel/perf_event_max_sample_rate").is_none() {
        return unknown(NAME, "perf_event_max_sample_rate", format!("{rate} Hz"));
    }
    let found = format!("up to {rate} Hz");
    match rate < 10 * USUAL_HERTZ {
        true => Check::limited(
            NAME,
            found,
            "higher rates are lowered to this (the kernel reduces it when samples take too long)",
        )
        .fix(machine.sysctl("kernel.perf_event_max_sample_rate", 100_000)),
        false => Check::ok(NAME, found),
    }
}

/// The setting is unknown: sandboxes do not show all settings.
fn unknown(name: &'static str, setting: &str, taken: String) -> Check {
    Check::limited(
        name,
        format!("unknown: there is no /proc/sys/kernel/{setting}"),
        format!("prof assumes the usual value, {taken}"),
    )
}

fn stack_depth(machine: &Machine) -> Check {
    const NAME: &str = "kernel-chains";
    const USUAL: i64 = 127;
    let Some(depth) = setting("kernel/perf_event_max_stack") else {
        return unknown(NAME, "perf_event_max_stack", format!("{USUAL} frames"));
    };
    let found = format!("up to {depth} frames");
    match depth < USUAL {
        true => Check::limited(
            NAME,
            found,
            "deeper kernel stacks, and deeper stacks with --call-graph fp, are cut",
        )
        .fix(machine.sysctl("kernel.perf_event_max_stack", USUAL)),
        false => Check::ok(NAME, found),
    }
}

fn descriptors(machine: &Machine) -> Check {
    const NAME: &str = "open-files";
    let cpus = machine.system.cpus.len().max(1) as u64;
    let Some(limit) = getrlimit(Resource::Nofile).maximum else {
        return Check::ok(NAME, "no limit");
    };
    // For each thread and CPU: a sampling event and its exit counter; and a context pin for each
    // thread.
    let threads = limit / (2 * cpus + 1);
    let found = format!(
        "{limit}: enough to record running processes of up to {}",
        counted(threads, "thread")
    );
    match threads < 1000 {
        true => Check::limited(NAME, found, "-p needs two for each thread on each CPU")
            .fix("ulimit -H -n 1048576   (as root)".to_owned()),
        false => Check::ok(NAME, found),
    }
}

/// Raises the priority of a thread created for this.
fn priority(machine: &Machine) -> Check {
    const NAME: &str = "reader-priority";
    let raise = || system::raise_thread_priority(Ahead::OfThese);
    let reached = std::thread::spawn(raise).join();
    let (found, raised) = match reached.unwrap_or(Priority::Nice(0)) {
        Priority::RealTime => ("real-time".to_owned(), true),
        Priority::Nice(nice) => (format!("nice {nice}"), nice < 0),
    };
    match raised {
        true => Check::ok(NAME, found),
        false => Check::limited(
            NAME,
            found,
            "at high rates on a busy machine, samples are lost while prof waits for a CPU",
        )
        .fix(machine.as_root("setcap cap_sys_nice+ep $(command -v prof)")),
    }
}
