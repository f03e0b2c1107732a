//! What can be recorded: tried by opening events.

use std::io;
use std::path::Path;

use prof_events::access::{Capability, Trial};
use prof_events::counting::{Ability, Answer, Prober};
use prof_events::names::Catalog;
use prof_events::tracing::{Errno, Tracer};
use prof_events::{HeldCommand, Program, Refusal, Signals, advice, system};

use super::Check;
use super::machine::Machine;

/// Why perf_event_open refuses something, and what changes that.
struct Cause {
    why: String,
    fix: Option<String>,
}

/// Whether anything can be recorded.
pub(super) fn own_programs(machine: &Machine) -> Check {
    const NAME: &str = "own-programs";
    match Trial::UserCode.run() {
        Ok(()) if machine.system.virtual_machine && Trial::Cycles.run().is_ok() => Check::ok(
            NAME,
            "sampled by perf_event_open: by cpu-clock, as on all virtual machines, unless -e cycles \
             asks for cycles",
        ),
        Ok(()) => Check::ok(NAME, "sampled by perf_event_open"),
        Err(errno) => {
            let cause = cause(machine, errno, 2);
            match may_trace() {
                Ok(()) => Check::limited(
                    NAME,
                    format!("by stopping threads (ptrace); {}", cause.why),
                    "user code only, up to 999 Hz, and the program feels it: some 25 \u{b5}s a sample",
                ),
                Err(errno) => Check::no(
                    NAME,
                    format!("{}; ptrace: {}", cause.why, io::Error::from(errno)),
                    "nothing can be recorded",
                ),
            }
            .fix(cause.fix)
        }
    }
}

/// Traces a child of ours that is never let go.
fn may_trace() -> Result<(), Errno> {
    let made = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let signals = Signals::block().map_err(made)?;
    let child = HeldCommand::fork(&Program::new(["true"]), &signals).map_err(made)?;
    let pid = child.pid();
    // In a thread of its own, at whose end the child is no longer traced.
    std::thread::spawn(move || Tracer::new(Some(pid)).seize(pid))
        .join()
        .unwrap_or(Err(Errno::IO))
}

pub(super) fn checks(machine: &Machine) -> Vec<Check> {
    let prober = Prober::new(&Catalog::system(), &machine.system);
    vec![
        kernel_code(machine),
        all_cpus(machine),
        hardware(machine),
        branches(),
        tracepoints(machine, &prober),
        uprobes(machine, &prober),
        others(machine),
    ]
}

fn kernel_code(machine: &Machine) -> Check {
    const NAME: &str = "kernel-code";
    match Trial::KernelCode.run() {
        Ok(()) => Check::ok(NAME, "sampled with its callers"),
        Err(errno) => {
            let cause = cause(machine, errno, 1);
            let cost = "time in system calls and page faults is not in the profile";
            Check::no(NAME, cause.why, cost).fix(cause.fix)
        }
    }
}

fn all_cpus(machine: &Machine) -> Check {
    const NAME: &str = "all-cpus";
    let cpu = machine.system.cpus.first().copied().unwrap_or(0);
    match Trial::WholeCpu(cpu).run() {
        Ok(()) => Check::ok(NAME, "whole CPUs can be sampled"),
        Err(errno) => {
            let cause = cause(machine, errno, 0);
            let cost = "only one's own processes can be recorded; threads much shorter than the \
                        sampling period are seldom seen";
            Check::no(NAME, cause.why, cost).fix(cause.fix)
        }
    }
}

fn hardware(machine: &Machine) -> Check {
    const NAME: &str = "hardware-counters";
    match Trial::Cycles.run() {
        Ok(()) => match system::setting("kernel/nmi_watchdog") {
            Some(1) => Check::limited(
                NAME,
                "the kernel's watchdog keeps one of them",
                "prof stat measures one event less at a time",
            )
            .fix(machine.sysctl("kernel.nmi_watchdog", 0)),
            _ => Check::ok(NAME, "cycles can be sampled"),
        },
        Err(_) if Trial::UserCode.run().is_err() => no_events(NAME),
        Err(errno) => Check::no(
            NAME,
            format!("cycles cannot be opened ({errno}): virtual machines often hide the counters"),
            "sampling goes by the CPU's clock; no cycles, cache misses and the like",
        ),
    }
}

fn branches() -> Check {
    const NAME: &str = "branch-stacks";
    match Trial::Branches.run() {
        Ok(()) => Check::ok(NAME, "recorded by the CPU (LBR or the like)"),
        Err(_) if Trial::UserCode.run().is_err() => no_events(NAME),
        Err(errno) => Check::no(
            NAME,
            format!("not with this CPU or virtual machine ({errno})"),
            "stacks are unwound by the programs' tables alone",
        ),
    }
}

