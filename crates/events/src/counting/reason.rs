//! Why an event cannot be counted, and what to do.

use perf_event_open_sys::bindings as sys;
use rustix::io::Errno;

use crate::parsing::{EventSpec, Family, Precise};
use crate::permission::{Refusal, Rights, Subject};

/// The facts that the reason depends on, besides the event and the error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RefusalFacts {
    /// Our rights.
    pub rights: Rights,
    /// Whether the kernel knows any counters of the CPUs (a PMU of theirs in sysfs).
    pub hardware: bool,
    /// Whether the event counts everything on a CPU, or in a cgroup.
    pub system_wide: bool,
    /// Whether nothing may be measured in the target ([`Trial::Thread`](crate::Trial::Thread)).
    pub target_refuses: bool,
}

/// Why the kernel refused to open the event, as the end of a sentence, with the remedy if there
/// is one.
pub fn why_not(spec: &EventSpec, errno: Errno, facts: RefusalFacts) -> String {
    match errno {
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV | Errno::NXIO => unavailable(spec, facts),
        Errno::ACCESS | Errno::PERM => {
            let refusal = Refusal {
                errno,
                rights: facts.rights,
                subject: Subject::of(spec),
                system_wide: facts.system_wide,
                target_refuses: facts.target_refuses,
            };
            refusal.permission()
        }
        Errno::SRCH => "the process does not exist, or has ended".into(),
        Errno::NOSYS => facts.rights.no_system_call(),
        Errno::MFILE | Errno::NFILE => {
            "each event needs a file descriptor for each thread or CPU: raise the limit with \
             `ulimit -n`"
                .into()
        }
        Errno::BUSY => {
            "another program has reserved the counters (an exclusive event, or the NMI watchdog)"
                .into()
        }
        Errno::NOSPC => "all breakpoint registers of the CPU are in use".into(),
        Errno::INVAL => invalid(spec, facts),
        Errno::TOOBIG => "the kernel is too old for this event".into(),
        _ => format!("the kernel answers: {errno}"),
    }
}

fn unavailable(spec: &EventSpec, facts: RefusalFacts) -> String {
    match spec.family {
        _ if facts.hardware && matches!(spec.modifiers.precise, Precise::Level(1..)) => {
            "this CPU cannot locate the event so precisely: use fewer p, or none".into()
        }
        // The kernel gives such a type to other PMUs than those of the CPUs.
        Family::Raw if spec.encoding.kind >= sys::PERF_TYPE_MAX => {
            "no PMU has that type, or it does not have that event".into()
        }
        Family::Hardware | Family::Cache | Family::Raw if !facts.hardware => {
            "this machine has no hardware counters (virtual machines often hide them); software \
             events such as task-clock work"
                .into()
        }
        Family::Uprobe | Family::Uretprobe => {
            "this kernel cannot probe this place, or tracefs is not mounted (mount -t tracefs \
             nodev /sys/kernel/tracing)"
                .into()
        }
        _ => "this CPU or its kernel does not have this event".into(),
    }
}

fn invalid(spec: &EventSpec, facts: RefusalFacts) -> String {
    let modifiers = spec.modifiers;
    if spec.cpus.is_some() && !facts.system_wide {
        return "it counts on whole CPUs only, not in threads: use -a".into();
    }
    match spec.family {
        Family::Cache => unavailable(spec, facts),
        Family::Uprobe | Family::Uretprobe => {
            "no instruction begins at this offset, or the file is on a file system without uprobes"
                .into()
        }
        Family::Breakpoint => {
            "the CPU cannot watch so many bytes at this address (the address must be a multiple \
             of the length)"
                .into()
        }
        Family::Pmu(_) if modifiers.explicit_modes => {
            "its PMU cannot distinguish user code from kernel code: leave out the modifiers".into()
        }
        Family::Pmu(_) | Family::Raw => {
            "its PMU does not have this event, or not with these terms, or not in single threads"
                .into()
        }
        _ => "the kernel refuses this combination of event and modifiers".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parsing::Catalog;

    const USER: RefusalFacts = RefusalFacts {
        rights: Rights {
            paranoid: 2,
            capable: false,
            in_user_namespace: false,
            filtered: false,
        },
        hardware: true,
        system_wide: false,
        target_refuses: false,
    };

    fn check(event: &str, errno: Errno, facts: RefusalFacts, expected: &str) {
        let groups = Catalog::system().parse(event).unwrap();
        let text = why_not(&groups[0].events[0], errno, facts);
        assert!(text.contains(expected), "{event}: {text}");
    }

    #[test]
    fn the_reason_fits_the_event_and_the_user() {
        let no_pmu = RefusalFacts {
            hardware: false,
            ..USER
        };
        let mut filtered = USER;
        filtered.rights.filtered = true;
        let wide = RefusalFacts {
            system_wide: true,
            ..USER
        };
        let attach = RefusalFacts {
            target_refuses: true,
            ..USER
        };
        check("cycles", Errno::NOENT, no_pmu, "no hardware counters");
        check("cycles", Errno::NOENT, USER, "does not have this event");
        check("cycles:pp", Errno::OPNOTSUPP, USER, "fewer p");
        check("cycles:pp", Errno::NOENT, no_pmu, "no hardware counters");
        check("r1a8", Errno::NOENT, no_pmu, "no hardware counters");
        check("99:0", Errno::NOENT, no_pmu, "no PMU has that type");
        check("99:0", Errno::NOENT, USER, "no PMU has that type");
        check("cycles", Errno::ACCESS, USER, "add :u");
        check("cs", Errno::ACCESS, USER, "happens in the kernel");
        check("cycles:u", Errno::ACCESS, USER, "does not say why");
        check("cycles:u", Errno::ACCESS, attach, "another user");
        check("cycles", Errno::ACCESS, wide, "paranoid=0");
        check("cycles", Errno::PERM, filtered, "a seccomp filter");
        check("cycles", Errno::NOSYS, filtered, "a seccomp filter");
        check("cycles", Errno::NOSYS, USER, "gVisor");
        check("cycles", Errno::SRCH, USER, "does not exist");
        check("cycles:u", Errno::MFILE, USER, "ulimit -n");
        check("uprobe:libc.so.6:malloc", Errno::ACCESS, USER, "need root");
        check("mem:0x1001/4", Errno::INVAL, USER, "multiple of the length");
        check("mem:0x1000", Errno::NOSPC, USER, "are in use");
        check("cycles", Errno::IO, USER, "the kernel answers");
    }
}
