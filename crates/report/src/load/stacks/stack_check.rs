//! Two engines' answers to the same samples, compared.

use prof_model::StackEnd;
use rustc_hash::FxHashMap;

use super::chain::Chain;
use crate::load::counts::place;
use crate::profile::{Answer, CodePlace, Difference, FrameId, Profile, StackCheck};

/// A stack as an engine has it.
#[derive(Clone, Copy, Debug)]
pub(in crate::load) struct Opinion<'a> {
    /// Lookup addresses, innermost first.
    pub(in crate::load) frames: &'a [u64],
    pub(in crate::load) end: StackEnd,
}

/// The results so far.
#[derive(Clone, Debug, Default)]
pub(in crate::load) struct StackChecks {
    check: StackCheck,
    /// By the frame whose caller is in question, and how either engine's stack ends there.
    differences: FxHashMap<(FrameId, [Option<StackEnd>; 2]), Found>,
}

/// The stacks that part in one way: how many, and the callers in the first one.
#[derive(Clone, Copy, Debug)]
struct Found {
    stacks: u64,
    callers: [Option<FrameId>; 2],
}

impl<'a> Opinion<'a> {
    pub(in crate::load) fn of(chain: &'a Chain) -> Self {
        Self {
            frames: &chain.user,
            end: chain.note.end,
        }
    }
}

impl StackChecks {
    /// Compares the opinions on one sample; `frame_of` interns the frame of an address.
    pub(in crate::load) fn compare(
        &mut self,
        prof: Opinion<'_>,
        framehop: Opinion<'_>,
        mut frame_of: impl FnMut(u64) -> FrameId,
    ) {
        let both = [prof, framehop];
        let [by_prof, by_framehop] = both.map(|opinion| opinion.end.is_whole());
        self.check.stacks += 1;
        self.check.whole_by_prof += u64::from(by_prof);
        self.check.whole_by_framehop += u64::from(by_framehop);
        let same = common(prof.frames, framehop.frames);
        let goes_on = both.map(|opinion| opinion.frames.len() > same);
        if goes_on == [false; 2] {
            if by_prof == by_framehop {
                self.check.same += 1;
                return;
            }
            self.check.same_frames += 1;
        }
        let Some(&last) = same.checked_sub(1).and_then(|at| prof.frames.get(at)) else {
            return;
        };
        let callers = both.map(|opinion| opinion.frames.get(same).copied());
        let ends = both.map(|opinion| (opinion.frames.len() == same).then_some(opinion.end));
        let key = (frame_of(last), ends);
        let found = self.differences.entry(key).or_insert_with(|| Found {
            stacks: 0,
            callers: callers.map(|caller| caller.map(&mut frame_of)),
        });
        found.stacks += 1;
    }

    pub(in crate::load) fn finish(&self, profile: &Profile) -> StackCheck {
        let place = |frame| {
            let (module, offset) = place(profile, frame);
            CodePlace { module, offset }
        };
        let mut check = self.check.clone();
        let differences = self.differences.iter();
        check
            .differences
            .extend(differences.map(|(&(frame, ends), found)| {
                let answer = |engine: usize| match (found.callers[engine], ends[engine]) {
                    (Some(caller), _) => Answer::Caller(place(caller)),
                    (None, end) => Answer::End(end.unwrap_or(StackEnd::Root)),
                };
                Difference {
                    place: place(frame),
                    prof: answer(0),
                    framehop: answer(1),
                    stacks: found.stacks,
                }
            }));
        check.sort();
        check
    }
}

/// How many frames are the same, from the innermost on.
///
/// framehop does not report which frames a signal interrupted: it takes their addresses for return
/// addresses, and looks them up one byte lower.
fn common(prof: &[u64], framehop: &[u64]) -> usize {
    prof.iter()
        .zip(framehop)
        .take_while(|&(&ours, &theirs)| ours == theirs || ours == theirs.wrapping_add(1))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::Frame;

    /// Compares, and expects (stacks, same, where they part and what each says).
    fn check(
        prof: (&[u64], StackEnd),
        framehop: (&[u64], StackEnd),
        expected: Option<(u64, Answer, Answer)>,
    ) {
        let mut profile = Profile::default();
        let mut checks = StackChecks::default();
        let opinion = |(frames, end)| Opinion { frames, end };
        checks.compare(opinion(prof), opinion(framehop), |address| {
            profile.frames.intern(Frame::Unknown(address))
        });
        let found = checks.finish(&profile);
        assert_eq!(
            (found.stacks, found.same),
            (1, u64::from(expected.is_none()))
        );
        let differences = found.differences.into_iter();
        let differences: Vec<_> = differences
            .map(|it| (it.place.offset, it.prof, it.framehop))
            .collect();
        assert_eq!(differences, Vec::from_iter(expected));
    }

    #[test]
    fn stacks_are_the_same_or_part_at_a_frame() {
        use StackEnd::{NoUnwindInfo, Root, TruncatedDump};
        let caller = |offset| {
            Answer::Caller(CodePlace {
                module: String::new(),
                offset,
            })
        };
        check((&[1, 20, 30], Root), (&[1, 20, 30], Root), None);
        // Interrupted at 20.
        check((&[1, 20, 30], Root), (&[1, 19, 30], Root), None);
        check((&[1, 20], NoUnwindInfo), (&[1, 20], TruncatedDump), None);
        let parted = (20, caller(30), Answer::End(TruncatedDump));
        check(
            (&[1, 20, 30], Root),
            (&[1, 20], TruncatedDump),
            Some(parted),
        );
        let parted = (1, caller(20), caller(40));
        check((&[1, 20], Root), (&[1, 40, 50], Root), Some(parted));
        let parted = (20, Answer::End(Root), Answer::End(NoUnwindInfo));
        check((&[1, 20], Root), (&[1, 20], NoUnwindInfo), Some(parted));
    }
}
