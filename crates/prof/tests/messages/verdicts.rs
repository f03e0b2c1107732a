//! The texts of verdicts and fallbacks: of a good recording, and of recordings with one problem
//! each.

use prof_model::{
    CallGraphSettings, Coverage, Fallback, Losses, MissingCounts, ProbedPrograms, Quality,
    RecordingSettings, RefusedPart, SampledBy, StackEnd, StackWeights, UnreachedProgram, Unsampled,
    UnsampledCode, UnseenProcesses, UnwindFailure, Verdict, WaitCoverage,
};

/// A change to a good recording, with what it means.
type Change = (&'static str, fn(&mut Quality));

/// A change to the settings of a recording, with its meaning.
type Setting = (&'static str, fn(&mut RecordingSettings));

/// All verdicts, each below its cause, and all fallbacks.
pub(crate) fn all() -> String {
    let mut text = String::new();
    let mut add = |of: &str, line: &dyn std::fmt::Display| text += &format!("[{of}]\n{line}\n\n");
    add("nothing", &Verdict::new(&Quality::default()));
    for (of, change) in CHANGES {
        let mut quality = good();
        change(&mut quality);
        add(of, &Verdict::new(&quality));
    }
    for end in StackEnd::ALL {
        for (by, settings) in SETTINGS {
            let mut quality = good();
            quality.stacks.insert(end, 100);
            quality.failures.push(UnwindFailure {
                end,
                module: "libx.so".into(),
                offset: 0x1234,
                count: 60,
            });
            settings(quality.settings.get_or_insert_default());
            add(&format!("{end:?}, {by}"), &Verdict::new(&quality));
        }
    }
    for fallback in fallbacks() {
        add("fallback", &fallback);
    }
    text.truncate(text.trim_end().len() + 1);
    text
}

/// A recording by root with everything that helps in force.
fn good() -> Quality {
    Quality {
        samples: 1000,
        stacks: [(StackEnd::Root, 1000)].into(),
        settings: Some(RecordingSettings {
            call_graph: CallGraphSettings::Dump(CallGraphSettings::LARGEST_DUMP),
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
        }),
        ..Quality::default()
    }
}

const SETTINGS: &[Setting] = &[
    ("all in force", |_| ()),
    ("8 KiB of each stack", |it| {
        it.call_graph = CallGraphSettings::Dump(8192);
    }),
    ("frame pointers", |it| {
        it.call_graph = CallGraphSettings::FramePointers;
    }),
    ("dumps by prof, not unwound", |it| it.unwound = false),
    ("dumps by perf", |it| {
        (it.unwound, it.by_other_tool) = (false, true)
    }),
    ("cycles as a plain user", |it| {
        (it.by_clock, it.with_clock) = (false, false);
        (it.root, it.may_raise_priority) = (false, false);
    }),
];

const CHANGES: &[Change] = &[
    ("good", |_| ()),
    ("stacks read from live memory", |it| it.remote_read = 20),
    ("stacks without their middle", |it| it.without_middle = 5),
    ("stacks of processes that deny access", |it| {
        it.settings.get_or_insert_default().root = false;
        it.stacks.insert(StackEnd::TruncatedDump, 100);
        let denied = MissingCounts {
            denied: 100,
            ..MissingCounts::default()
        };
        it.missing.insert(StackEnd::TruncatedDump, denied);
    }),
    ("stacks of processes that had ended", |it| {
        it.stacks.insert(StackEnd::UnreadableMemory, 100);
        let ended = MissingCounts {
            ended: 100,
            ..MissingCounts::default()
        };
        it.missing.insert(StackEnd::UnreadableMemory, ended);
    }),
    ("3 samples", |it| {
        it.samples = 3;
        it.stacks = [(StackEnd::Root, 3)].into();
    }),
    ("1 sample by period", |it| {
        it.samples = 1;
        it.stacks = [(StackEnd::Root, 1)].into();
        it.sampled_by = SampledBy::Period;
    }),
    ("1 sample of allocations", |it| {
        it.samples = 1;
        it.stacks = [(StackEnd::Root, 1)].into();
        it.sampled_by = SampledBy::Allocations;
    }),
    ("no sample of an event that happens rarely", |it| {
        it.samples = 0;
        it.every_event = true;
        it.sampled_by = SampledBy::Period;
    }),
    ("no sample of a target that waits", |it| it.samples = 0),
    ("no wait", |it| {
        it.samples = 0;
        it.every_event = true;
        it.waits = Some(WaitCoverage::default());
    }),
    ("no sample, all lost", |it| {
        it.samples = 0;
        it.losses.ring_full = 5;
    }),
    ("no sample, a protected program", |it| {
        it.samples = 0;
        it.unseen.protected = Some("sudo".into());
    }),
    ("no sample, a process left running", |it| {
        it.samples = 0;
        it.unseen.left_running = 1;
    }),
    ("no sample, processes left running", |it| {
        it.samples = 0;
        it.unseen.left_running = 3;
    }),
    ("3 samples, a process left running", |it| {
        it.samples = 3;
        it.stacks = [(StackEnd::Root, 3)].into();
        it.unseen.left_running = 1;
    }),
    ("no sample, a child of the target ran before", |it| {
        it.samples = 0;
        it.unseen.older_children = 1;
    }),
    ("3 samples, children of the target ran before", |it| {
        it.samples = 3;
        it.stacks = [(StackEnd::Root, 3)].into();
        it.unseen.older_children = 4;
    }),
    ("processes left running", |it| it.unseen.left_running = 3),
    ("no sample, ended before the delay", |it| {
        it.samples = 0;
        it.unseen.never_enabled = true;
    }),
    ("no sample of many short threads", |it| {
        it.samples = 0;
        it.coverage = covered(&[("server", 2_000_000_000, 0)]);
    }),
    ("no sample, probes in other programs", |it| {
        it.samples = 0;
        it.probes = Some(probes(1));
    }),
    ("rings full", |it| it.losses.ring_full = 1),
    ("rings too small by far", |it| it.losses.ring_full = 800),
    ("rings full, by period", |it| {
        it.losses.ring_full = 800;
        it.sampled_by = SampledBy::Period;
    }),
    ("rings full, allocations", |it| {
        it.losses.ring_full = 800;
        it.sampled_by = SampledBy::Allocations;
    }),
    ("queue full", |it| it.losses.queue_full = 2),
    ("stacks cut", |it| it.losses.cut_stacks = 2),
    ("throttled once", |it| it.losses.throttled = 1),
    ("throttled", |it| it.losses.throttled = 7),
    ("malformed samples", |it| it.losses.malformed = 1),
    ("garbage in a ring", |it| it.losses.corrupt_rings = 1),
    ("garbage in rings", |it| it.losses.corrupt_rings = 2),
    ("cut off", |it| it.losses.truncated_file = true),
    ("followed by another", |it| {
        it.losses.unread_recording = true
    }),
    ("a bomb", |it| {
        it.losses = Losses {
            truncated_file: true,
            too_large_file: true,
            ..Losses::default()
        };
    }),
    ("short threads", |it| {
        it.coverage = covered(&[("server", 90_000, 90_000), ("worker", 10_000, 5_000)]);
    }),
    ("threads without samples", |it| {
        it.coverage = covered(&[("server", 90_000, 90_000), ("worker", 10_000, 0)]);
    }),
    ("threads whose samples were lost", |it| {
        it.coverage = covered(&[("server", 90_000, 90_000), ("worker", 10_000, 0)]);
        it.losses.ring_full = 100;
    }),
    ("throttled threads", |it| {
        it.coverage = covered(&[("server", 90_000, 90_000), ("worker", 10_000, 0)]);
        it.losses.throttled = 1;
    }),
    ("threads with too much", |it| {
        it.coverage = covered(&[("server", 90_000, 150_000)]);
    }),
    ("late samples of a long thread", |it| {
        it.coverage = covered(&[("server", 90_000, 80_000)]);
        it.coverage[0].threads = 1;
    }),
    ("kernel code is not sampled", |it| {
        it.coverage = covered(&[("server", 90_000, 40_000)]);
        it.coverage[0].unseen = 50_000;
        it.unsampled = Some(Unsampled {
            code: UnsampledCode::Kernel,
            cause: "perf_event_paranoid=2".into(),
        });
    }),
    ("user code is not sampled", |it| {
        it.coverage = covered(&[("server", 90_000, 40_000)]);
        it.coverage[0].unseen = 50_000;
        it.unsampled = Some(Unsampled {
            code: UnsampledCode::User,
            cause: "-e cycles:k".into(),
        });
    }),
    ("some code is not sampled", |it| {
        it.coverage = covered(&[("server", 90_000, 40_000)]);
        it.coverage[0].unseen = 50_000;
    }),
    ("waits", |it| {
        it.waits = Some(WaitCoverage {
            waits: 100,
            seen: 60,
            time: 1000,
            seen_time: 800,
            placed_time: 100,
            partial_time: 0,
            ready_time: 0,
        });
    }),
    ("a long wait without a whole stack", |it| {
        it.stacks.insert(StackEnd::UnreadableMemory, 1);
        it.waits = Some(WaitCoverage {
            waits: 100,
            seen: 100,
            time: 1000,
            seen_time: 1000,
            placed_time: 0,
            partial_time: 900,
            ready_time: 0,
        });
    }),
    ("a large allocation without a whole stack", |it| {
        it.stacks.insert(StackEnd::NoUnwindInfo, 1);
        it.sampled_by = SampledBy::Allocations;
        it.weights = StackWeights {
            all: 1000,
            partial: 900,
        };
    }),
    ("a busy machine", |it| {
        it.waits = Some(WaitCoverage {
            waits: 100,
            seen: 100,
            time: 1_000_000_000,
            seen_time: 1_000_000_000,
            placed_time: 0,
            partial_time: 0,
            ready_time: 600_000_000,
        });
    }),
    ("a program without probes", |it| it.probes = Some(probes(1))),
    ("programs without probes", |it| it.probes = Some(probes(2))),
    ("a protected program", |it| {
        it.unseen = UnseenProcesses {
            protected: Some("sudo".into()),
            ..UnseenProcesses::default()
        };
    }),
    ("a protected program, as a plain user", |it| {
        it.unseen.protected = Some("sudo".into());
        it.settings.get_or_insert_default().root = false;
    }),
    ("a program without its privileges", |it| {
        it.unseen.unprivileged = Some("sudo".into());
    }),
    ("a program without its privileges, as a plain user", |it| {
        it.unseen.unprivileged = Some("sudo".into());
        it.settings.get_or_insert_default().root = false;
    }),
    ("a size limit", |it| it.size_limit = Some(1 << 20)),
    ("a CPU that changed", |it| it.changed_cpus = vec![1]),
    ("CPUs that changed", |it| it.changed_cpus = vec![1, 2, 3]),
];

/// 500 threads of each name, with their CPU time and its sampled part.
fn covered(names: &[(&str, u64, u64)]) -> Vec<Coverage> {
    let of = |&(name, used, sampled): &(&str, u64, u64)| Coverage {
        process: "server".into(),
        thread: name.into(),
        threads: 500,
        executed: 0,
        used,
        unseen: 0,
        sampled,
        periods: sampled,
        estimated: 0,
        samples: sampled / 1000,
    };
    names.iter().map(of).collect()
}

/// Probes of libc's functions, which this many programs do not use.
fn probes(programs: usize) -> ProbedPrograms {
    let programs = ["static", "container"].iter().take(programs);
    ProbedPrograms {
        files: vec!["libc.so.6".into()],
        only: true,
        reached: false,
        recorded: 1_000_000_000,
        unreached: programs
            .zip([None, Some("/other/libc.so.6".into())])
            .map(|(&program, instead)| UnreachedProgram {
                program: program.into(),
                processes: 1,
                ran: 900_000_000,
                instead,
            })
            .collect(),
    }
}

fn fallbacks() -> Vec<Fallback> {
    let (asked, used) = ("cycles".to_owned(), "cpu-clock".to_owned());
    let (asked_too, used_too) = (asked.clone(), used.clone());
    let event = asked.clone();
    let reason = "the seccomp filter of this container refuses it".to_owned();
    vec![
        Fallback::Event { asked, used },
        Fallback::VirtualMachine {
            asked: asked_too,
            used: used_too,
        },
        Fallback::UserOnly { paranoid: 2 },
        Fallback::Refused {
            part: RefusedPart::CallChain,
        },
        Fallback::Refused {
            part: RefusedPart::BuildIds,
        },
        Fallback::Rate {
            asked: 99_999,
            used: 50_000,
        },
        Fallback::SampleCost {
            asked: 99_999,
            used: 30_000,
            cost: 8_000,
        },
        Fallback::NoChildren {
            event: event.clone(),
        },
        Fallback::Rings {
            asked: 4 << 20,
            used: 1 << 20,
        },
        Fallback::Ptrace {
            reason: Some(reason),
            hertz: 999,
        },
        Fallback::Ptrace {
            reason: None,
            hertz: 999,
        },
        Fallback::NoLastBranches { event },
        Fallback::BlockedThreads { paranoid: 2 },
        Fallback::StackDump {
            asked: 65_528,
            used: 8_192,
        },
    ]
}