/// Where perf_event_open is refused altogether, nothing is known of the machine.
pub(super) fn no_events(name: &'static str) -> Check {
    Check::no(name, "there are no events to have them", "see own-programs")
}

fn tracepoints(machine: &Machine, prober: &Prober) -> Check {
    const NAME: &str = "tracepoints";
    const COST: &str = "events of the kernel (sched:*, syscalls:*) cannot be counted or sampled";
    match ability(prober, "sched:sched_switch") {
        Ok(ability) => match ability.sample {
            Answer::No(why) => {
                let fix = match machine.is_root() {
                    true => None,
                    false => Some(machine.sysctl("kernel.perf_event_paranoid", 1)),
                };
                Check::no(NAME, why, COST).fix(fix)
            }
            _ => Check::ok(NAME, "can be opened"),
        },
        Err(why) => {
            let mounted = Path::new("/sys/kernel/tracing/events").exists();
            let fix = match (mounted, machine.is_root()) {
                (false, true) => Some("mount -t tracefs tracefs /sys/kernel/tracing"),
                (_, false) => Some("prof record ..."),
                (true, true) => None,
            };
            Check::no(NAME, why, COST).fix(fix.map(|command| machine.as_root(command)))
        }
    }
}

fn uprobes(machine: &Machine, prober: &Prober) -> Check {
    const NAME: &str = "uprobes";
    let why = match ability(prober, "uprobe:libc.so.6:malloc") {
        Ok(ability) => match ability.sample {
            Answer::No(why) => why,
            _ => return Check::ok(NAME, "can be set in any program"),
        },
        Err(why) => why,
    };
    Check::no(
        NAME,
        why,
        "calls of functions in programs cannot be counted or sampled",
    )
    .fix((!machine.is_root()).then(|| machine.as_root("prof record ...")))
}

fn ability(prober: &Prober, event: &str) -> Result<Ability, String> {
    let groups = Catalog::system()
        .parse(event)
        .map_err(|error| error.problem.to_string())?;
    let found = groups.first().and_then(|group| group.events.first());
    let spec = found.ok_or("there is no such event")?;
    Ok(prober.probe(spec))
}

/// Attaching to processes, and reading their memory.
fn others(machine: &Machine) -> Check {
    const NAME: &str = "other-processes";
    let everybody = machine.standing.has(Capability::SysPtrace);
    if everybody && !machine.standing.in_user_namespace {
        return Check::ok(NAME, "those of every user (CAP_SYS_PTRACE)");
    }
    if everybody {
        return Check::limited(
            NAME,
            "those of this user namespace (CAP_SYS_PTRACE)",
            "those outside need root of the machine",
        )
        .fix(machine.as_root("prof record -p PID"));
    }
    let scope = system::setting("kernel/yama/ptrace_scope");
    match scope {
        None | Some(0) => Check::limited(
            NAME,
            "running processes of this user",
            "those of other users need root",
        )
        .fix(machine.as_root("prof record -p PID")),
        Some(level) => Check::limited(
            NAME,
            format!("kernel.yama.ptrace_scope is {level}"),
            "stacks deeper than the kernel's copy (64 KiB) end early in processes that prof did \
             not start",
        )
        .fix(machine.sysctl("kernel.yama.ptrace_scope", 0)),
    }
}

/// Makes sense of a refusal that a lower `perf_event_paranoid` would end, if nothing else is in
/// the way.
fn cause(machine: &Machine, errno: Errno, paranoid: i32) -> Cause {
    let why = advice(Refusal {
        errno,
        paranoid: machine.system.paranoid,
        kernel: paranoid < 2,
        everybody: paranoid < 1,
        attach: false,
        capable: machine.standing.may_perfmon(),
        in_user_namespace: machine.standing.in_user_namespace,
        filtered: machine.is_filtered(),
        ring: false,
    });
    let by_setting = errno == Errno::ACCESS
        && machine.system.paranoid > paranoid
        && !machine.standing.may_perfmon();
    let fix = match by_setting {
        true => Some(machine.sysctl("kernel.perf_event_paranoid", paranoid)),
        false if machine.is_filtered() => machine.unfilter(),
        false => None,
    };
    let why = match by_setting {
        true => format!("kernel.perf_event_paranoid is {}", machine.system.paranoid),
        false => format!("{}: {why}", io::Error::from(errno)),
    };
    Cause { why, fix }
}
