//! The way down: what to ask for next when the kernel refuses.
//!
//! ```text
//!   refused because            next try                            said as
//!   EINVAL, E2BIG   old kernel without read-out of losses              (nothing is missing)
//!                   ..., without build ids in MMAP2                    (read from the files)
//!                   ..., without precise addresses                     (nothing to be done)
//!   EINVAL          rate above the kernel's maximum -> the maximum     Fallback::Rate
//!                   counts of a group with children -> no children     Fallback::NoChildren
//!   EINVAL, EACCES, no registers of the kernel                         (its entry is not whole)
//!   EPERM
//!   EACCES, EPERM   kernel and user code -> user code                  Fallback::UserOnly
//!   ENOENT, ...     cycles -> cpu-clock                                Fallback::Event
//! ```

use prof_model::Fallback;
use rustix::io::Errno;

use crate::names::{EventSpec, Precise};
use crate::setup::{Sampling, Setup};
use crate::system::System;

/// One step down from what was refused with `errno`; `None` if there is nothing left to try.
pub(crate) fn step(
    refused: &Setup,
    errno: Errno,
    system: &System,
) -> Option<(Setup, Option<Fallback>)> {
    match errno {
        Errno::INVAL | Errno::TOOBIG => less_features(refused, system),
        Errno::ACCESS | Errno::PERM => {
            // A kernel that is locked down keeps its registers to itself.
            without_entry_registers(refused).or_else(|| user_only(refused, system))
        }
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            less_precise(refused).or_else(|| other_event(refused))
        }
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
    if refused.lost_counts {
        next.lost_counts = false;
        return Some((next, None));
    }
    if refused.build_ids {
        next.build_ids = false;
        return Some((next, None));
    }
    // Before Linux 6.13, samples with counts cannot be inherited.
    if refused.reads_group && refused.inherit {
        next.inherit = false;
        let event = refused.spec.to_string();
        return Some((next, Some(Fallback::NoChildren { event })));
    }
    None
}

fn less_precise(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    // What was asked for with so many `p` is not replaced.
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
    let next = Setup {
        entry_registers: false,
        ..refused.clone()
    };
    refused.entry_registers.then_some((next, None))
}

fn user_only(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    let spec = refused.spec.user_only()?;
    // What happens in the kernel only would open, and never sample.
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

fn other_event(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    // A period in cycles means nothing to a clock.
    if !refused.replaceable || matches!(refused.sampling, Sampling::Period(_)) {
        return None;
    }
    let mut modifiers = refused.spec.modifiers;
    // Cycles are not counted either while a CPU has nothing to do.
    modifiers.not_idle |= refused.cpu_wide;
    let clock = EventSpec {
        modifiers,
        ..EventSpec::cpu_clock()
    };
    let fallback = Fallback::Event {
        asked: refused.spec.name.clone(),
        used: clock.name.clone(),
    };
    let next = Setup {
        spec: clock,
        replaceable: false,
        entry_registers: false,
        ..refused.clone()
    };
    Some((next, Some(fallback)))
}

/// What the kernel answered last, and to what.
#[derive(Debug)]
pub(crate) struct Refused {
    pub(crate) errno: Errno,
    pub(crate) setup: Box<Setup>,
}

/// Steps down from `setup` until `open` succeeds.
///
/// # Errors
///
/// When there is nothing left to try.
pub(crate) fn descend<T>(
    mut setup: Setup,
    system: &System,
    mut open: impl FnMut(&Setup) -> Result<T, Errno>,
) -> Result<(T, Setup, Vec<Fallback>), Refused> {
    let mut fallbacks = Vec::new();
    loop {
        match open(&setup) {
            Ok(opened) => return Ok((opened, setup, fallbacks)),
            Err(errno) => {
                let Some((next, fallback)) = step(&setup, errno, system) else {
                    let setup = Box::new(setup);
                    return Err(Refused { errno, setup });
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
    use crate::setup::tests::setup;

    fn system() -> System {
        System {
            paranoid: 2,
            max_rate: 100_000,
            max_stack: 127,
            cpus: vec![0, 1],
        }
    }

    /// A kernel that refuses as real ones do.
    #[derive(Default)]
    struct Kernel {
        no_pmu: bool,
        no_build_ids: bool,
        no_lost_counts: bool,
        user_only: bool,
        locked_down: bool,
        refuses_all: bool,
    }

    impl Kernel {
        fn open(&self, setup: &Setup) -> Result<(), Errno> {
            let refusals = [
                (self.refuses_all, Errno::PERM),
                (self.locked_down && setup.entry_registers, Errno::PERM),
                (self.no_lost_counts && setup.lost_counts, Errno::INVAL),
                (self.no_build_ids && setup.build_ids, Errno::INVAL),
                (self.user_only && setup.spec.modifiers.kernel, Errno::ACCESS),
                (setup.sampling == Sampling::Hertz(200_000), Errno::INVAL),
                (setup.reads_group && setup.inherit, Errno::INVAL),
                (self.no_pmu && setup.spec.name == "cycles", Errno::NOENT),
                (self.no_pmu && setup.precise > 0, Errno::OPNOTSUPP),
            ];
            match refusals.into_iter().find(|&(refused, _)| refused) {
                Some((_, errno)) => Err(errno),
                None => Ok(()),
            }
        }
    }

    fn check(kernel: &Kernel, setup: Setup, expected: Result<(&str, &[&str]), Errno>) {
        let result = descend(setup, &system(), |setup| kernel.open(setup));
        let result = match result {
            Ok((_, setup, fallbacks)) => Ok((setup.spec.to_string(), fallbacks)),
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
    fn the_kernel_gets_what_it_takes() {
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
        let usual_registers = Setup {
            entry_registers: true,
            ..usual()
        };
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
    fn what_was_named_is_not_replaced() {
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
    fn a_refusal_of_everything_ends() {
        let sandbox = Kernel {
            refuses_all: true,
            ..Kernel::default()
        };
        check(&sandbox, usual(), Err(Errno::PERM));
    }
}
