//! `prof report` reads recordings of `perf record`, and unwinds the stack dumps in a file.

use std::path::Path;
use std::process::Command;

use prof_tests::{Endless, Need, Outcome, Program, Session, Stacks, Variant, needs, perf_record};

const SHARES: Program = Program::c(&["shares.c"]);

const DEEP: Program = Program::c(&["deep.c"]);

/// Functions that call no others have no frame pointer, so that the caller of `bottom` is missing.
const THROUGH_FRAME_POINTERS: &[&str] = &[
    "descend",
    "descend",
    "[... one frame left out ...]",
    "bottom",
];

const NO_CALLER: &str = "the innermost function keeps no frame pointer, so that its caller is \
                         missing";

fn report(session: &Session, file: &Path) -> Stacks {
    let file = file.to_str().unwrap();
    let outcome = session.run(["report", "--no-inline", "-i", file, "--folded", "-"]);
    outcome.assert_code(0);
    Stacks::from_folded(&outcome.stdout)
}

#[test]
fn dwarf_dumps_of_perf() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    for variant in [Variant::PLAIN, Variant::STATIC] {
        let binary = SHARES.build_as(variant);
        perf_record(&["-F", "999", "--call-graph", "dwarf"], &file, &[&binary]);
        let stacks = report(&session, &file);
        stacks.assert_hottest(&["main", "work", "burn_sixty"]);
        stacks.assert_whole(0.995);
    }
}

/// perf keeps copies of the programs that it has seen below its user's home.
#[test]
fn a_program_that_is_gone_is_found_in_the_cache_of_perf() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let binary = session.install(&SHARES.build());
    perf_record(&["-F", "999"], &session.path("perf.data"), &[&binary]);
    let mut perf = Command::new("perf");
    perf.args(["buildid-cache", "--add"]).arg(&binary);
    perf.env("HOME", session.directory());
    Outcome::of(perf).assert_code(0);
    std::fs::remove_file(&binary).unwrap();
    let report_at = |home: &Path| {
        let mut prof = session.prof(["report", "-i", "perf.data"]);
        prof.env("HOME", home);
        Outcome::of(prof).stdout
    };
    let found = report_at(session.directory());
    assert!(found.contains("burn_sixty"), "{found}");
    let missing = report_at(Path::new("/nonexistent"));
    assert!(!missing.contains("burn_sixty"), "{missing}");
}

#[test]
fn frame_pointer_chains_of_perf() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    let variant = Variant::new("frame pointers", &["-fno-omit-frame-pointer"]);
    perf_record(
        &["-F", "999", "--call-graph", "fp"],
        &file,
        &[&DEEP.build_as(variant)],
    );
    report(&session, &file).assert_hottest(THROUGH_FRAME_POINTERS);
    let outcome = session.run(["report", "-i", file.to_str().unwrap()]);
    assert!(outcome.stdout.contains(NO_CALLER), "{outcome}");
}

#[test]
fn processes_without_mappings_are_not_called_good() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    let program = Endless::install(&session, "endless");
    let program = Endless::start(session.command(&program, ["60"]));
    let pid = program.pid().to_string();
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--synth=task", "-e", "cpu-clock:u"]);
    perf.args(["-F", "999", "--call-graph", "dwarf", "-p", &pid, "-o"]);
    perf.arg(&file).args(["--", "sleep", "0.3"]);
    Outcome::of(perf).assert_code(0);
    let outcome = session.run(["report", "--strict", "-i", file.to_str().unwrap()]);
    let words = [
        "verdict: BAD: 0 % of ",
        "the recording does not say what code the process had mapped",
    ];
    for expected in words {
        assert!(outcome.stdout.contains(expected), "{outcome}");
    }
    assert!(!outcome.status.success(), "{outcome}");
}

#[test]
fn samples_of_perf_without_stacks() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    perf_record(&["-F", "999"], &file, &[&SHARES.build()]);
    assert_eq!(report(&session, &file).hottest(), ["burn_sixty"]);
}

/// perf repeats at the end what the kernel has said of each ring.
#[test]
fn counts_of_perf_are_no_recording() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    let mut perf = Command::new("perf");
    perf.args(["stat", "record", "-e", "task-clock", "-o"])
        .arg(&file);
    perf.args(["--", "true"]);
    Outcome::of(perf).assert_code(0);
    let outcome = session.run(["report", "-i", file.to_str().unwrap()]);
    outcome.assert_code(1);
    outcome.assert_says(&["it has counts, which `perf stat report` shows, and no samples"]);
}

