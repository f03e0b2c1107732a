//! What can be recorded, found by opening events.

use std::io;
use std::path::Path;

use prof_events::Trial;
use prof_events::counting::{Ability, Answer, Prober, Refusal, Rights, Subject};
use prof_events::parsing::{Catalog, EventSpec};
use prof_events::system::Capability;
use prof_events::tracing::{Errno, Tracer};
use prof_events::{
    CallGraph, EventRequest, GroupRequest, HeldCommand, Program, Rate, Request, Sampler, Signals,
    Threads, Toggling, USUAL_HERTZ, advice,
};
use prof_model::Fallback;
use prof_procfs::settings::setting;

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
    let allowed = Trial::UserCode.run();
    if allowed.is_ok()
        && let Some(check) = refused_parts(NAME)
    {
        return check;
    }
    match allowed {
        Ok(()) if machine.system.virtual_machine && Trial::Cycles.run().is_ok() => Check::ok(
            NAME,
            "sampled with perf_event_open; in virtual machines by cpu-clock (-e cycles samples by \
             cycles)",
        ),
        Ok(()) => Check::ok(NAME, "sampled with perf_event_open"),
        Err(errno) => {
            let cause = cause(machine, errno, 2);
            match may_trace() {
                Ok(()) => Check::limited(
                    NAME,
                    format!(
                        "sampled by stopping threads (ptrace); perf_event_open is refused: {}",
                        cause.why
                    ),
                    "user code only, at most 999 Hz, and a sample stops its thread for about 25 \u{b5}s",
                ),
                Err(errno) => Check::no(
                    NAME,
                    format!(
                        "perf_event_open is refused: {}; ptrace: {}",
                        cause.why,
                        io::Error::from(errno)
                    ),
                    "nothing can be recorded",
                ),
            }
            .fix(cause.fix)
        }
    }
}

/// What `prof record` asks the kernel for, to record ourselves.
pub(super) fn own_recording() -> Request {
    let clock = EventSpec::cpu_clock();
    Request {
        threads: Threads::Of(vec![std::process::id() as i32]),
        groups: vec![GroupRequest::alone(EventRequest::named(
            clock.user_only().unwrap_or(clock),
            Some(Rate::Hertz(USUAL_HERTZ)),
            CallGraph::Dwarf { dump: None },
        ))],
        user_chains: true,
        ring_bytes: None,
        toggling: Toggling::Never,
    }
}

/// What the kernel refuses of the events of a recording, although it allows simple ones.
fn refused_parts(name: &'static str) -> Option<Check> {
    let sampler = match Sampler::open(&own_recording()) {
        Ok(sampler) => sampler,
        Err(error @ prof_events::Error::Open { .. }) => {
            return Some(Check::no(
                name,
                error.to_string(),
                "prof record fails in the same way",
            ));
        }
        // The check of the ring buffers tells.
        Err(_) => return None,
    };
    let refused = |fallback: &&Fallback| matches!(fallback, Fallback::Refused { .. });
    let parts = sampler.opened().fallbacks.iter().filter(refused);
    let parts: Vec<String> = parts.map(ToString::to_string).collect();
    let cost = "recordings go on without that";
    (!parts.is_empty()).then(|| Check::limited(name, parts.join("; "), cost))
}

/// Traces a child that stays stopped until it is killed.
fn may_trace() -> Result<(), Errno> {
    let made = |error: io::Error| Errno::from_io_error(&error).unwrap_or(Errno::IO);
    let signals = Signals::block().map_err(made)?;
    let child = HeldCommand::fork(&Program::new(["true"]), &signals).map_err(made)?;
    let pid = child.pid();
    // In a separate thread: when it ends, the child is not traced any more.
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
        Ok(()) => Check::ok(NAME, "sampled, with call chains"),
        Err(errno) => {
            let cause = cause(machine, errno, 1);
            let cost = "time in system calls and page faults is missing from profiles";
            Check::no(NAME, cause.why, cost).fix(cause.fix)
        }
    }
}

fn all_cpus(machine: &Machine) -> Check {
    const NAME: &str = "all-cpus";
    let cpu = machine.system.cpus.first().copied().unwrap_or(0);
    match Trial::WholeCpu(cpu).run() {
        Ok(()) => Check::ok(NAME, "whole CPUs can be sampled (-a)"),
        Err(errno) => {
            let cause = cause(machine, errno, 0);
            let cost = "only your own processes can be recorded; threads much shorter than the \
                        sampling period are seldom sampled";
            Check::no(NAME, cause.why, cost).fix(cause.fix)
        }
    }
}

