//! What would improve a recording.

use std::fmt;

use super::room::{
    could_dump_more, could_hold_more, does_rate_limit_dumps, is_dump_limited_by_ring,
    ring_for_largest_dumps, ring_for_more_samples,
};
use crate::fallback::Fallback;
use crate::module::{Module, ModuleKind};
use crate::quality::{Quality, SampledBy, UnwindFailure};
use crate::settings::{CallGraphSettings, RecordingSettings};
use crate::stack::StackEnd;

/// Why something is missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Stacks ended for this reason.
    Stack(StackEnd),
    /// The ring buffers were full.
    FullRings,
    /// Unwinding was too slow.
    SlowUnwinding,
    /// The kernel throttled the event.
    Throttled,
    /// There are few samples, of all threads or of some.
    FewSamples,
    /// Frames of an interpreter were read too late.
    LateInterpreter,
}

/// What to do about a problem. A remedy that was in force or is impossible is not offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Remedy {
    CopyMore,
    /// For recordings of other tools.
    RecordWithProf,
    /// For prof's own.
    UnwindWhileRecording,
    CallGraphDwarf,
    CpuClock,
    LargerRings(u64),
    FewerSamples(SampledBy),
    MoreSamples(SampledBy),
    /// For plain users on busy machines.
    Priority,
    Root,
    /// For frames of interpreters.
    RootOrStops,
    UnwindTables,
    /// For the code of a Java VM.
    JavaFramePointers,
    /// For code that PHP has PCRE make of regular expressions.
    NoPcreJit,
    /// For virtual threads of Java.
    PlatformThreads,
    /// For C code that Go calls.
    CFramePointers,
    GoTables,
    ReportIt,
}

/// The most useful remedy, if one helps.
pub(super) fn remedy(cause: Cause, quality: &Quality) -> Option<Remedy> {
    let helps = |remedy: &Remedy| remedy.helps(cause, quality);
    candidates(cause, quality).into_iter().find(helps)
}

/// The remedy as the end of a sentence; empty if there is none.
pub(super) fn ending(cause: Cause, quality: &Quality) -> String {
    remedy(cause, quality).map_or_else(String::new, |remedy| format!("; {remedy}"))
}

/// What may help, most useful first.
fn candidates(cause: Cause, quality: &Quality) -> Vec<Remedy> {
    let fewer = Remedy::FewerSamples(quality.sampled_by);
    match cause {
        // Root may read all processes.
        Cause::Stack(_) if is_denied(cause, quality) && Remedy::Root.helps(cause, quality) => {
            vec![Remedy::Root]
        }
        Cause::Stack(StackEnd::TruncatedDump | StackEnd::Stale) => vec![
            Remedy::CopyMore,
            Remedy::LargerRings(ring_for_largest_dumps(quality)),
            Remedy::RecordWithProf,
            Remedy::UnwindWhileRecording,
            fewer,
            Remedy::Root,
        ],
        Cause::Stack(StackEnd::FramePointersEnded) => {
            vec![
                Remedy::JavaFramePointers,
                Remedy::NoPcreJit,
                Remedy::CallGraphDwarf,
                Remedy::UnwindTables,
            ]
        }
        Cause::Stack(StackEnd::SkippedCaller) => vec![Remedy::CallGraphDwarf],
        Cause::Stack(StackEnd::NoUnwindInfo) => {
            vec![
                Remedy::JavaFramePointers,
                Remedy::NoPcreJit,
                Remedy::UnwindTables,
            ]
        }
        Cause::Stack(StackEnd::HiddenRegisters) => vec![Remedy::Root],
        Cause::Stack(StackEnd::CalledFromGo) => vec![Remedy::CFramePointers],
        Cause::Stack(StackEnd::GoWithoutTables) => vec![Remedy::GoTables],
        Cause::Stack(StackEnd::OnJavaHeap) => vec![Remedy::PlatformThreads],
        // prof opens files while their programs run.
        Cause::Stack(StackEnd::NoFile) => {
            vec![Remedy::RecordWithProf, Remedy::UnwindWhileRecording]
        }
        Cause::Stack(StackEnd::StaleRegisters) => vec![Remedy::CpuClock],
        // No bug: the process has ended, or the kernel's copy ended at a page that was not in
        // memory, or it is of another stack (of a signal handler) only.
        Cause::Stack(StackEnd::UnreadableMemory) => {
            vec![Remedy::RecordWithProf, Remedy::UnwindWhileRecording]
        }
        Cause::Stack(StackEnd::NotCode | StackEnd::Loop) => vec![Remedy::ReportIt],
        Cause::Stack(_) => Vec::new(),
        Cause::FullRings => vec![
            Remedy::LargerRings(ring_for_more_samples(quality)),
            Remedy::Priority,
            fewer,
            Remedy::Root,
        ],
        Cause::SlowUnwinding | Cause::Throttled => vec![fewer],
        Cause::FewSamples => vec![Remedy::MoreSamples(quality.sampled_by)],
        Cause::LateInterpreter => vec![Remedy::Priority, Remedy::RootOrStops],
    }
}

