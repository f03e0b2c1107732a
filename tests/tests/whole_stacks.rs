//! Every stack is whole and right, whatever the program does to its stack and however it is built.

use prof_tests::{
    Compiler, Need, Program, Session, Stacks, USER_CODE, Variant, needs, starts_at_root,
};

const THREADS: Program = Program::c(&["threads.c"]);
const ASSEMBLY: Program = Program::c(&["assembly_main.c", "assembly.S"]);
const FRAMES: Program = Program::cpp(&["frames.cpp"]);
const SIGNALS: Program = Program::c(&["signals.c"]);
const SHARES: Program = Program::c(&["shares.c"]);

/// A program, its arguments, and the innermost frames of its hottest stack.
struct Case<'a> {
    program: Program,
    variant: Variant,
    arguments: &'a [&'a str],
    hottest: &'a [&'a str],
}

impl<'a> Case<'a> {
    fn new(program: Program, arguments: &'a [&'a str], hottest: &'a [&'a str]) -> Self {
        Self {
            program,
            variant: Variant::PLAIN,
            arguments,
            hottest,
        }
    }

    fn built_as(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }
}

/// Records the program's user code at 1,999 Hz: at least 99.9 % of the stacks must reach their
/// root.
#[track_caller]
fn check(case: Case<'_>) {
    let session = Session::new();
    let binary = case.program.build_as(case.variant);
    let mut command = vec![binary.as_os_str()];
    command.extend(case.arguments.iter().map(std::ffi::OsStr::new));
    let recorded = session.record(USER_CODE, &command);
    let stacks = recorded.physical_stacks();
    stacks.assert_hottest(case.hottest);
    stacks.assert_whole(0.999);
}

#[test]
fn shallow() {
    check(Case::new(SHARES, &["500"], &["main", "work", "burn_sixty"]));
}

#[test]
fn static_executables() {
    let hottest = &["main", "work", "burn_sixty"];
    check(Case::new(SHARES, &["500"], hottest).built_as(Variant::STATIC));
    check(Case::new(SHARES, &["500"], hottest).built_as(Variant::STATIC_PIE));
    check(Case::new(THREADS, &["250"], IN_A_THREAD).built_as(Variant::STATIC));
}

const IN_A_THREAD: &[&str] = &[
    "thread_main",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "pile",
    "busy",
];

#[test]
fn threads() {
    check(Case::new(THREADS, &["250"], IN_A_THREAD));
}

