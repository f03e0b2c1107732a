//! Why a recording has no samples of what ran.

use super::remedy::{self, Cause};
use super::{more_samples, samples_in};
use crate::coverage::Coverage;
use crate::fallback::Fallback;
use crate::quality::Quality;
use crate::unseen::UnseenProcesses;

impl Quality {
    /// Which programs that gain privileges were not sampled, or did not gain them.
    pub(super) fn privileged_programs(&self) -> impl Iterator<Item = String> {
        let protected = self.protected_program().into_iter();
        protected.chain(self.unprivileged_program())
    }

    /// Which program could not be sampled, and what helps: the kernel keeps the events of CPUs when
    /// it ends those of the process (`setup_new_exec` in the kernel's fs/exec.c). With ptrace, it
    /// has none to end.
    fn protected_program(&self) -> Option<String> {
        let mut fallbacks = self.fallbacks.iter();
        if fallbacks.any(|fallback| matches!(fallback, Fallback::Ptrace { .. })) {
            return None;
        }
        let program = self.unseen.protected.as_deref()?;
        let by_root = self.settings.as_ref().is_some_and(|known| known.root);
        let user = if by_root { "" } else { " as root" };
        Some(format!(
            "{program} is not sampled: it gains privileges (setuid, setgid or file capabilities) or its file \
             may not be read; record all CPUs{user} (-a)"
        ))
    }

    /// Which program ran without the privileges of its file, and what helps.
    pub(super) fn unprivileged_program(&self) -> Option<String> {
        let program = self.unseen.unprivileged.as_deref()?;
        let by_root = self.settings.as_ref().is_some_and(|known| known.root);
        let remedy = match by_root {
            true => "give prof CAP_SYS_PTRACE",
            false => "record as root",
        };
        Some(format!(
            "{program} ran without the privileges of its file (setuid, setgid or file capabilities), \
             because prof traced it (ptrace); {remedy}"
        ))
    }

    /// How many threads did work that is enough for samples, but each of them too little.
    fn short_threads(&self) -> Option<String> {
        let Coverage { threads, used, .. } = Coverage::total(&self.coverage);
        let by_clock = self.settings.as_ref().is_some_and(|known| known.by_clock);
        let is_enough = by_clock && samples_in(used, self) > 0 && self.losses.samples() == 0;
        (is_enough && threads > 1)
            .then(|| format!("each of the {threads} threads used too little CPU time"))
    }

    /// Why there are no samples, and the remedy.
    pub fn why_no_samples(&self) -> String {
        let unseen = &self.unseen;
        if unseen.never_enabled {
            return "the recording ended before sampling was enabled (--delay, --control)"
                .to_owned();
        }
        let known = stopped(unseen).or_else(|| self.protected_program());
        let known = known.or_else(|| left_running(unseen));
        let known = known.or_else(|| older_children(unseen));
        let known = known.or_else(|| self.why_probes_were_not_hit());
        if let (None, Some(short)) = (&known, self.short_threads()) {
            return format!("{short}{}", remedy::ending(Cause::FewSamples, self));
        }
        known.unwrap_or_else(|| {
            let by_clock = self.settings.as_ref().is_some_and(|known| known.by_clock);
            let (why, or_waits) = match (self.losses.samples(), self.every_event) {
                (0, true) if self.waits.is_some_and(|waits| waits.waits == 0) => {
                    return "no thread waited; leave out --off-cpu to see what runs".to_owned();
                }
                (0, true) => ("the event did not happen", ""),
                (0, false) if by_clock && self.waits.is_none() => (
                    "the target used too little CPU time",
                    "; to see where it waits, record with --wall",
                ),
                (0, false) => (
                    "the target used too little CPU time, or the event did not happen",
                    "",
                ),
                // The losses have lines of their own, with remedies.
                _ => return "all samples were lost".to_owned(),
            };
            format!("{why}; {}{or_waits}", more_samples(self))
        })
    }
}

/// Which process was stopped, and the remedy.
fn stopped(unseen: &UnseenProcesses) -> Option<String> {
    let pid = unseen.stopped?;
    Some(format!(
        "process {pid} is stopped, by a signal or a debugger; `kill -CONT {pid}` lets it run on"
    ))
}

/// How many processes the command left running when it ended, and the remedy.
pub(super) fn left_running(unseen: &UnseenProcesses) -> Option<String> {
    let (processes, them) = match unseen.left_running {
        0 => return None,
        1 => ("1 process".to_owned(), "it"),
        more => (format!("{more} processes"), "them"),
    };
    Some(format!(
        "the command ended and left {processes} running, and prof records until the command ends; start \
         {them} in the foreground, or record {them} with -p PID"
    ))
}