impl Remedy {
    fn helps(self, cause: Cause, quality: &Quality) -> bool {
        let known = quality.settings.as_ref();
        let is = |holds: fn(&RecordingSettings) -> bool| known.is_some_and(holds);
        match self {
            // Larger dumps fill the rings sooner.
            Self::CopyMore => {
                !is_far(cause, quality) && quality.losses.ring_full == 0 && is(could_dump_more)
            }
            Self::RecordWithProf => is(|known| known.by_other_tool && lacks_unwinding(known)),
            Self::UnwindWhileRecording => is(lacks_unwinding),
            Self::CallGraphDwarf => {
                is(|known| !matches!(known.call_graph, CallGraphSettings::Dump(_)))
            }
            Self::CpuClock => is(|known| !known.by_clock && !known.with_clock),
            Self::LargerRings(bytes) if matches!(cause, Cause::Stack(_)) => {
                !is_far(cause, quality)
                    && is(is_dump_limited_by_ring)
                    && known.is_some_and(|known| bytes > known.ring)
            }
            // Rings that lose many samples are always full: larger ones only delay that.
            Self::LargerRings(_) => quality.lost_share() < 0.1 && is(could_hold_more),
            // Many samples share the rings, which makes each dump smaller.
            Self::FewerSamples(_) if matches!(cause, Cause::Stack(_)) => {
                !is_far(cause, quality) && is(does_rate_limit_dumps) && is(is_dump_limited_by_ring)
            }
            Self::FewerSamples(SampledBy::Rate) => {
                known.is_none_or(|known| known.rate.is_none_or(|rate| rate > 1))
            }
            Self::FewerSamples(_) => true,
            Self::MoreSamples(by) => !has_too_many_samples(quality) && could_be_more(by, quality),
            // Only root's threads run before all others, but they read far memory late, too.
            Self::Root => {
                let reads_late = is_far(cause, quality) && !is_denied(cause, quality);
                !reads_late && is(|known| !known.root)
            }
            Self::Priority => is(|known| !known.root && !known.may_raise_priority),
            Self::RootOrStops => is(|known| !known.root),
            Self::UnwindTables => !is_made_at_run_time(cause, quality),
            Self::JavaFramePointers => quality.java && is_made_at_run_time(cause, quality),
            Self::NoPcreJit => quality.php.all() > 0 && fails_in(cause, quality, "//anon"),
            Self::PlatformThreads | Self::CFramePointers | Self::GoTables => true,
            Self::ReportIt => is(|known| known.unwound),
        }
    }
}

/// Whether most stacks that end for this reason need memory that no copy of them could hold.
fn is_far(cause: Cause, quality: &Quality) -> bool {
    matches!(cause, Cause::Stack(end) if quality.is_mostly(end, |missing| missing.far))
}

/// Whether most stacks that end for this reason are of processes that prof may not read.
fn is_denied(cause: Cause, quality: &Quality) -> bool {
    matches!(cause, Cause::Stack(end) if quality.is_mostly(end, |missing| missing.denied))
}

