//! Fallbacks: the next request when the kernel refuses one.
//!
//! ```text
//!   refused because            next try                            said as
//!   EINVAL, E2BIG   old kernel without read-out of losses              (nothing is missing)
//!                   ..., without build ids in MMAP2                    (read from the files)
//!                   ..., without precise addresses                     (nothing to be done)
//!   EINVAL          rate above the kernel's maximum -> the maximum     Fallback::Rate
//!                   a PMU that cannot leave out guests -> with guests   (the event's name)
//!                   counts of a group with children -> no children     Fallback::NoChildren
//!   EINVAL, EACCES, no registers of the kernel                         (its entry is not whole)
//!   EPERM
//!   EACCES, EPERM   kernel and user code -> user code                  Fallback::UserOnly
//!                   context switches -> SWITCH records alone           Fallback::BlockedThreads
//!                   without its chain of user code, or build ids       Fallback::Refused
//!   EOPNOTSUPP, ... calls in branch records -> a copy of the stack     Fallback::NoLastBranches
//!   ENOENT, ...     cycles -> cpu-clock                                Fallback::Event
//!   (it opens, in a virtual machine)
//!                   cycles -> cpu-clock                                Fallback::VirtualMachine
//! ```

use prof_model::Fallback;
use rustix::io::Errno;

use crate::attr::setup::{Sampling, Scope, Setup, Stacks, WithDump};
use crate::parsing::{EventSpec, Family, Precise};
use crate::plan::narrowing::narrower;
use crate::request::event::Weight;
use crate::system::System;

/// The next request after one was refused with `errno`; `None` if there is none left.
pub(crate) fn step(
    refused: &Setup,
    errno: Errno,
    system: &System,
) -> Option<(Setup, Option<Fallback>)> {
    match errno {
        Errno::INVAL | Errno::TOOBIG => less_features(refused, system),
        Errno::ACCESS | Errno::PERM => {
            // A kernel that is locked down keeps its registers to itself.
            without_entry_registers(refused)
                .or_else(|| user_only(refused, system))
                .or_else(|| only_switches(refused, system))
        }
        Errno::OPNOTSUPP => less_precise(refused)
            .or_else(|| no_last_branches(refused))
            .or_else(|| other_event(refused)),
        Errno::NOENT | Errno::NODEV => less_precise(refused).or_else(|| other_event(refused)),
        _ => None,
    }
}

fn less_features(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    let mut next = refused.clone();
    if let Sampling::Hertz(asked) = refused.sampling
        && asked > system.max_rate
    {
        let used = system.max_rate;
        next.sampling = Sampling::Hertz(used);
        return Some((next, Some(Fallback::Rate { asked, used })));
    }
    if let Some(next) = less_precise(refused) {
        return Some(next);
    }
    if let Some(next) = without_entry_registers(refused) {
        return Some(next);
    }
    // PMUs that cannot select the code that counts, as they cannot sample, refuse the exclude bits.
    let counted = refused.sampling == Sampling::Never;
    let modifiers = &mut next.spec.modifiers;
    if counted && matches!(refused.spec.family, Family::Pmu(_)) && !modifiers.guest {
        modifiers.guest = true;
        return Some((next, None));
    }
    if let Stacks::LastBranches { index, .. } = &mut next.stacks
        && std::mem::take(index)
    {
        return Some((next, None));
    }
    if refused.features.lost_counts {
        next.features.lost_counts = false;
        return Some((next, None));
    }
    if refused.features.build_ids {
        next.features.build_ids = false;
        return Some((next, None));
    }
    // Before Linux 6.13, samples with counts cannot be inherited.
    if refused.reads_group && refused.scope == Scope::Descendants {
        next.scope = Scope::Thread;
        let event = refused.spec.to_string();
        return Some((next, Some(Fallback::NoChildren { event })));
    }
    no_last_branches(refused)
}

/// The CPU keeps no calls, or the event cannot interrupt it.
fn no_last_branches(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    let Stacks::LastBranches { otherwise, .. } = refused.stacks else {
        return None;
    };
    let next = Setup {
        stacks: Stacks::Dump(otherwise),
        ..refused.clone()
    };
    let event = refused.spec.to_string();
    Some((next, Some(Fallback::NoLastBranches { event })))
}

