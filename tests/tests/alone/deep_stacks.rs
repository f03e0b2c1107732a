//! Stacks deeper than the kernel's dumps are whole, right and of one moment.

use prof_tests::{Program, Session, USER_CODE, starts_at_root};

const DEEP: Program = Program::c(&["deep.c"]);
const TO_THE_BOTTOM: &[&str] = &["descend", "descend", "bottom"];

#[test]
fn recursion_of_100_frames() {
    let session = Session::new();
    let command = [DEEP.build().to_str().unwrap(), "100"].map(String::from);
    let stacks = session.record(USER_CODE, &command).physical_stacks();
    stacks.assert_hottest(TO_THE_BOTTOM);
    stacks.assert_whole(0.999);
}

/// Stacks far deeper than the kernel's dumps, at the default rate. Stacks that were sampled right
/// before they unwind may be read too late.
#[track_caller]
fn check_deep(depth: &str) {
    let session = Session::alone();
    let command = [DEEP.build().to_str().unwrap(), depth, "1200"].map(String::from);
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

/// Watchers read the stacks of samples; the rings fill meanwhile.
#[test]
fn the_reader_does_not_wake_for_each_deep_stack() {
    let session = Session::alone();
    let program = Program::rust(&["up_and_down.rs"]).build();
    let command = [program.to_str().unwrap(), "2000"];
    let recorded = session.record(&["-v", "-e", "cpu-clock:u", "-F", "999"], &command);
    let words = recorded.outcome.stderr.split("the reader woke ").nth(1);
    let count = words.and_then(|words| words.split(' ').next());
    let woken: u64 = count
        .and_then(|count| count.replace(',', "").parse().ok())
        .expect("a count");
    let samples = recorded.samples();
    // At the start it does, and on a busy machine there are few samples.
    assert!(woken < samples / 2 + 50, "{woken} of {samples}");
    recorded.stacks().assert_whole(0.98);
}

/// A record's size has 16 bits: no chain of 20,000 frames fits. Both ends are kept.
#[test]
fn recursion_of_20000_frames_keeps_both_ends_and_marks_the_cut() {
    let session = Session::alone();
    let binary = DEEP.build();
    let recorded = session.record(
        &["-e", "cpu-clock:u"],
        &[binary.to_str().unwrap(), "20000", "1200"],
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
    let line = "deeper than a sample can hold (about 8,000 frames), so the middle is left out";
    recorded.outcome.assert_says(&[line]);
    recorded.report(&["--folded", "-"]).assert_says(&[line]);
}

/// The dumps of these stacks are the same for both callers, which alternate every 20 µs. The reader
/// must come before the program goes on. Once the recorder has seen that dumps do not distinguish
/// the callers, only stacks that were read in time count, and those before are in doubt.
#[test]
fn deep_stacks_are_read_before_they_change() {
    let check = |session: &Session, least_right: f64| {
        let binary = session.install(&Program::c(&["alternating_callers.c"]).build());
        let command = [binary.to_str().unwrap(), "500"];
        let recorded = session.record(&["-e", "cpu-clock:u", "-F", "1999"], &command);
        let stacks = recorded.physical_stacks();
        let share = |innermost: &str, caller: &str| {
            stacks.share(|frames| {
                let has = |name| frames.iter().any(|frame| frame == name);
                has(innermost) && has(caller)
            })
        };
        let right = share("in_left", "left") + share("in_right", "right");
        let wrong = share("in_left", "right") + share("in_right", "left");
        // Meanwhile `main` reads the clock, which takes more or less of the time.
        let innermost = |frame: &String| frame == "in_left" || frame == "in_right";
        let inside = stacks.share(|frames| frames.iter().any(innermost));
        assert!(
            inside > 0.5 && right > least_right * inside && wrong < 0.002,
            "{right} of {inside}, {wrong} wrong:\n{stacks}"
        );
    };
    check(&Session::alone(), 0.9);
    // On a busy machine, many of a plain user's are read too late.
    check(&Session::plain_user_alone(), 0.5);
}

/// The outer frames of one phase and those of the next are in different bytes, so that a stack that
/// is read a little late is right, too: with as many threads as CPUs, few are read at once.
#[test]
fn deep_stacks_of_phases_are_whole() {
    let session = Session::alone();
    let binary = Program::c(&["deep_phases.c"]).build();
    let one = format!("{} 1000", binary.display());
    let two = format!("{one} & {one} & wait");
    let recorded = session.record(&["-e", "cpu-clock:u"], &["sh", "-c", &two]);
    let stacks = recorded.physical_stacks();
    stacks.assert_whole(0.99);
    let both = stacks.share(|frames| {
        let has = |name| frames.iter().any(|frame| frame == name);
        has("first") && has("second")
    });
    assert!(both == 0.0, "{both}:\n{stacks}");
}

/// The innermost function reveals the caller of the recursion. It returns at once, so that many
/// stacks are read too late, and then the frames that it has left behind would join its next
/// callers. How much of the run is deep depends on the machine: the shallow part is fixed work.
#[test]
fn frames_of_two_moments_are_not_joined() {
    const DEPTH: usize = 2001;
    const CALLERS: &[(&str, &str)] = &[
        ("in_direct", "direct"),
        ("in_lower", "lower"),
        ("in_pointer", "pointer"),
    ];
    fn caller_of_innermost(frames: &[String]) -> Option<&'static str> {
        let innermost = frames.last()?;
        let (_, caller) = CALLERS.iter().find(|(name, _)| name == innermost)?;
        Some(caller)
    }
    let session = Session::alone();
    let binary = Program::c(&["returns.c"]).build();
    let command = [binary.to_str().unwrap(), "500"];
    let recorded = session.record(&["-e", "cpu-clock:u", "-F", "1999"], &command);
    let stacks = recorded.physical_stacks();
    let deep = stacks.share(|frames| caller_of_innermost(frames).is_some());
    let share = |is_right: bool| {
        stacks.share(|frames| {
            let Some(caller) = caller_of_innermost(frames).filter(|_| starts_at_root(frames))
            else {
                return false;
            };
            let outer = frames.iter().skip_while(|frame| *frame != "main").skip(1);
            let innermost = frames.last().map(String::as_str);
            let expected = std::iter::once(caller)
                .chain(["rec"; DEPTH])
                .chain(innermost);
            outer.map(String::as_str).eq(expected) == is_right
        })
    };
    let (right, wrong) = (share(true), share(false));
    assert!(
        deep > 0.1 && right > 0.5 * deep && wrong == 0.0,
        "{right} of {deep}, {wrong} wrong:\n{stacks}"
    );
}