/// The place where most stacks end for this reason.
fn place(cause: Cause, quality: &Quality) -> Option<&UnwindFailure> {
    let mut failures = quality.failures.iter();
    failures.find(|failure| cause == Cause::Stack(failure.end))
}

fn fails_in(cause: Cause, quality: &Quality, module: &str) -> bool {
    place(cause, quality).is_some_and(|place| place.module == module)
}

/// Whether most stacks that end for this reason stop in code without a file.
fn is_made_at_run_time(cause: Cause, quality: &Quality) -> bool {
    let place = place(cause, quality);
    let module = |place: &UnwindFailure| Module::from_path(&place.module).kind;
    place.is_some_and(|place| module(place) == ModuleKind::Anonymous)
}

fn lacks_unwinding(known: &RecordingSettings) -> bool {
    !known.unwound && known.call_graph != CallGraphSettings::None
}

/// With too many samples, the remedy cannot be to take more.
fn has_too_many_samples(quality: &Quality) -> bool {
    let losses = quality.losses;
    let counts = [
        losses.ring_full,
        losses.queue_full,
        losses.cut_stacks,
        losses.throttled,
    ];
    // Fewer samples leave room for larger copies of stacks.
    let is_fewer = |(end, _)| {
        let remedy = remedy(Cause::Stack(end), quality);
        matches!(remedy, Some(Remedy::FewerSamples(_)))
    };
    let mut partial = quality.partial_stacks().into_iter();
    counts.iter().any(|&count| count > 0) || partial.any(is_fewer)
}