fn less_precise(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    // An explicit number of `p` is not replaced.
    if matches!(refused.spec.modifiers.precise, Precise::Level(1..)) {
        return None;
    }
    let precise = refused.precise.checked_sub(1)?;
    let next = Setup {
        precise,
        ..refused.clone()
    };
    Some((next, None))
}

fn without_entry_registers(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    let mut next = refused.clone();
    let were_asked = std::mem::take(&mut next.with_dump.entry_registers);
    were_asked.then_some((next, None))
}

fn user_only(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    let spec = refused.spec.user_only()?;
    // An event that happens in the kernel only would open, and never sample.
    if !spec.modifiers.user || spec.happens_in_kernel_only() {
        return None;
    }
    let next = Setup {
        spec,
        ..refused.clone()
    };
    let paranoid = system.paranoid;
    Some((next, Some(Fallback::UserOnly { paranoid })))
}

/// Every user may get the context switches of their own threads.
fn only_switches(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    if refused.weight != Weight::OffCpu || refused.only_switches() {
        return None;
    }
    let next = Setup {
        spec: EventSpec::off_cpu_by_switches(),
        ..refused.clone()
    };
    let paranoid = system.paranoid;
    Some((next, Some(Fallback::BlockedThreads { paranoid })))
}

fn other_event(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    let next = by_the_clock(refused)?;
    let fallback = Fallback::Event {
        asked: refused.spec.name.clone(),
        used: next.spec.name.clone(),
    };
    Some((next, Some(fallback)))
}

/// A better event for the machine than the opened one. Virtual machines are interrupted by cycles
/// and by devices at once, which hides the registers of user code (see `docs/design/unwinding.md`).
///
/// CPUs keep their cycles: their clock falls into step with programs that sleep on timers. So do
/// requests that need no registers.
fn better(opened: &Setup, system: &System) -> Option<(Setup, Fallback)> {
    let unwound = matches!(opened.stacks, Stacks::Dump(_) | Stacks::FramePointers);
    if !system.virtual_machine || opened.scope == Scope::Cpu || !unwound {
        return None;
    }
    let next = by_the_clock(opened)?;
    let fallback = Fallback::VirtualMachine {
        asked: opened.spec.name.clone(),
        used: next.spec.name.clone(),
    };
    Some((next, fallback))
}

/// The same options with the clock, if it may replace the event.
fn by_the_clock(setup: &Setup) -> Option<Setup> {
    // A period in cycles means nothing to a clock.
    if !setup.replaceable || matches!(setup.sampling, Sampling::Period(_)) {
        return None;
    }
    let mut modifiers = setup.spec.modifiers;
    // Cycles are not counted either while a CPU has nothing to do.
    modifiers.not_idle |= setup.scope == Scope::Cpu;
    Some(Setup {
        spec: EventSpec {
            modifiers,
            ..EventSpec::cpu_clock()
        },
        replaceable: false,
        with_dump: WithDump {
            entry_registers: false,
            ..setup.with_dump
        },
        ..setup.clone()
    })
}

/// What the kernel accepted: the event, its request, and how that differs from the first one.
#[derive(Debug)]
pub(crate) struct Accepted<T> {
    pub(crate) event: T,
    pub(crate) setup: Setup,
    pub(crate) fallbacks: Vec<Fallback>,
}

/// The kernel's last error, and its request.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) errno: Errno,
    pub(crate) setup: Box<Setup>,
}