/// How many children of the requested processes ran without being sampled, and the remedy.
pub(super) fn older_children(unseen: &UnseenProcesses) -> Option<String> {
    let (children, them) = match unseen.older_children {
        0 => return None,
        1 => ("a child".to_owned(), "it"),
        more => (format!("{more} children"), "them"),
    };
    Some(format!(
        "the target has {children} that already ran, and only those that start later are sampled; \
         record {them}, too (--subprocesses)"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quality::SampledBy;
    use crate::settings::RecordingSettings;
    use crate::verdict::Verdict;

    #[test]
    fn a_stopped_process_did_not_use_too_little_time() {
        let unseen = UnseenProcesses {
            stopped: Some(7),
            ..UnseenProcesses::default()
        };
        let quality = Quality {
            unseen,
            ..Quality::default()
        };
        let expected = "process 7 is stopped, by a signal or a debugger; `kill -CONT 7` lets it \
                        run on";
        assert_eq!(quality.why_no_samples(), expected);
    }

    #[test]
    fn why_there_are_no_samples() {
        let check = |protected: Option<&str>, left_running, expected: &str| {
            let unseen = UnseenProcesses {
                protected: protected.map(Into::into),
                left_running,
                ..UnseenProcesses::default()
            };
            let why = Quality {
                unseen,
                ..Quality::default()
            }
            .why_no_samples();
            assert!(why.contains(expected), "{why}");
        };
        check(None, 0, "too little CPU time");
        check(None, 1, "left 1 process running");
        check(None, 2, "record them with -p PID");
        let mut idle = Quality::default();
        idle.unseen.older_children = 2;
        let why = idle.why_no_samples();
        assert!(
            why.starts_with("the target has 2 children that already ran"),
            "{why}"
        );
        let mut delayed = Quality::default();
        delayed.unseen.never_enabled = true;
        let why = delayed.why_no_samples();
        assert!(
            why.ends_with("before sampling was enabled (--delay, --control)"),
            "{why}"
        );
        check(Some("sudo"), 1, "sudo is not sampled: it gains privileges");
        let mut by_ptrace = Quality::default();
        by_ptrace.unseen.protected = Some("sudo".into());
        by_ptrace.fallbacks.push(Fallback::Ptrace {
            reason: None,
            hertz: 999,
        });
        let reported = Verdict::new(&by_ptrace).to_string();
        assert!(!reported.contains("not sampled"), "{reported}");
        let mut traced = Quality::default();
        traced.unseen.unprivileged = Some("id".into());
        let reported = Verdict::new(&traced).to_string();
        assert!(
            reported.contains("\n  - id ran without the privileges"),
            "{reported}"
        );
        let mut quality = Quality::default();
        quality.unseen.protected = Some("sudo".into());
        let mut check_remedy = |root, expected: &str| {
            quality.settings = Some(RecordingSettings {
                root,
                ..RecordingSettings::default()
            });
            let why = quality.why_no_samples();
            assert!(why.ends_with(expected), "{why}");
        };
        check_remedy(false, "; record all CPUs as root (-a)");
        check_remedy(true, "; record all CPUs (-a)");
    }

    #[test]
    fn many_threads_that_are_too_short_for_samples_did_not_use_too_little_together() {
        let check = |threads, used, expected: &str| {
            let settings = RecordingSettings {
                rate: Some(5),
                by_clock: true,
                max_rate: 100_000,
                ..RecordingSettings::default()
            };
            let why = Quality {
                settings: Some(settings),
                coverage: vec![Coverage {
                    threads,
                    used,
                    ..Coverage::default()
                }],
                ..Quality::default()
            }
            .why_no_samples();
            assert!(why.starts_with(expected), "{why}");
        };
        let each = "each of the 961 threads used too little CPU time; use a higher rate (-F)";
        check(961, 1_500_000_000, each);
        let all = "the target used too little CPU time; record for longer, or use a higher rate \
                   (-F); to see where it waits, record with --wall";
        check(961, 199_000_000, all);
        check(1, 1_500_000_000, all);
    }

    #[test]
    fn the_highest_rate_gets_no_advice_to_raise_it() {
        let at = |rate| {
            let settings = RecordingSettings {
                rate: Some(rate),
                max_rate: 100_000,
                ..RecordingSettings::default()
            };
            Quality {
                settings: Some(settings),
                ..Quality::default()
            }
        };
        let check = |quality: Quality, expected: &str| {
            let why = quality.why_no_samples();
            assert!(why.ends_with(expected), "{why}");
        };
        check(at(999), "; record for longer, or use a higher rate (-F)");
        check(at(100_000), "the event did not happen; record for longer");
        let mut every = at(999);
        every.every_event = true;
        every.sampled_by = SampledBy::Period;
        assert_eq!(
            every.why_no_samples(),
            "the event did not happen; record for longer"
        );
        let mut lost = at(999);
        lost.losses.ring_full = 3;
        check(lost, "all samples were lost");
    }
}
