//! Every stack is whole and right, whatever the program does to its stack and however it is built.

use prof_tests::{Compiler, Need, Program, Session, USER_CODE, Variant, needs, starts_at_root};

const DEEP: Program = Program::c(&["deep.c"]);
const THREADS: Program = Program::c(&["threads.c"]);
const ASSEMBLY: Program = Program::c(&["assembly_main.c", "assembly.S"]);
const FRAMES: Program = Program::cpp(&["frames.cpp"]);
const INLINING: Program = Program::cpp(&["inlining.cpp"]);
const SIGNALS: Program = Program::c(&["signals.c"]);
const SHARES: Program = Program::c(&["shares.c"]);

/// A program, what to run it with, and the innermost frames of its hottest stack.
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

/// Records the program's user code at 1,999 Hz: at least 99.9 % of the stacks must reach their root.
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

const TO_THE_BOTTOM: &[&str] = &["descend", "descend", "bottom"];

#[test]
fn recursion_of_100_frames() {
    check(Case::new(DEEP, &["100"], TO_THE_BOTTOM));
}

/// Stacks far deeper than what the kernel copies, at the default rate. What was sampled right before
/// the way back may be read too late.
#[track_caller]
fn check_deep(depth: &str) {
    let session = Session::alone();
    let command = [DEEP.build().to_str().unwrap(), depth, "2000"].map(String::from);
    let recorded = session.record(&["-e", "cpu-clock:u"], &command);
    let stacks = recorded.physical_stacks();
    stacks.assert_hottest(TO_THE_BOTTOM);
    stacks.assert_whole(0.999);
    recorded.outcome.assert_says(&["verdict: good"]);
}

#[test]
fn recursion_of_2000_frames() {
    check_deep("2000");
}

#[test]
fn recursion_of_7000_frames() {
    check_deep("7000");
}

#[test]
fn recursion_is_counted_to_the_frame() {
    for depth in [1_usize, 100, 7000] {
        let session = Session::alone();
        let binary = DEEP.build();
        let depth_text = depth.to_string();
        let command = [binary.to_str().unwrap(), &depth_text, "200"];
        let stacks = session.record(USER_CODE, &command).physical_stacks();
        let hottest = stacks.hottest();
        let frames = hottest.iter().filter(|frame| **frame == "descend").count();
        assert_eq!(frames, depth, "{stacks}");
    }
}

/// A record's size has 16 bits: no chain of 20,000 frames fits. Both ends are kept.
#[test]
fn recursion_of_20000_frames_keeps_both_ends_and_marks_the_cut() {
    let session = Session::alone();
    let binary = DEEP.build();
    let recorded = session.record(
        &["-e", "cpu-clock:u"],
        &[binary.to_str().unwrap(), "20000", "1500"],
    );
    let stacks = recorded.physical_stacks();
    stacks.assert_hottest(TO_THE_BOTTOM);
    stacks.assert_whole(0.999);
    let hottest = stacks.hottest();
    assert!(hottest.contains(&"main"), "{stacks}");
    assert!(
        hottest.len() > 7000 && hottest.len() < 9000,
        "{} frames",
        hottest.len()
    );
    let mark = hottest.iter().find(|frame| frame.starts_with('['));
    assert!(mark.is_some(), "no mark:\n{stacks}");
}

/// What is copied of these stacks is the same whoever called, and 20 µs later it is the other one.
/// The reader must come before the program goes on.
#[test]
fn deep_stacks_are_read_before_they_change() {
    let session = Session::alone();
    let binary = Program::c(&["alternating_callers.c"]).build();
    let command = [binary.to_str().unwrap(), "1000"];
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "1999"], &command);
    let stacks = recorded.physical_stacks();
    stacks.assert_whole(0.99);
    let share = |innermost: &str, caller: &str| {
        stacks.share(|frames| {
            let has = |name| frames.iter().any(|frame| frame == name);
            has(innermost) && has(caller)
        })
    };
    let right = share("in_left", "left") + share("in_right", "right");
    let wrong = share("in_left", "right") + share("in_right", "left");
    assert!(
        right > 0.8 && wrong < 0.01,
        "{right}, {wrong} wrong:\n{stacks}"
    );
}