/// Steps down from `setup` until `open` succeeds with a request that suits the machine.
///
/// # Errors
///
/// When there is nothing left to try.
pub(crate) fn fall_back<T>(
    mut setup: Setup,
    system: &System,
    mut open: impl FnMut(&Setup) -> Result<T, Errno>,
) -> Result<Accepted<T>, Refused> {
    let mut fallbacks = Vec::new();
    loop {
        match open(&setup) {
            Ok(event) => {
                let Some((next, fallback)) = better(&setup, system) else {
                    return Ok(Accepted {
                        event,
                        setup,
                        fallbacks,
                    });
                };
                setup = next;
                fallbacks.push(fallback);
            }
            Err(errno) => {
                let Some((next, fallback)) = step(&setup, errno, system) else {
                    let narrower = match errno {
                        Errno::ACCESS | Errno::PERM => narrower(&setup),
                        _ => Vec::new(),
                    };
                    let opened = |(setup, said)| Some((open(&setup).ok()?, setup, said));
                    let Some((event, setup, said)) = narrower.into_iter().find_map(opened) else {
                        let setup = Box::new(setup);
                        return Err(Refused { errno, setup });
                    };
                    fallbacks.extend(said);
                    return Ok(Accepted {
                        event,
                        setup,
                        fallbacks,
                    });
                };
                setup = next;
                fallbacks.extend(fallback);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attr::setup::Reports;
    use crate::attr::setup::tests::{setup, system};

    /// A kernel that refuses as real ones do.
    #[derive(Default)]
    struct Kernel {
        no_pmu: bool,
        no_build_ids: bool,
        no_lost_counts: bool,
        no_branch_records: bool,
        no_branch_index: bool,
        user_only: bool,
        locked_down: bool,
        no_user_chains: bool,
        secret_build_ids: bool,
        refuses_all: bool,
    }

    impl Kernel {
        fn open(&self, setup: &Setup) -> Result<(), Errno> {
            let (branches, index) = match setup.stacks {
                Stacks::LastBranches { index, .. } => (true, index),
                _ => (false, false),
            };
            // Software events cannot interrupt at the moment of a branch.
            let branchless = self.no_branch_records || setup.spec.is_clock();
            let reads_inherited = setup.reads_group && setup.scope == Scope::Descendants;
            let refusals = [
                (self.refuses_all, Errno::PERM),
                (
                    self.locked_down && setup.with_dump.entry_registers,
                    Errno::PERM,
                ),
                (
                    self.no_user_chains && setup.with_dump.user_chain,
                    Errno::ACCESS,
                ),
                (
                    self.secret_build_ids && setup.features.build_ids,
                    Errno::PERM,
                ),
                (
                    self.no_lost_counts && setup.features.lost_counts,
                    Errno::INVAL,
                ),
                (self.no_build_ids && setup.features.build_ids, Errno::INVAL),
                (self.user_only && setup.spec.modifiers.kernel, Errno::ACCESS),
                (setup.sampling == Sampling::Hertz(200_000), Errno::INVAL),
                (reads_inherited, Errno::INVAL),
                (self.no_pmu && setup.spec.name == "cycles", Errno::NOENT),
                (branches && branchless, Errno::OPNOTSUPP),
                (index && self.no_branch_index, Errno::INVAL),
                (self.no_pmu && setup.precise > 0, Errno::OPNOTSUPP),
            ];
            match refusals.into_iter().find(|&(refused, _)| refused) {
                Some((_, errno)) => Err(errno),
                None => Ok(()),
            }
        }
    }

    fn check(kernel: &Kernel, setup: Setup, expected: Result<(&str, &[&str]), Errno>) {
        let result = fall_back(setup, &system(), |setup| kernel.open(setup));
        let result = match result {
            Ok(accepted) => Ok((accepted.setup.spec.to_string(), accepted.fallbacks)),
            Err(refused) => Err(refused.errno),
        };
        match (result, expected) {
            (Ok((event, fallbacks)), Ok((expected, words))) => {
                assert_eq!(event, expected);
                assert_eq!(fallbacks.len(), words.len(), "{fallbacks:?}");
                for (fallback, word) in fallbacks.iter().zip(words) {
                    assert!(fallback.to_string().contains(word), "{fallback}");
                }
            }
            (result, expected) => {
                assert_eq!(result.map(|_| ()), expected.map(|_| ()));
            }
        }
    }

    fn usual() -> Setup {
        Setup {
            replaceable: true,
            ..setup("cycles")
        }
    }

    #[test]
    fn unsupported_options_have_fallbacks() {
        check(&Kernel::default(), usual(), Ok(("cycles", &[])));
        let no_pmu = Kernel {
            no_pmu: true,
            ..Kernel::default()
        };
        check(&no_pmu, usual(), Ok(("cpu-clock", &["cpu-clock instead"])));
        let precise = Setup {
            precise: 2,
            ..usual()
        };
        check(&no_pmu, precise, Ok(("cpu-clock", &["cpu-clock instead"])));
        let old = Kernel {
            no_build_ids: true,
            no_lost_counts: true,
            ..Kernel::default()
        };
        check(&old, usual(), Ok(("cycles", &[])));
        let locked_down = Kernel {
            locked_down: true,
            ..Kernel::default()
        };
        let mut usual_registers = usual();
        usual_registers.with_dump.entry_registers = true;
        check(&locked_down, usual_registers, Ok(("cycles", &[])));
        let user = Kernel {
            no_pmu: true,
            user_only: true,
            ..Kernel::default()
        };
        let words = ["perf_event_paranoid is 2", "cpu-clock instead"];
        check(&user, usual(), Ok(("cpu-clock:u", &words)));
        let fast = Setup {
            sampling: Sampling::Hertz(200_000),
            ..usual()
        };
        check(&Kernel::default(), fast, Ok(("cycles", &["100000 Hz"])));
        let counts = Setup {
            reads_group: true,
            ..setup("faults")
        };
        check(&old, counts, Ok(("faults", &["threads and processes"])));
    }

    #[test]
    fn what_is_forbidden_is_left_out() {
        let mut usual = usual();
        usual.with_dump.user_chain = true;
        let kernel = |no_user_chains, secret_build_ids, refuses_all| Kernel {
            user_only: true,
            no_user_chains,
            secret_build_ids,
            refuses_all,
            ..Kernel::default()
        };
        let (user, chains, ids) = ("perf_event_paranoid", "call chains", "build ids");
        for (kernel, expected) in [
            (kernel(false, false, false), Ok(&[user][..])),
            (kernel(true, false, false), Ok(&[user, chains][..])),
            (kernel(false, true, false), Ok(&[user, ids][..])),
            (kernel(true, true, false), Ok(&[user, chains, ids][..])),
            (kernel(true, true, true), Err(Errno::PERM)),
        ] {
            let expected = expected.map(|words| ("cycles:u", words));
            check(&kernel, usual.clone(), expected);
        }
    }

    #[test]
    fn explicit_events_have_no_fallback() {
        let no_pmu = Kernel {
            no_pmu: true,
            user_only: true,
            ..Kernel::default()
        };
        check(&no_pmu, setup("cycles"), Err(Errno::NOENT));
        check(&no_pmu, setup("cpu-clock:k"), Err(Errno::ACCESS));
        check(&no_pmu, setup("cpu-clock:uk"), Err(Errno::ACCESS));
        check(&no_pmu, setup("cpu-clock:u"), Ok(("cpu-clock:u", &[])));
        check(&no_pmu, setup("context-switches"), Err(Errno::ACCESS));
        let precise = Setup {
            precise: 2,
            ..setup("cpu-clock:upp")
        };
        check(&no_pmu, precise, Err(Errno::OPNOTSUPP));
        let period = Setup {
            sampling: Sampling::Period(1_000_000),
            replaceable: true,
            ..setup("cycles:u")
        };
        check(&no_pmu, period, Err(Errno::NOENT));
    }

    #[test]
    fn virtual_machines_use_the_clock_unless_cycles_are_requested() {
        let chosen = |virtual_machine, no_pmu, setup: Setup| {
            let system = System {
                virtual_machine,
                ..system()
            };
            let kernel = Kernel {
                no_pmu,
                ..Kernel::default()
            };
            let accepted = fall_back(setup, &system, |setup| kernel.open(setup)).unwrap();
            let said: Vec<String> = accepted.fallbacks.iter().map(Fallback::to_string).collect();
            (accepted.setup.spec.to_string(), said.join("\n"))
        };
        let (event, said) = chosen(true, false, usual());
        assert_eq!(event, "cpu-clock");
        assert!(said.contains("-e cycles samples cycles anyway"), "{said}");
        let (event, said) = chosen(true, true, usual());
        assert_eq!(event, "cpu-clock");
        assert!(said.contains("no hardware counters"), "{said}");

        let cycles = || ("cycles".to_owned(), String::new());
        assert_eq!(chosen(false, false, usual()), cycles());
        assert_eq!(chosen(true, false, setup("cycles")), cycles());
        let cpu_wide = Setup {
            scope: Scope::Cpu,
            ..usual()
        };
        assert_eq!(chosen(true, false, cpu_wide), cycles());
        let period = Setup {
            sampling: Sampling::Period(1_000_000),
            ..usual()
        };
        assert_eq!(chosen(true, false, period), cycles());
        let index = true;
        let otherwise = 8192;
        for stacks in [Stacks::None, Stacks::LastBranches { index, otherwise }] {
            let not_unwound = Setup { stacks, ..usual() };
            assert_eq!(chosen(true, false, not_unwound), cycles());
        }
    }

    #[test]
    fn stacks_are_copied_where_the_cpu_keeps_no_calls() {
        let lbr = || Setup {
            stacks: Stacks::LastBranches {
                index: true,
                otherwise: 8192,
            },
            ..usual()
        };
        let opened = |kernel: Kernel| {
            let opened = fall_back(lbr(), &system(), |setup| kernel.open(setup));
            let Accepted {
                setup, fallbacks, ..
            } = opened.expect("something");
            (setup.spec.name, setup.stacks, fallbacks.len())
        };
        let with = |index| Stacks::LastBranches {
            index,
            otherwise: 8192,
        };
        let name = |name: &str| name.to_owned();
        let modern = Kernel::default();
        assert_eq!(opened(modern), (name("cycles"), with(true), 0));
        let old = Kernel {
            no_branch_index: true,
            ..Kernel::default()
        };
        assert_eq!(opened(old), (name("cycles"), with(false), 0));
        let without = Kernel {
            no_branch_records: true,
            ..Kernel::default()
        };
        let dump = Stacks::Dump(8192);
        assert_eq!(opened(without), (name("cycles"), dump, 1));
        let no_pmu = Kernel {
            no_pmu: true,
            ..Kernel::default()
        };
        assert_eq!(opened(no_pmu), (name("cpu-clock"), dump, 2));
        let words = ["(LBR)"];
        let clock = Setup {
            stacks: with(true),
            ..setup("cpu-clock:u")
        };
        check(&Kernel::default(), clock, Ok(("cpu-clock:u", &words)));
    }

    #[test]
    fn waits_are_timed_without_access_to_the_kernel() {
        let user = Kernel {
            user_only: true,
            ..Kernel::default()
        };
        let waits = |event| Setup {
            weight: Weight::OffCpu,
            reports: Reports {
                switches: true,
                ..setup(event).reports
            },
            sampling: Sampling::Period(1),
            ..setup(event)
        };
        let off_cpu = || Setup {
            spec: EventSpec::off_cpu(),
            ..waits("context-switches")
        };
        let root = Kernel::default();
        check(&root, off_cpu(), Ok(("offcpu-time", &[])));
        let words = ["the stacks of sleeping threads"];
        check(&user, off_cpu(), Ok(("offcpu-time:u", &words)));
        let sandbox = Kernel {
            refuses_all: true,
            ..Kernel::default()
        };
        check(&sandbox, off_cpu(), Err(Errno::PERM));

        let opened = fall_back(off_cpu(), &system(), |setup| user.open(setup));
        let switches = opened.expect("SWITCH records").setup;
        assert!(switches.only_switches() && !off_cpu().only_switches());
        let attr = switches.attr();
        assert_eq!((attr.context_switch(), attr.exclude_kernel()), (1, 1));
        let blocked = switches.of_blocked_threads(4096);
        assert_eq!(blocked.user_registers().count_ones(), 2);
        assert_eq!(blocked.attr().context_switch(), 0);
    }

    #[test]
    fn a_refusal_of_everything_ends() {
        let sandbox = Kernel {
            refuses_all: true,
            ..Kernel::default()
        };
        check(&sandbox, usual(), Err(Errno::PERM));
    }
}