fn could_be_more(by: SampledBy, quality: &Quality) -> bool {
    let known = quality.settings.as_ref();
    let rates = known.and_then(|known| Some((known.rate?, known.max_rate)));
    match by {
        SampledBy::Rate => {
            let is_limit = |fallback| matches!(fallback, &Fallback::SampleCost { .. });
            let is_highest = rates.is_some_and(|(rate, most)| most > 0 && rate >= most);
            !is_highest && !quality.fallbacks.iter().any(is_limit)
        }
        SampledBy::Period | SampledBy::Allocations => !quality.every_event,
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CopyMore => write!(
                f,
                "copy more of each stack (--call-graph dwarf,{})",
                CallGraphSettings::LARGEST_DUMP
            ),
            Self::RecordWithProf => f.write_str("record with prof"),
            Self::UnwindWhileRecording => f.write_str("record without --no-unwind"),
            Self::CallGraphDwarf => f.write_str("use --call-graph dwarf"),
            Self::CpuClock => f.write_str("use -e cpu-clock, which has hardly any such stacks"),
            Self::LargerRings(bytes) => {
                write!(f, "use larger ring buffers (-m {}K)", bytes / 1024)
            }
            Self::FewerSamples(by) => write!(f, "use {}", by.fewer()),
            Self::MoreSamples(by) => write!(f, "use {}", by.more()),
            Self::Priority => f.write_str(
                "let prof run before other programs (sudo setcap cap_sys_nice+ep $(command -v \
                 prof)), or record as root",
            ),
            Self::Root => f.write_str("record as root"),
            Self::RootOrStops => f.write_str("record as root, or with --sampler ptrace"),
            Self::UnwindTables => f.write_str(
                // Other languages have no such flags.
                "build C and C++ with unwind tables (-fasynchronous-unwind-tables) or frame \
                 pointers (-fno-omit-frame-pointer), and give assembly .cfi_ directives",
            ),
            Self::JavaFramePointers => {
                f.write_str("have the Java VM keep frame pointers (-XX:+PreserveFramePointer)")
            }
            Self::NoPcreJit => f.write_str(
                "run PHP without code for regular expressions, which keeps no frames (php -d \
                 pcre.jit=0)",
            ),
            Self::PlatformThreads => f.write_str(
                "have the Java VM run each virtual thread as a platform thread \
                 (-XX:+UnlockExperimentalVMOptions -XX:-VMContinuations)",
            ),
            Self::CFramePointers => f.write_str(
                "build the C code with frame pointers (CGO_CFLAGS=-fno-omit-frame-pointer)",
            ),
            Self::GoTables => f.write_str(
                "build it without -ldflags=-s or -w, and do not strip it (both remove .debug_frame)",
            ),
            Self::ReportIt => f.write_str("to report this bug, record with --no-unwind"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interpreted::MissingFrames;
    use crate::missing::MissingCounts;
    use crate::verdict::Verdict;

    /// As root by default.
    fn usual() -> RecordingSettings {
        RecordingSettings {
            call_graph: CallGraphSettings::Dump(65_528),
            unwound: true,
            by_clock: true,
            with_clock: true,
            rate: Some(999),
            max_rate: 100_000,
            ring: 4 << 20,
            largest_ring: 1 << 30,
            root: true,
            may_raise_priority: true,
            by_other_tool: false,
        }
    }

    /// A thousand samples, some of whose stacks ended so.
    fn recorded(settings: RecordingSettings, ends: &[StackEnd]) -> Quality {
        let mut quality = Quality {
            samples: 1000,
            settings: Some(settings),
            ..Quality::default()
        };
        quality.stacks.insert(StackEnd::Root, 1000);
        for &end in ends {
            quality.stacks.insert(end, 100);
        }
        quality
    }

    /// Each problem ends in its expected remedy, or in none.
    fn check(quality: &Quality, expected: &[&str]) {
        let verdict = Verdict::new(quality);
        let remedies: Vec<&str> = (verdict.problems().iter())
            .map(|line| line.split_once("; ").map_or("", |(_, remedy)| remedy))
            .collect();
        assert_eq!(remedies, expected, "{verdict}");
    }

    fn check_end(end: StackEnd, settings: RecordingSettings, expected: &str) {
        check(&recorded(settings, &[end]), &[expected]);
    }

    const COPY_MORE: &str = "copy more of each stack (--call-graph dwarf,65528)";
    const LOWER_RATE: &str = "use a lower rate (-F)";
    const WITH_TABLES: &str = "build C and C++ with unwind tables (-fasynchronous-unwind-tables) \
        or frame pointers (-fno-omit-frame-pointer), and give assembly .cfi_ directives";

    #[test]
    fn late_python_frames_need_root_if_they_are_many() {
        let with = |late: u64, root: bool, expected: &str| {
            let mut quality = recorded(usual(), &[]);
            if let Some(settings) = &mut quality.settings {
                settings.root = root;
            }
            quality.python.known = 1000;
            quality.python.unknown.insert(MissingFrames::Changed, late);
            check(&quality, &[expected]);
        };
        with(10, false, "");
        with(100, false, "record as root, or with --sampler ptrace");
        with(100, true, "");
    }

    #[test]
    fn plain_users_can_give_the_reader_priority() {
        let plain = RecordingSettings {
            root: false,
            may_raise_priority: false,
            largest_ring: 4 << 20,
            ..usual()
        };
        const PRIORITY: &str = "let prof run before other programs (sudo setcap cap_sys_nice+ep \
            $(command -v prof)), or record as root";
        let mut quality = recorded(plain, &[]);
        quality.losses.ring_full = 200;
        check(&quality, &[PRIORITY]);
        quality.losses.ring_full = 0;
        quality.python.known = 1000;
        quality.python.unknown.insert(MissingFrames::Changed, 200);
        check(&quality, &[PRIORITY]);
        quality.settings.get_or_insert_default().may_raise_priority = true;
        check(&quality, &["record as root, or with --sampler ptrace"]);
    }

    #[test]
    fn deep_stacks_need_larger_dumps_unless_they_are_the_largest() {
        for end in [StackEnd::TruncatedDump, StackEnd::Stale] {
            let with = |change: fn(&mut RecordingSettings), expected| {
                let mut settings = usual();
                change(&mut settings);
                check_end(end, settings, expected);
            };
            with(|_| (), "");
            with(|it| it.root = false, "record as root");
            with(
                |it| it.call_graph = CallGraphSettings::Dump(8192),
                COPY_MORE,
            );
            with(|it| it.unwound = false, "record without --no-unwind");
            let by_perf = |it: &mut RecordingSettings| {
                it.unwound = false;
                it.by_other_tool = true;
            };
            with(by_perf, "record with prof");
            // A plain user at a high rate, whose rings cannot hold larger dumps.
            let fast = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(7008);
                it.rate = Some(9999);
                (it.ring, it.largest_ring, it.root) = (2 << 20, 2 << 20, false);
            };
            with(fast, LOWER_RATE);
            // A lower rate would not make them larger.
            let slow = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(16_384);
                it.rate = Some(99);
                (it.ring, it.largest_ring, it.root) = (128 << 10, 128 << 10, false);
            };
            with(slow, "record as root");
            // Rings that the user made small.
            let small = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(18_072);
                it.ring = 512 << 10;
            };
            with(small, "use larger ring buffers (-m 2048K)");
            // Stacks of stopped threads are copied as far as possible.
            let stopped = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(61_432);
                it.ring = 0;
            };
            with(stopped, "");
        }
    }

    /// Root by default; most stacks that end so lack memory for these reasons.
    fn check_missing(
        end: StackEnd,
        change: fn(&mut RecordingSettings),
        missing: MissingCounts,
        expected: &str,
    ) {
        let mut settings = usual();
        change(&mut settings);
        let mut quality = recorded(settings, &[end]);
        quality.missing.insert(end, missing);
        check(&quality, &[expected]);
    }

    #[test]
    fn what_no_copy_could_hold_needs_no_larger_copies() {
        let far = |far| MissingCounts {
            far,
            ..MissingCounts::default()
        };
        for end in [StackEnd::TruncatedDump, StackEnd::Stale] {
            let small = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(8192);
            };
            check_missing(end, small, far(50), COPY_MORE);
            check_missing(end, small, far(51), "");
            let kept = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(8192);
                it.unwound = false;
            };
            check_missing(end, kept, far(100), "record without --no-unwind");
            // Neither lower rates nor larger rings.
            let fast = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(7008);
                it.rate = Some(9999);
                (it.ring, it.largest_ring, it.root) = (2 << 20, 2 << 20, false);
            };
            check_missing(end, fast, far(0), LOWER_RATE);
            check_missing(end, fast, far(100), "");
            let small_ring = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(18_072);
                it.ring = 512 << 10;
            };
            check_missing(end, small_ring, far(100), "");
        }
    }

    #[test]
    fn only_root_reads_processes_that_deny_access() {
        let denied = MissingCounts {
            denied: 100,
            ..MissingCounts::default()
        };
        for end in [StackEnd::TruncatedDump, StackEnd::UnreadableMemory] {
            let plain = |it: &mut RecordingSettings| {
                it.call_graph = CallGraphSettings::Dump(8192);
                it.root = false;
            };
            check_missing(end, plain, denied, "record as root");
            let far = MissingCounts { far: 100, ..denied };
            check_missing(end, plain, far, "record as root");
            check_missing(end, |_| (), denied, "");
        }
        // Root may lack the capability.
        let small = |it: &mut RecordingSettings| it.call_graph = CallGraphSettings::Dump(8192);
        check_missing(StackEnd::TruncatedDump, small, denied, COPY_MORE);
    }

    #[test]
    fn why_memory_could_not_be_read_is_said() {
        let check = |end: StackEnd, (denied, ended), expected: &str| {
            let mut quality = recorded(usual(), &[end]);
            let counts = MissingCounts {
                denied,
                ended,
                ..MissingCounts::default()
            };
            quality.missing.insert(end, counts);
            let verdict = Verdict::new(&quality);
            assert_eq!(verdict.problems(), [expected]);
        };
        let deep = StackEnd::TruncatedDump;
        let line = "100 stacks (9.1 %): deeper than the copy of the stack";
        check(deep, (50, 50), line);
        check(
            deep,
            (51, 0),
            &format!("{line}, and the kernel denies access to the process"),
        );
        check(deep, (0, 51), &format!("{line}, and the process had ended"));
        let line = "100 stacks (9.1 %): stack memory could not be read";
        let unreadable = StackEnd::UnreadableMemory;
        check(
            unreadable,
            (100, 0),
            &format!("{line}, because the kernel denies access to the process"),
        );
        check(
            unreadable,
            (0, 100),
            &format!("{line}, because the process had ended"),
        );
    }

    #[test]
    fn another_stack_must_be_read_while_recording() {
        let with = |change: fn(&mut RecordingSettings), expected| {
            let mut settings = usual();
            change(&mut settings);
            check_end(StackEnd::UnreadableMemory, settings, expected);
        };
        with(|_| (), "");
        with(|it| it.unwound = false, "record without --no-unwind");
        let by_perf = |it: &mut RecordingSettings| {
            it.unwound = false;
            it.by_other_tool = true;
        };
        with(by_perf, "record with prof");
    }

    #[test]
    fn settings_in_use_are_no_remedy() {
        let fp = RecordingSettings {
            call_graph: CallGraphSettings::FramePointers,
            ..usual()
        };
        let ended = StackEnd::FramePointersEnded;
        check_end(ended, fp, "use --call-graph dwarf");
        check_end(ended, usual(), WITH_TABLES);
        check_end(StackEnd::NoUnwindInfo, usual(), WITH_TABLES);
        let cycles = RecordingSettings {
            by_clock: false,
            with_clock: false,
            ..usual()
        };
        let stale = StackEnd::StaleRegisters;
        let beside_a_clock = RecordingSettings {
            with_clock: true,
            ..cycles.clone()
        };
        check_end(
            stale,
            cycles,
            "use -e cpu-clock, which has hardly any such stacks",
        );
        check_end(stale, beside_a_clock, "");
        check_end(stale, usual(), "");
        let kept = RecordingSettings {
            unwound: false,
            ..usual()
        };
        check_end(
            StackEnd::NotCode,
            usual(),
            "to report this bug, record with --no-unwind",
        );
        check_end(StackEnd::NotCode, kept, "");
        check_end(StackEnd::FrameLimit, usual(), "");
    }

    #[test]
    fn code_made_at_run_time_has_a_remedy_if_its_runtime_has_one() {
        let check_in = |module: &str, java, expected| {
            for end in [StackEnd::NoUnwindInfo, StackEnd::FramePointersEnded] {
                let mut quality = recorded(usual(), &[end]);
                quality.java = java;
                quality.failures.push(UnwindFailure {
                    end,
                    module: module.into(),
                    offset: 0x10,
                    count: 100,
                });
                check(&quality, &[expected]);
            }
        };
        const IN_JAVA: &str = "have the Java VM keep frame pointers (-XX:+PreserveFramePointer)";
        // PHP maps its code from /dev/zero; a recording that is unwound later knows no module.
        for module in [
            "//anon",
            "/dev/zero (deleted)",
            "/anon_hugepage (deleted)",
            "",
        ] {
            check_in(module, false, "");
            check_in(module, true, IN_JAVA);
        }
        check_in("/usr/lib/libx.so", true, WITH_TABLES);
    }

    #[test]
    fn code_for_regular_expressions_of_php_can_be_left_out() {
        let check_in = |module: &str, expected: &str| {
            let mut quality = recorded(usual(), &[StackEnd::NoUnwindInfo]);
            quality.php.known = 900;
            quality.failures.push(UnwindFailure {
                end: StackEnd::NoUnwindInfo,
                module: module.into(),
                offset: 0xfe45,
                count: 100,
            });
            check(&quality, &[expected]);
            let verdict = Verdict::new(&quality).to_string();
            assert!(!verdict.contains("anon+0x"), "{verdict}");
        };
        let remedy = "run PHP without code for regular expressions, which keeps no frames (php -d \
                      pcre.jit=0)";
        check_in("//anon", remedy);
        // What PHP itself compiles.
        check_in("/dev/zero (deleted)", "");
    }

    #[test]
    fn c_that_go_calls_needs_frame_pointers() {
        let expected = "build the C code with frame pointers (CGO_CFLAGS=-fno-omit-frame-pointer)";
        check_end(StackEnd::CalledFromGo, usual(), expected);
    }

    #[test]
    fn go_keeps_its_own_tables() {
        let expected =
            "build it without -ldflags=-s or -w, and do not strip it (both remove .debug_frame)";
        check_end(StackEnd::GoWithoutTables, usual(), expected);
    }

    #[test]
    fn virtual_threads_can_have_stacks_of_their_own() {
        let expected = "have the Java VM run each virtual thread as a platform thread \
             (-XX:+UnlockExperimentalVMOptions -XX:-VMContinuations)";
        check_end(StackEnd::OnJavaHeap, usual(), expected);
    }

    #[test]
    fn rings_grow_where_they_may_and_where_that_helps() {
        let check_all = check;
        let check = |settings: RecordingSettings, lost, expected| {
            let mut quality = recorded(settings, &[]);
            quality.losses.ring_full = lost;
            check_all(&quality, &[expected]);
        };
        check(usual(), 10, "use larger ring buffers (-m 16384K)");
        check(usual(), 500, LOWER_RATE);
        let locked = RecordingSettings {
            largest_ring: 4 << 20,
            root: false,
            ..usual()
        };
        check(locked.clone(), 10, LOWER_RATE);
        let slowest = RecordingSettings {
            rate: Some(1),
            ..locked
        };
        check(slowest, 10, "record as root");
        // Larger rings would hold larger dumps, and as many.
        let fast = RecordingSettings {
            call_graph: CallGraphSettings::Dump(5592),
            rate: Some(100_000),
            ring: 16 << 20,
            ..usual()
        };
        check(fast, 10, LOWER_RATE);
        // Even the smallest dumps do not fit often enough.
        let small = RecordingSettings {
            call_graph: CallGraphSettings::Dump(4096),
            ring: 64 << 10,
            ..usual()
        };
        const FOR_DUMPS: &str = "use larger ring buffers (-m 2048K)";
        check(small.clone(), 10, FOR_DUMPS);
        // One size for both.
        let mut both = recorded(small, &[StackEnd::TruncatedDump]);
        both.losses.ring_full = 10;
        check_all(&both, &[FOR_DUMPS, FOR_DUMPS]);
        // The dumps of hits are small by default, and as small in larger rings.
        let hits = RecordingSettings {
            call_graph: CallGraphSettings::Dump(4096),
            rate: None,
            ..usual()
        };
        check(hits, 10, "use larger ring buffers (-m 16384K)");
        let tiny = RecordingSettings {
            call_graph: CallGraphSettings::FramePointers,
            ring: 4 << 10,
            ..usual()
        };
        check(tiny, 10, "use larger ring buffers (-m 4096K)");
    }

    #[test]
    fn no_advice_contradicts_other_advice() {
        let mut few = Quality {
            samples: 3,
            settings: Some(usual()),
            stacks: [(StackEnd::Root, 3)].into(),
            ..Quality::default()
        };
        check(&few, &["record for longer, or use a higher rate (-F)"]);
        few.losses.throttled = 1;
        check(&few, &["record for longer", LOWER_RATE]);
        few.losses.throttled = 0;
        // At a lower rate, the rings hold larger copies of stacks.
        few.stacks.insert(StackEnd::TruncatedDump, 1);
        few.settings = Some(RecordingSettings {
            call_graph: CallGraphSettings::Dump(7008),
            rate: Some(9999),
            ring: 2 << 20,
            largest_ring: 2 << 20,
            ..usual()
        });
        check(&few, &[LOWER_RATE, "record for longer"]);
        few.stacks.remove(&StackEnd::TruncatedDump);
        let fastest = RecordingSettings {
            rate: Some(100_000),
            ..usual()
        };
        few.settings = Some(fastest);
        check(&few, &["record for longer"]);
        // If samples cost too much, a higher -F changes nothing.
        few.settings = Some(usual());
        few.fallbacks.push(Fallback::SampleCost {
            asked: 100_000,
            used: 30_000,
            cost: 8_000,
        });
        check(&few, &["record for longer"]);
    }

    #[test]
    fn of_old_recordings_nothing_is_known() {
        let mut quality = recorded(usual(), &[StackEnd::TruncatedDump, StackEnd::NoUnwindInfo]);
        quality.settings = None;
        quality.losses.ring_full = 1;
        check(&quality, &["", WITH_TABLES, LOWER_RATE]);
    }
}