/// The innermost function tells who called the recursion. It is left at once, so that much is read too
/// late, and then what it has left behind would join its next callers.
#[test]
fn frames_of_two_moments_are_not_joined() {
    const DEPTH: usize = 2001;
    const CALLERS: &[(&str, &str)] = &[
        ("in_direct", "direct"),
        ("in_lower", "lower"),
        ("in_pointer", "pointer"),
    ];
    let session = Session::alone();
    let binary = Program::c(&["returns.c"]).build();
    let command = [binary.to_str().unwrap(), "1000"];
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "1999"], &command);
    let stacks = recorded.physical_stacks();
    let share = |is_right: bool| {
        stacks.share(|frames| {
            let innermost = frames.last().map_or("", |frame| frame.as_str());
            let caller = CALLERS.iter().find(|(name, _)| *name == innermost);
            let Some((_, caller)) = caller.filter(|_| starts_at_root(frames)) else {
                return false;
            };
            let outer = frames.iter().skip_while(|frame| *frame != "main").skip(1);
            let expected = std::iter::once(*caller)
                .chain(["rec"; DEPTH])
                .chain([innermost]);
            outer.map(String::as_str).eq(expected) == is_right
        })
    };
    let (right, wrong) = (share(true), share(false));
    assert!(
        right > 0.4 && wrong == 0.0,
        "{right}, {wrong} wrong:\n{stacks}"
    );
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

/// Handlers run above a frame that the kernel made; below it is the code that was interrupted.
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

#[test]
fn exceptions() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let binary = Program::cpp(&["exceptions.cpp"]).build();
    let stacks = session.record(USER_CODE, &[binary]).physical_stacks();
    // While an exception lands, libgcc changes the stack that is walked.
    stacks.assert_whole(0.95);
    let thrown = stacks.share(|frames| {
        frames.iter().any(|frame| frame.starts_with("_Unwind_"))
            && frames.iter().any(|frame| frame == "thrower")
            && frames.iter().any(|frame| frame == "main")
    });
    assert!(thrown > 0.3, "{thrown}:\n{stacks}");
}

#[test]
fn libraries_that_come_and_go() {
    let session = Session::new();
    let loader = Program::c(&["loader.c"]).build();
    let library = |flags| Program::new(&["plugin.c"], Compiler::Gcc, flags).build();
    let a = library(&["-shared", "-fPIC", "-DNAME=a"]);
    let b = library(&["-shared", "-fPIC", "-DNAME=b", "-DPADDING"]);
    let stacks = session.record(USER_CODE, &[loader, a, b]).physical_stacks();
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
    let through_libc = stacks.share(|frames| {
        frames
            .iter()
            .any(|frame| frame.contains("__libc_start_main"))
    });
    assert!(through_libc >= 0.999, "{stacks}");
    let unknown = stacks.share(|frames| frames.iter().any(|frame| frame.contains("[unknown]")));
    assert_eq!(unknown, 0.0, "{stacks}");
}

#[test]
fn inlined_functions_of_cpp() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let binary = INLINING.build();
    let recorded = session.record(USER_CODE, &[binary]);
    recorded.physical_stacks().assert_whole(0.999);
    let stacks = recorded.stacks();
    let hottest = stacks.hottest();
    for part in [
        "main",
        "total(",
        "for_all<",
        "accumulate<",
        "shapes::Polygon<9>::area(",
        "shapes::innermost(",
    ] {
        assert!(
            hottest.iter().any(|frame| frame.contains(part)),
            "no {part} in {hottest:#?}"
        );
    }
}

#[test]
fn inlined_functions_of_rust() {
    let session = Session::new();
    for flags in [
        &["-Csymbol-mangling-version=v0"][..],
        &["-Cforce-frame-pointers=no"],
    ] {
        let variant = Variant::new("mangling", Vec::leak(flags.to_vec()));
        let binary = Program::rust(&["generics.rs"]).build_as(variant);
        let recorded = session.record(USER_CODE, &[binary]);
        recorded.physical_stacks().assert_whole(0.999);
        let stacks = recorded.stacks();
        let inside = |part: &str| stacks.share(|frames| frames.iter().any(|f| f.contains(part)));
        for part in [
            "generics::main",
            "generics::apply",
            "generics::numbers::innermost",
            "::fold",
        ] {
            assert!(inside(part) > 0.3, "{} in {part}:\n{stacks}", inside(part));
        }
        // Of names in the midst of which there is _R, `elf_dynamic_do_Rela` is one.
        let is_mangled = |frame: &String| frame.starts_with("_ZN") || frame.starts_with("_R");
        let mangled = stacks.share(|frames| frames.iter().any(is_mangled));
        assert!(mangled == 0.0, "mangled names:\n{stacks}");
    }
}

trait MapOwned {
    fn map_owned(&self) -> Vec<String>;
}

impl MapOwned for &[&str] {
    fn map_owned(&self) -> Vec<String> {
        self.iter().map(|&name| name.to_owned()).collect()
    }
}
