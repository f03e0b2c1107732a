//! Which programs the probes reached, in words.

use super::share;
use crate::probes::{ProbedPrograms, UnreachedProgram};
use crate::quality::{Quality, SampledBy};
use crate::text::{counted, printable};

/// One line that names the programs that ran without a probed file for a hundredth of the time or
/// longer.
pub(super) fn unreached(quality: &Quality) -> Option<String> {
    const MOST: usize = 3;
    let probes = quality.probes.as_ref()?;
    let programs: Vec<_> = probes.of_weight().collect();
    let (do_not, its) = match programs.len() {
        0 => return None,
        1 => ("does not", "its"),
        _ => ("do not", "their"),
    };
    let calls = match quality.sampled_by {
        SampledBy::Allocations => "allocations",
        _ => "calls",
    };
    let named: Vec<_> = programs.iter().take(MOST).map(|one| named(one)).collect();
    let more = match programs.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    Some(format!(
        "{} {do_not} use the probed {}, so {its} {calls} are not recorded: {}{more}",
        counted(programs.len() as u64, "program"),
        probes.files(),
        named.join(", ")
    ))
}

/// Whether the probes missed much of what ran.
pub(super) fn misses_much(quality: &Quality) -> bool {
    const MUCH: f64 = 0.05;
    quality.probes.as_ref().is_some_and(|probes| {
        let ran = probes.unreached.iter().map(|one| one.ran);
        let ran = ran.fold(0, u64::saturating_add);
        share(ran, probes.recorded).is_some_and(|share| share >= MUCH)
    })
}

/// `tool (3 processes, ran 1.2 s)`
fn named(one: &UnreachedProgram) -> String {
    let mut reported = format!("{} (", printable(&one.program));
    if one.processes > 1 {
        reported += &format!("{} processes, ", one.processes);
    }
    if let Some(instead) = &one.instead {
        reported += &format!("uses {}, ", printable(instead));
    }
    reported + &format!("ran {})", duration(one.ran))
}

fn duration(ns: u64) -> String {
    let seconds = ns as f64 / 1e9;
    match ns {
        0..1_000_000 => "under 1 ms".into(),
        1_000_000..999_500_000 => format!("{:.0} ms", seconds * 1000.0),
        999_500_000..100_000_000_000 => format!("{seconds:.1} s"),
        _ => format!("{seconds:.0} s"),
    }
}

impl ProbedPrograms {
    /// The programs that ran long enough to matter.
    fn of_weight(&self) -> impl Iterator<Item = &UnreachedProgram> {
        const MUCH: f64 = 0.01;
        let matters = |one: &&UnreachedProgram| share(one.ran, self.recorded) >= Some(MUCH);
        self.unreached.iter().filter(matters)
    }

    /// `libc.so.6 or libjemalloc.so.2`
    fn files(&self) -> String {
        let files: Vec<_> = self.files.iter().map(|file| printable(file)).collect();
        files.join(" or ")
    }
}