#[test]
fn losses_of_perf_count_once() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    // A ring has room for one sample and a half.
    let small = ["-e", "cpu-clock", "-c", "100000", "-m", "4"];
    let dumps = ["--call-graph", "dwarf,8192"];
    perf_record(
        &[small.as_slice(), &dumps].concat(),
        &file,
        &[&SHARES.build()],
    );
    let mut perf = Command::new("perf");
    perf.args(["report", "-D", "-i"]).arg(&file);
    let records = Outcome::of(perf).stdout;
    let sum = |before: &str| -> Option<u64> {
        let counts = records.lines().filter_map(|line| line.rsplit_once(before));
        let counts = counts.filter_map(|(_, count)| count.trim().parse::<u64>().ok());
        counts.reduce(|sum, count| sum + count)
    };
    let totals = sum(": lost samples :");
    let expected = totals.or_else(|| sum(": lost:")).unwrap();
    let outcome = session.run(["report", "-i", file.to_str().unwrap(), "--json", "-"]);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(
        json["quality"]["losses"]["ring_full"], expected,
        "{outcome}"
    );
}

#[test]
fn our_own_dumps_unwind_to_the_same_stacks() {
    let session = Session::new();
    let binary = SHARES.build();
    // Not by cycles, which are also sampled while the kernel is being entered.
    let recorded = session.record(&["--no-unwind", "-e", "cpu-clock"], &[binary]);
    let stacks = recorded.physical_stacks();
    stacks.assert_hottest(&["main", "work", "burn_sixty"]);
    stacks.assert_whole(0.999);
    let size = std::fs::metadata(&recorded.file).unwrap().len();
    assert!(size > 1 << 18, "no stack bytes in {size} bytes");
}

#[test]
fn frame_pointers_and_no_stacks_can_be_requested() {
    let session = Session::new();
    let variant = Variant::new("frame pointers", &["-fno-omit-frame-pointer"]);
    let binary = DEEP.build_as(variant);
    let recorded = session.record(&["--call-graph", "fp"], &[&binary]);
    recorded
        .physical_stacks()
        .assert_hottest(THROUGH_FRAME_POINTERS);
    recorded
        .outcome
        .assert_says(&[NO_CALLER, "use --call-graph dwarf"]);
    let recorded = session.record(&["--call-graph", "none"], &[&binary]);
    assert_eq!(recorded.physical_stacks().hottest(), ["bottom"]);
}

#[test]
fn code_without_its_file_does_not_lack_unwind_information() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let (file, binary) = (session.path("perf.data"), session.path("program"));
    std::fs::copy(SHARES.build(), &binary).unwrap();
    perf_record(&["-F", "999", "--call-graph", "dwarf"], &file, &[&binary]);
    std::fs::remove_file(&binary).unwrap();
    let outcome = session.run(["report", "-i", file.to_str().unwrap()]);
    let why = "the file of the code is missing, was replaced, or may not be read (most in ";
    let verdict = &outcome.stdout;
    assert!(verdict.contains(why), "{outcome}");
    // perf has no such flag.
    assert!(verdict.contains("; record with prof\n"), "{outcome}");
    assert!(!verdict.contains("--no-unwind"), "{outcome}");
    assert!(!verdict.contains("no unwind information"), "{outcome}");
}

#[test]
fn directories_of_perf_are_read_if_one_file_has_the_samples() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let directory = session.path("kcore");
    std::fs::create_dir(&directory).unwrap();
    let file = directory.join("data");
    perf_record(&["-F", "999"], &file, &[&SHARES.build()]);
    assert_eq!(report(&session, &directory).hottest(), ["burn_sixty"]);

    let directory = session.path("threads");
    perf_record(&["-F", "999", "--threads"], &directory, &[&SHARES.build()]);
    let outcome = session.run(["report", "-i", directory.to_str().unwrap()]);
    outcome.assert_refused(&["a file for each thread; record without --threads"]);
}

#[test]
fn garbage_frame_pointers_that_lead_to_data_are_no_code() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let file = session.path("perf.data");
    // Mappings of data are recorded with -d. At page faults, frame pointers may be anything.
    let mut perf = Command::new("perf");
    perf.args([
        "record",
        "--quiet",
        "-e",
        "page-faults",
        "-c",
        "1",
        "-d",
        "-g",
        "-o",
    ]);
    perf.arg(&file).arg(DEEP.build());
    Outcome::of(perf).assert_code(0);
    let outcome = session.run(["report", "-i", file.to_str().unwrap()]);
    outcome.assert_code(0);
    assert!(!outcome.stdout.contains("run-time code"), "{outcome}");
}