fn hardware(machine: &Machine) -> Check {
    const NAME: &str = "hardware-counters";
    match Trial::Cycles.run() {
        Ok(()) => match setting("kernel/nmi_watchdog") {
            Some(1) if !has_buddy_detector() => Check::limited(
                NAME,
                "the kernel's NMI watchdog (kernel.nmi_watchdog is 1) uses one of them",
                "prof stat can count one event fewer at a time",
            )
            .fix(machine.sysctl("kernel.nmi_watchdog", 0)),
            _ => Check::ok(NAME, "cycles can be sampled"),
        },
        Err(_) if Trial::UserCode.run().is_err() => no_events(NAME),
        Err(errno) => Check::no(
            NAME,
            format!("cycles cannot be opened ({errno}); virtual machines often hide the counters"),
            "prof samples by cpu-clock; cycles, cache misses and the like are unavailable",
        ),
    }
}

/// Whether the CPUs watch each other instead of counting cycles: then the NMI watchdog takes no
/// counter (`CONFIG_HARDLOCKUP_DETECTOR_BUDDY`, Linux 6.5).
fn has_buddy_detector() -> bool {
    let release = rustix::system::uname();
    let config = Path::new("/boot").join(format!("config-{}", release.release().to_string_lossy()));
    let config = std::fs::read_to_string(config).unwrap_or_default();
    let mut lines = config.lines();
    lines.any(|line| line == "CONFIG_HARDLOCKUP_DETECTOR_BUDDY=y")
}

fn branches() -> Check {
    const NAME: &str = "branch-stacks";
    match Trial::Branches.run() {
        Ok(()) => Check::ok(NAME, "the CPU records branches (LBR or similar)"),
        Err(_) if Trial::UserCode.run().is_err() => no_events(NAME),
        Err(errno) => Check::no(
            NAME,
            format!("this CPU or virtual machine does not record branches ({errno})"),
            "--call-graph lbr is unavailable; stacks are unwound with unwind tables (dwarf)",
        ),
    }
}

/// The check's result if perf_event_open is refused altogether.
pub(super) fn no_events(name: &'static str) -> Check {
    Check::no(
        name,
        "unknown, because perf_event_open is refused",
        "see own-programs",
    )
}

fn tracepoints(machine: &Machine, prober: &Prober) -> Check {
    const NAME: &str = "tracepoints";
    const COST: &str = "kernel events (sched:*, syscalls:*) cannot be counted or sampled";
    match ability(prober, "sched:sched_switch") {
        Ok(ability) => match ability.sample {
            Answer::No(why) => {
                let fix = match machine.is_root() {
                    true => None,
                    false => Some(machine.sysctl("kernel.perf_event_paranoid", 1)),
                };
                Check::no(NAME, why, COST).fix(fix)
            }
            _ => Check::ok(NAME, "can be counted and sampled"),
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
            _ => return Check::ok(NAME, "can be placed in any program"),
        },
        Err(why) => why,
    };
    Check::no(
        NAME,
        why,
        "function calls in programs (-e uprobe:...) cannot be counted or sampled",
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
    let everybody = machine.privileges.has(Capability::SysPtrace);
    if everybody && !machine.privileges.in_user_namespace {
        return Check::ok(NAME, "processes of every user (CAP_SYS_PTRACE)");
    }
    if everybody {
        return Check::limited(
            NAME,
            "processes in this user namespace (CAP_SYS_PTRACE)",
            "processes outside of it need root of the host",
        )
        .fix(machine.as_root("prof record -p PID"));
    }
    let scope = setting("kernel/yama/ptrace_scope");
    match scope {
        None | Some(0) => Check::limited(
            NAME,
            "your own running processes",
            "processes of other users need root",
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

/// Explains a refusal that a lower `perf_event_paranoid` would end, unless something else causes
/// it.
fn cause(machine: &Machine, errno: Errno, paranoid: i32) -> Cause {
    let why = advice(Refusal {
        errno,
        rights: Rights::of(&machine.privileges, &machine.system),
        subject: match paranoid < 2 {
            true => Subject::KernelCode,
            false => Subject::UserCode,
        },
        system_wide: paranoid < 1,
        target_refuses: false,
    });
    let by_setting = errno == Errno::ACCESS
        && machine.system.paranoid > paranoid
        && !machine.privileges.may_perfmon();
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