#[test]
fn forked_children() {
    let session = Session::new();
    let binary = Program::c(&["forks.c"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    stacks.assert_whole(0.999);
    for path in [
        &["main", "in_parent"][..],
        &["main", "child", "in_child"],
        &["main", "child", "grandchild", "in_grandchild"],
    ] {
        let share = stacks.share(|frames| frames.ends_with(&path.map_owned()));
        assert!(
            (0.25..0.42).contains(&share),
            "{path:?} has {share}:\n{stacks}"
        );
    }
}

#[test]
fn exec_after_exec() {
    check(Case::new(
        Program::c(&["execs.c"]),
        &["20", "30"],
        &["main", "until_exec"],
    ));
}

#[test]
fn short_threads() {
    let session = Session::new();
    let binary = Program::c(&["short_threads.c"]).build();
    // A thread is first sampled a whole period after its birth, so the period must be short.
    let command = [binary.to_str().unwrap(), "300"];
    let stacks = session
        .record(&["-e", "cpu-clock:u", "-F", "4999"], &command)
        .physical_stacks();
    let in_threads = stacks.with_leaves(&["sixty", "thirty", "ten"]);
    let share = in_threads.total() as f64 / stacks.total() as f64;
    assert!(share > 0.5, "{share} in the threads:\n{stacks}");
    let rooted = in_threads.share(|frames| prof_tests::is_root(&frames[0]));
    assert!(rooted >= 0.999, "{stacks}");
}

#[test]
fn callbacks_from_libc() {
    let session = Session::new();
    let binary = Program::c(&["callbacks.c"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    stacks.assert_whole(0.999);
    for (through, entry) in [("qsort", "sort"), ("bsearch", "search")] {
        let share = stacks.share(|frames| {
            frames.iter().any(|frame| frame.contains(through))
                && frames.iter().any(|frame| frame == entry)
                && frames.iter().any(|frame| frame == "main")
        });
        assert!(share > 0.2, "{share} through {through}:\n{stacks}");
    }
}

/// Signal handlers run above a frame that the kernel made; below it is the interrupted code.
#[track_caller]
fn check_handler(stack: &str) {
    let session = Session::new();
    let binary = SIGNALS.build();
    let command = [binary.to_str().unwrap(), stack, "300"];
    let stacks = session.record(USER_CODE, &command).physical_stacks();
    stacks.assert_hottest(&["handler", "in_handler"]);
    stacks.assert_whole(0.999);
    let hottest = stacks.hottest();
    let place = |name| hottest.iter().position(|frame| *frame == name);
    let order = ["main", "caller", "interrupted", "handler"].map(place);
    assert!(
        order.is_sorted() && order[0].is_some(),
        "{order:?} in {hottest:?}"
    );
}

#[test]
fn signal_handlers() {
    check_handler("normal");
}

#[test]
fn signal_handlers_on_an_alternate_stack() {
    check_handler("alternate");
}

/// The share of stacks in which the innermost function reveals another caller than the one shown.
fn with_the_other_caller(stacks: &Stacks) -> f64 {
    stacks.share(|frames| {
        let has = |name| frames.iter().any(|frame| frame == name);
        has("in_left") && has("right") || has("in_right") && has("left")
    })
}

/// Two callers raise the signal at the same depth, so the handler's stack is the same for both, and
/// the interrupted stack is read later.
#[test]
fn interrupted_stacks_of_two_moments_are_not_joined() {
    let session = Session::new();
    let binary = Program::c(&["signals.c"]).build();
    let command = [binary.to_str().unwrap(), "turns", "1000"];
    let stacks = session.record(USER_CODE, &command).physical_stacks();
    let wrong = with_the_other_caller(&stacks);
    assert!(wrong < 0.02, "{wrong}:\n{stacks}");
}

#[test]
fn frames_of_odd_shape() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let hottest = &[
        "main",
        "aligned_and_variable",
        "aligned",
        "borrowed",
        "variable",
        "leaf",
    ];
    check(Case::new(FRAMES, &["300"], hottest));
    if needs(&[Need::Tool("clang++")]) {
        check(Case::new(FRAMES.by(Compiler::Clangxx), &["300"], hottest));
    }
}

/// An array on the stack: the caller is further away than what is read at once.
#[test]
fn large_frames() {
    let session = Session::new();
    let binary = Program::c(&["large_frames.c"]).build();
    let command = [binary.to_str().unwrap(), "1000"];
    let stacks = session.record(USER_CODE, &command).physical_stacks();
    stacks.assert_whole(0.95);
    let share = |inner: &str, outer: &str| {
        stacks.share(|frames| {
            let has = |name| frames.iter().any(|frame| frame == name);
            has(inner) && has(outer)
        })
    };
    assert!(share("in_left", "left") > 0.3, "{stacks}");
    assert!(share("in_right", "right") > 0.3, "{stacks}");
    assert!(with_the_other_caller(&stacks) == 0.0, "{stacks}");
}

/// The kernel's copy ends at a page of the array that is not in memory, and nothing of the caller
/// is of the sample's moment.
#[test]
fn frames_that_are_partly_in_memory() {
    let session = Session::new();
    let binary = Program::c(&["half_used_frame.c"]).build();
    let command = |way| [binary.to_str().unwrap(), way, "1000"];
    let steady = session.record(USER_CODE, &command("steady"));
    steady.physical_stacks().assert_whole(0.95);
    let stacks = session
        .record(USER_CODE, &command("turns"))
        .physical_stacks();
    let wrong = with_the_other_caller(&stacks);
    assert!(wrong < 0.02, "{wrong}:\n{stacks}");
}

#[test]
fn exceptions() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let binary = Program::cpp(&["exceptions.cpp"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    stacks.assert_whole(0.995);
    let thrown = stacks.share(|frames| {
        frames.iter().any(|frame| frame.starts_with("_Unwind_"))
            && frames.iter().any(|frame| frame == "thrower")
            && frames.iter().any(|frame| frame == "main")
    });
    assert!(thrown > 0.3, "{thrown}:\n{stacks}");
}

/// Two libraries, the second built with these flags, which are mapped in turn.
#[track_caller]
fn check_libraries(options: &[&str], flags: &'static [&'static str]) {
    let session = Session::new();
    let loader = Program::c(&["loader.c"]).build();
    let library = |flags| Program::new(&["plugin.c"], Compiler::Gcc, flags).build();
    let a = library(&["-shared", "-fPIC", "-DNAME=a"]);
    let stacks = session.record(options, &[loader, a, library(flags)]);
    let stacks = stacks.physical_stacks();
    stacks.assert_whole(0.999);
    for inside in ["in_a", "in_b"] {
        let path = ["main", "with_library", "call", "entry", inside];
        let share = stacks.share(|frames| frames.ends_with(&path.map(String::from)));
        assert!(
            (0.4..0.55).contains(&share),
            "{share} in {inside}:\n{stacks}"
        );
    }
}

#[test]
fn libraries_that_come_and_go() {
    const PADDED: &[&str] = &["-shared", "-fPIC", "-DNAME=b", "-DPADDING"];
    check_libraries(USER_CODE, PADDED);
}

#[test]
fn libraries_of_the_same_size_that_come_and_go() {
    const SAME_SIZE: &[&str] = &["-shared", "-fPIC", "-DNAME=b"];
    check_libraries(USER_CODE, SAME_SIZE);
    check_libraries(&["--sampler", "ptrace"], SAME_SIZE);
}

#[test]
fn assembly_with_cfi() {
    check(Case::new(
        ASSEMBLY,
        &["asm_leaf", "300"],
        &["main", "run", "asm_leaf"],
    ));
    check(Case::new(
        ASSEMBLY,
        &["asm_pushes", "300"],
        &["main", "run", "asm_pushes"],
    ));
    let hottest = &["main", "run", "asm_calls", "called_back"];
    check(Case::new(ASSEMBLY, &["asm_calls", "300"], hottest));
}

#[test]
fn assembly_without_cfi() {
    check(Case::new(
        ASSEMBLY,
        &["bare_leaf", "300"],
        &["main", "run", "bare_leaf"],
    ));
    let hottest = &["main", "run", "bare_framed", "called_back"];
    check(Case::new(ASSEMBLY, &["bare_framed", "300"], hottest));
}

#[test]
fn assembly_without_cfi_or_frame_pointers_that_calls_on() {
    let hottest = &["main", "run", "bare_calls", "called_back"];
    check(Case::new(ASSEMBLY, &["bare_calls", "300"], hottest));
}

#[test]
fn frame_pointers_and_no_cfi() {
    let variant = Variant::new(
        "frame pointers only",
        &[
            "-fno-omit-frame-pointer",
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
            "-g0",
        ],
    );
    check(Case::new(SHARES, &["500"], &["main", "work", "burn_sixty"]).built_as(variant));
}

#[test]
fn cfi_in_debug_frame_only() {
    let variant = Variant::new(
        "debug_frame",
        &[
            "-fno-asynchronous-unwind-tables",
            "-fno-unwind-tables",
            "-g",
        ],
    );
    check(Case::new(SHARES, &["500"], &["main", "work", "burn_sixty"]).built_as(variant));
}

#[test]
fn no_eh_frame_hdr() {
    let variant = Variant::new("no eh_frame_hdr", &["-Wl,--no-eh-frame-hdr"]);
    check(Case::new(SHARES, &["500"], &["main", "work", "burn_sixty"]).built_as(variant));
}

#[test]
fn other_linkers_layouts() {
    let hottest = &["main", "work", "burn_sixty"];
    for (tool, flags) in [
        ("ld.lld", &["-fuse-ld=lld"][..]),
        ("ld.lld", &["-fuse-ld=lld", "-Wl,--no-rosegment"]),
        ("mold", &["-fuse-ld=mold"]),
    ] {
        if needs(&[Need::Tool(tool)]) {
            let flags = Vec::leak(flags.to_vec());
            check(Case::new(SHARES, &["300"], hottest).built_as(Variant::new("linker", flags)));
        }
    }
}

#[test]
fn coroutines_end_at_their_entry() {
    let session = Session::new();
    let binary = Program::c(&["coroutines.c"]).build();
    let recorded = session.record(USER_CODE, &[binary]);
    let stacks = recorded.physical_stacks();
    for path in [["first_entry", "in_first"], ["second_entry", "in_second"]] {
        let share = stacks.share(|frames| frames.ends_with(&path.map(String::from)));
        assert!(
            (0.4..0.55).contains(&share),
            "{share} in {path:?}:\n{stacks}"
        );
    }
    recorded.outcome.assert_says(&["verdict: good"]);
}

/// What is above the first frame of a greenlet belongs to others.
#[test]
fn greenlets_end_at_their_first_function() {
    let session = Session::new();
    let binary = session.path("_greenlet.program");
    std::fs::copy(Program::cpp(&["greenlet.cpp"]).build(), &binary).unwrap();
    let recorded = session.record(USER_CODE, &[binary]);
    let stacks = recorded.physical_stacks();
    let path = ["UserGreenlet::inner_bootstrap()", "works_in_the_greenlet"].map(String::from);
    let share = stacks.share(|frames| frames == path);
    assert!(share > 0.9, "{share}:\n{stacks}");
    recorded.outcome.assert_says(&["verdict: good"]);
}

#[test]
fn calls_that_never_return() {
    let hottest = &["main", "decide", "ends_in_call", "never_returns"];
    check(Case::new(Program::c(&["noreturn.c"]), &["300"], hottest));
}

#[test]
fn hot_functions_of_libc() {
    let session = Session::new();
    let binary = Program::c(&["libc.c"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    stacks.assert_whole(0.999);
    let through_main = stacks.share(|frames| frames.iter().any(|frame| frame == "main"));
    assert!(through_main > 0.97, "{through_main}:\n{stacks}");
}

#[test]
fn returns_from_signal_handlers_in_the_kernel() {
    let session = Session::new();
    let binary = SIGNALS.build();
    let command = [binary.to_str().unwrap(), "often", "200"];
    let recorded = session.record(&["-e", "cpu-clock"], &command);
    let stacks = recorded.physical_stacks();
    let returns = |frames: &[String]| frames.iter().any(|it| it.contains("rt_sigreturn"));
    assert!(stacks.share(returns) > 0.05, "{stacks}");
    let partial = stacks.share(|frames| returns(frames) && !starts_at_root(frames));
    assert!(partial < 0.005, "{partial}:\n{stacks}");
}

#[test]
fn signal_trampolines_have_their_name() {
    let session = Session::new();
    let binary = SIGNALS.build_as(Variant::STATIC);
    let command = [binary.as_os_str(), "normal".as_ref(), "300".as_ref()];
    let stacks = session.record(USER_CODE, &command).physical_stacks();
    let handles = |frames: &[String]| frames.iter().any(|frame| frame == "in_handler");
    let is_named = |frames: &[String]| {
        let mut pairs = frames.windows(2);
        pairs.any(|pair| pair[0] == "__restore_rt" && pair[1] == "handler")
    };
    let unnamed = stacks.share(|frames| handles(frames) && !is_named(frames));
    assert!(stacks.share(handles) > 0.5 && unnamed < 0.01, "{stacks}");
}

#[test]
fn clocks_in_the_vdso() {
    let session = Session::new();
    let binary = Program::c(&["vdso.c"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    stacks.assert_whole(0.999);
    let through_clocks = stacks.share(|frames| frames.iter().any(|frame| frame == "clocks"));
    assert!(through_clocks > 0.97, "{through_clocks}:\n{stacks}");
}

#[test]
fn stripped_executables() {
    let session = Session::new();
    let binary = SHARES.build_as(Variant::STRIPPED);
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    // Nothing of the program has a name: frames show its name and an offset.
    let hottest = stacks.hottest();
    assert!(
        hottest
            .last()
            .is_some_and(|frame| frame.starts_with("shares+0x")),
        "{hottest:?}"
    );
    let is_start = |frame: &String| {
        // The dynamic linker runs before.
        frame.contains("__libc_start_main") || frame == "_dl_start"
    };
    let from_start = stacks.share(|frames| frames.iter().any(is_start));
    assert!(from_start >= 0.999, "{stacks}");
    let unknown = stacks.share(|frames| frames.iter().any(|frame| frame.contains("[unknown]")));
    assert_eq!(unknown, 0.0, "{stacks}");
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for &[&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}