impl Quality {
    /// Why there is no sample, if probes are the only events.
    pub(crate) fn why_probes_were_not_hit(&self) -> Option<String> {
        let probes = self.probes.as_ref().filter(|probes| probes.only)?;
        if self.losses.samples() > 0 {
            return None;
        }
        let lost = self.losses.samples();
        if lost > 0 {
            return Some(format!(
                "{} lost, and there was no other",
                counted(lost, "sample")
            ));
        }
        let why = match self.sampled_by {
            _ if !probes.reached => format!("no program used the probed {}", probes.files()),
            SampledBy::Allocations => {
                let what = "no memory was allocated, or too little for a sample (--every), in programs \
                            that use the probed";
                format!("{what} {}", probes.files())
            }
            _ if self.every_event => "no probed function was called while it was recorded".into(),
            _ => format!(
                "no probed function was called while it was recorded, or not often enough for a sample; \
                 use {}",
                self.sampled_by.more()
            ),
        };
        Some(match unreached(self) {
            Some(unreached) => format!("{why}; {unreached}"),
            None => why,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stack::StackEnd;
    use crate::verdict::tests::quality;
    use crate::verdict::{Grade, Verdict};

    fn program(program: &str, processes: u64, ran: u64, instead: Option<&str>) -> UnreachedProgram {
        UnreachedProgram {
            program: program.into(),
            processes,
            ran,
            instead: instead.map(Into::into),
        }
    }

    fn probed(unreached: Vec<UnreachedProgram>) -> ProbedPrograms {
        ProbedPrograms {
            files: vec!["libc.so.6".into()],
            only: true,
            reached: true,
            recorded: 10_000_000_000,
            unreached,
        }
    }

    fn check(unreached: Vec<UnreachedProgram>, grade: Grade, reported: Option<&str>) {
        let mut quality = quality(&[(StackEnd::Root, 100)], 0);
        quality.sampled_by = SampledBy::Allocations;
        quality.probes = Some(probed(unreached));
        let verdict = Verdict::new(&quality);
        assert_eq!(verdict.grade, grade, "{verdict}");
        assert_eq!(verdict.problems().first().map(String::as_str), reported);
    }

    #[test]
    fn programs_that_were_not_reached_are_named() {
        check(Vec::new(), Grade::Good, None);
        check(
            vec![program("brief", 1, 99_000_000, None)],
            Grade::Good,
            None,
        );
        check(
            vec![program("tool", 1, 100_000_000, None)],
            Grade::Good,
            Some(
                "1 program does not use the probed libc.so.6, so its allocations are not recorded: \
                 tool (ran 100 ms)",
            ),
        );
        let other = "/opt/lib/libc.so.6";
        check(
            vec![
                program("web", 1, 120_000_000_000, Some(other)),
                program("tool", 3, 1_234_000_000, None),
                program("c", 1, 500_000_000, None),
                program("d", 1, 400_000_000, None),
                program("e", 1, 300_000_000, None),
            ],
            Grade::Fair,
            Some(
                "5 programs do not use the probed libc.so.6, so their allocations are not recorded: \
                 web (uses /opt/lib/libc.so.6, ran 120 s), tool (3 processes, ran 1.2 s), \
                 c (ran 500 ms), and 2 more",
            ),
        );
    }

    #[test]
    fn why_no_probe_was_hit() {
        let check = |sampled_by, edit: &dyn Fn(&mut Quality), expected: &str| {
            let mut quality = Quality {
                sampled_by,
                probes: Some(probed(Vec::new())),
                ..Quality::default()
            };
            edit(&mut quality);
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.grade, Grade::Bad);
            let reported = verdict.problems()[0].clone();
            let why = reported.strip_prefix("nothing was sampled: ");
            assert!(
                why.is_some_and(|why| why.starts_with(expected)),
                "{reported}"
            );
            assert_eq!(reported.contains("CPU time"), expected.contains("CPU time"));
        };
        use SampledBy::{Allocations, Period};
        let each = |quality: &mut Quality| quality.every_event = true;
        let no_call = "no probed function was called while it was recorded";
        check(Period, &each, no_call);
        check(Period, &|_| {}, &format!("{no_call}, or not often enough"));
        check(Allocations, &each, "no memory was allocated, or too little");
        let nowhere = |quality: &mut Quality| {
            let unreached = vec![program("tool", 1, 10_000_000_000, None)];
            let (reached, probes) = (false, probed(unreached));
            quality.probes = Some(ProbedPrograms { reached, ..probes });
        };
        let line = "no program used the probed libc.so.6; 1 program does not use the probed libc.so.6, so \
                    its allocations are not recorded: tool (ran 10.0 s)";
        check(Allocations, &nowhere, line);
        let lost = |quality: &mut Quality| quality.losses.ring_full = 7;
        check(Period, &lost, "all samples were lost");
        let others = |quality: &mut Quality| {
            quality.probes = Some(ProbedPrograms {
                only: false,
                ..probed(Vec::new())
            });
        };
        check(
            SampledBy::Rate,
            &others,
            "the target used too little CPU time",
        );
    }
}
