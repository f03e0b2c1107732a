//! The way down: what to ask for next when the kernel refuses.
//!
//! ```text
//!   refused because            next try                            said as
//!   EINVAL, E2BIG   old kernel without read-out of losses              (nothing is missing)
//!                   ..., without build ids in MMAP2                    (read from the files)
//!                   ..., without precise addresses                     (nothing to be done)
//!   EINVAL          rate above the kernel's maximum -> the maximum     Fallback::Rate
//!   EACCES, EPERM   kernel and user code -> user code                  Fallback::UserOnly
//!   ENOENT, ...     cycles -> cpu-clock                                Fallback::Event
//! ```

use prof_model::Fallback;
use rustix::io::Errno;

use crate::event::Source;
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
        Errno::ACCESS | Errno::PERM => user_only(refused, system),
        Errno::NOENT | Errno::OPNOTSUPP | Errno::NODEV => {
            less_precise(refused).or_else(|| other_event(refused))
        }
        _ => None,
    }
}

fn less_features(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    if let Sampling::Hertz(asked) = refused.sampling
        && asked > system.max_rate
    {
        let used = system.max_rate;
        let next = Setup {
            sampling: Sampling::Hertz(used),
            ..*refused
        };
        return Some((next, Some(Fallback::Rate { asked, used })));
    }
    if let Some(next) = less_precise(refused) {
        return Some(next);
    }
    if refused.lost_counts {
        let next = Setup {
            lost_counts: false,
            ..*refused
        };
        return Some((next, None));
    }
    refused.build_ids.then(|| {
        let next = Setup {
            build_ids: false,
            ..*refused
        };
        (next, None)
    })
}

fn less_precise(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    let precise = refused.precise.checked_sub(1)?;
    Some((
        Setup {
            precise,
            ..*refused
        },
        None,
    ))
}

fn user_only(refused: &Setup, system: &System) -> Option<(Setup, Option<Fallback>)> {
    let event = refused.event;
    if !event.kernel || !event.user || event.explicit_modes {
        return None;
    }
    let mut next = *refused;
    next.event.kernel = false;
    let paranoid = system.paranoid;
    Some((next, Some(Fallback::UserOnly { paranoid })))
}

fn other_event(refused: &Setup) -> Option<(Setup, Option<Fallback>)> {
    // A period in cycles means nothing to a clock.
    if refused.event.source != Source::Cycles || matches!(refused.sampling, Sampling::Period(_)) {
        return None;
    }
    let mut next = *refused;
    next.event.source = Source::CpuClock;
    let fallback = Fallback::Event {
        asked: Source::Cycles.name().into(),
        used: Source::CpuClock.name().into(),
    };
    Some((next, Some(fallback)))
}

/// Steps down from `setup` until `open` succeeds.
///
/// # Errors
///
/// What `open` answered last, and to what, when there is nothing left to try.
pub(crate) fn descend<T>(
    mut setup: Setup,
    system: &System,
    mut open: impl FnMut(&Setup) -> Result<T, Errno>,
) -> Result<(T, Setup, Vec<Fallback>), (Errno, Setup)> {
    let mut fallbacks = Vec::new();
    loop {
        match open(&setup) {
            Ok(opened) => return Ok((opened, setup, fallbacks)),
            Err(errno) => {
                let (next, fallback) = step(&setup, errno, system).ok_or((errno, setup))?;
                setup = next;
                fallbacks.extend(fallback);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Event;
    use crate::setup::tests::setup;

    fn system() -> System {
        System {
            paranoid: 2,
            max_rate: 100_000,
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
        refuses_all: bool,
    }

    impl Kernel {
        fn open(&self, setup: &Setup) -> Result<(), Errno> {
            let refusals = [
                (self.refuses_all, Errno::PERM),
                (self.no_lost_counts && setup.lost_counts, Errno::INVAL),
                (self.no_build_ids && setup.build_ids, Errno::INVAL),
                (self.user_only && setup.event.kernel, Errno::ACCESS),
                (setup.sampling == Sampling::Hertz(200_000), Errno::INVAL),
                (
                    self.no_pmu && setup.event.source == Source::Cycles,
                    Errno::NOENT,
                ),
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
            Ok((_, setup, fallbacks)) => Ok((setup.event.to_string(), fallbacks)),
            Err((errno, _)) => Err(errno),
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

    #[test]
    fn the_kernel_gets_what_it_takes() {
        check(&Kernel::default(), setup(), Ok(("cycles", &[])));
        let no_pmu = Kernel {
            no_pmu: true,
            ..Kernel::default()
        };
        check(&no_pmu, setup(), Ok(("cpu-clock", &["cpu-clock instead"])));
        let precise = Setup {
            precise: 2,
            ..setup()
        };
        check(&no_pmu, precise, Ok(("cpu-clock", &["cpu-clock instead"])));
        let old = Kernel {
            no_build_ids: true,
            no_lost_counts: true,
            ..Kernel::default()
        };
        check(&old, setup(), Ok(("cycles", &[])));
        let user = Kernel {
            no_pmu: true,
            user_only: true,
            ..Kernel::default()
        };
        let words = ["perf_event_paranoid is 2", "cpu-clock instead"];
        check(&user, setup(), Ok(("cpu-clock:u", &words)));
        let fast = Setup {
            sampling: Sampling::Hertz(200_000),
            ..setup()
        };
        check(&Kernel::default(), fast, Ok(("cycles", &["100000 Hz"])));
    }

    #[test]
    fn what_was_named_is_not_replaced() {
        let no_pmu = Kernel {
            no_pmu: true,
            user_only: true,
            ..Kernel::default()
        };
        let with_event = |text: &str| Setup {
            event: text.parse().expect("an event"),
            ..setup()
        };
        check(&no_pmu, with_event("cpu-clock:k"), Err(Errno::ACCESS));
        check(&no_pmu, with_event("cpu-clock:uk"), Err(Errno::ACCESS));
        check(&no_pmu, with_event("cpu-clock:u"), Ok(("cpu-clock:u", &[])));
        let period = Setup {
            sampling: Sampling::Period(1_000_000),
            event: Event {
                kernel: false,
                ..Event::new(Source::Cycles)
            },
            ..setup()
        };
        check(&no_pmu, period, Err(Errno::NOENT));
    }

    #[test]
    fn a_refusal_of_everything_ends() {
        let sandbox = Kernel {
            refuses_all: true,
            ..Kernel::default()
        };
        check(&sandbox, setup(), Err(Errno::PERM));
    }
}
