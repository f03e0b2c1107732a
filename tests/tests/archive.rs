//! Recordings with stored symbols give the same reports on machines without the programs.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use prof_tests::{
    Need, Outcome, Program, Session, Stacks, USER_CODE, Variant, copy_executable, needs,
    perf_record, perf_script,
};

const PHASES: Program = Program::c(&["phases.c"]);
const SHARES: Program = Program::c(&["shares.c"]);
const NO_BUILD_ID: Variant = Variant::new("no build id", &["-Wl,--build-id=none"]);

/// Installs a program whose code is in one file, except the kernel's.
fn install(session: &Session) -> std::path::PathBuf {
    session.install(&Program::cpp(&["inlining.cpp"]).build_as(Variant::STATIC))
}

/// `prof` where there is no way to see the kernel's symbols.
fn blind(session: &Session, arguments: &[&str]) -> Outcome {
    let prof = session.prof(arguments);
    let hide = "mount --bind /dev/null /proc/kallsyms && exec \"$@\"";
    let mut command = session.command(Path::new("unshare"), ["--mount", "sh", "-c", hide, "sh"]);
    command.arg(prof.get_program()).args(prof.get_args());
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    outcome
}

const VIEWS: [&[&str]; 6] = [
    &["report", "--folded", "-"],
    &["report", "--flamegraph", "-"],
    &["report", "--tree"],
    &["report", "--firefox", "-"],
    &["script"],
    &["script", "--no-inline"],
];

/// The output of all views.
fn views(session: &Session, file: &str, see: impl Fn(&Session, &[&str]) -> Outcome) -> Vec<String> {
    let view = |view: &&[&str]| see(session, &[*view, &["-i", file]].concat()).stdout;
    VIEWS.iter().map(view).collect()
}

fn run(session: &Session, arguments: &[&str]) -> Outcome {
    let outcome = session.run(arguments);
    outcome.assert_code(0);
    outcome
}

#[track_caller]
fn assert_same(before: &[String], after: &[String]) {
    for ((view, before), after) in VIEWS.iter().zip(before).zip(after) {
        assert!(
            before == after,
            "{view:?}: before\n{before}\nafter\n{after}"
        );
    }
}

#[test]
fn all_views_are_the_same_without_the_program_and_the_kernel() {
    if !needs(&[Need::Tool("g++"), Need::MountNamespaces]) {
        return;
    }
    let session = Session::new();
    let program = install(&session);
    let recorded = session.record(&["-e", "cpu-clock", "-F", "1999"], &[&program]);
    let file = recorded.file.to_str().unwrap();
    let samples = perf_samples(&recorded.file);
    let before = views(&session, file, run);
    assert!(before[0].contains("shapes::innermost"), "{}", before[0]);
    let said = run(&session, &["archive"]);
    said.assert_says(&["wrote prof.data", "addresses"]);
    std::fs::remove_file(&program).unwrap();
    assert_same(&before, &views(&session, file, blind));
    // perf reads it as before, but without the program's symbols, which are gone.
    assert_eq!(perf_samples(&recorded.file), samples);
    let mode = recorded.file.metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    // Archiving again without the files removes nothing.
    blind(&session, &["archive", "prof.data", "-o", "again.data"]);
    assert_same(&before, &views(&session, "again.data", blind));
}

#[test]
fn another_kernel_s_symbols_are_not_used() {
    if !needs(&[Need::Root]) {
        return;
    }
    let session = Session::new();
    // Most of its time is the kernel's.
    let calls = ["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=500000"];
    let recorded = session.record(&["-e", "cpu-clock", "-F", "1999"], &calls);
    let report = || recorded.report(&["--folded", "-"]);
    assert!(!report().stderr.contains("another kernel"));
    // As if it came from another kernel: one with another build id.
    let id = kernel_build_id();
    let mut bytes = std::fs::read(&recorded.file).unwrap();
    let places: Vec<usize> = (0..bytes.len())
        .filter(|&at| bytes[at..].starts_with(&id))
        .collect();
    assert!(!places.is_empty(), "the kernel's build id is recorded");
    for at in places {
        bytes[at] ^= 0xff;
    }
    std::fs::write(&recorded.file, bytes).unwrap();
    let outcome = report();
    outcome.assert_says(&["symbols are missing in [kernel]", "another kernel runs now"]);
    assert!(outcome.stdout.contains("[kernel]+0x"), "{outcome}");
}

/// Reads the notes that the kernel shows: sizes of name and content, type 3, "GNU", the content.
fn kernel_build_id() -> Vec<u8> {
    let notes = std::fs::read("/sys/kernel/notes").unwrap();
    let start = b"\x04\0\0\0\x14\0\0\0\x03\0\0\0GNU\0";
    let mut places = notes.windows(start.len());
    let at = places.position(|part| part == start).unwrap() + start.len();
    notes[at..at + 20].to_vec()
}

fn perf_samples(file: &Path) -> Option<Vec<(u64, u64, u64, usize)>> {
    let perf = needs(&[Need::Tool("perf")]);
    perf.then(|| {
        let samples = perf_script(file).into_iter();
        samples
            .map(|sample| (sample.tid, sample.time, sample.period, sample.frames.len()))
            .collect()
    })
}

#[test]
fn names_can_be_embedded_when_recording() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let program = install(&session);
    let options = [USER_CODE, &["--embed-symbols", "--flamegraph", "out.svg"]].concat();
    let recorded = session.record(&options, &[&program]);
    let file = recorded.file.to_str().unwrap();
    let before = views(&session, file, run);
    assert!(before[4].contains("inlining.cpp") || before[0].contains("shapes::innermost"));
    std::fs::remove_file(&program).unwrap();
    assert_same(&before, &views(&session, file, run));
    assert!(session.path("out.svg").exists());
}

#[test]
fn recordings_of_perf_can_be_archived() {
    if !needs(&[Need::Tool("g++"), Need::Tool("perf")]) {
        return;
    }
    let session = Session::new();
    let program = install(&session);
    let file = session.path("perf.data");
    perf_record(&["-g"], &file, &[&program]);
    let file = file.to_str().unwrap();
    let before = views(&session, file, run);
    run(&session, &["archive", file]);
    std::fs::remove_file(&program).unwrap();
    assert_same(&before, &views(&session, file, run));
}

/// To perf, a file that was mapped before the recording began and again during it is two: `/proc`
/// does not show the generation of its inode.
#[test]
fn recordings_of_running_programs_can_be_archived() {
    if !needs(&[Need::Tool("perf")]) {
        return;
    }
    // Beside other sessions, which request build ids, the kernel gives them to perf, too.
    let session = Session::alone();
    let program = session.install(&PHASES.build_as(Variant::STATIC));
    let script = "\"$0\" 2000 300 & exec perf record -q -g --buildid-all -e cpu-clock:u \
                  -o perf.data -p $!";
    let arguments = ["-c".as_ref(), script.as_ref(), program.as_os_str()];
    Outcome::of(session.command(Path::new("sh"), arguments)).assert_code(0);
    let before = views(&session, "perf.data", run);
    for function in ["before_exec", "after_exec"] {
        assert!(before[0].contains(function), "{}", before[0]);
    }
    run(&session, &["archive", "perf.data"]);
    std::fs::remove_file(&program).unwrap();
    assert_same(&before, &views(&session, "perf.data", run));
}

/// Records two programs without build ids, one after the other at the path `app`. The second stays.
fn record_two_of_one_path(session: &Session) {
    let app = session.path("app");
    for (program, file) in [(&PHASES, "first.data"), (&SHARES, "second.data")] {
        let _ = std::fs::rename(&app, session.path("old"));
        copy_executable(&program.build_as(NO_BUILD_ID), &app);
        let options = [USER_CODE, &["-o", file]].concat();
        session.record(&options, &[app.to_str().unwrap(), "300"]);
    }
}

#[test]
fn two_recordings_of_one_path_without_build_ids_keep_their_names() {
    let session = Session::new();
    record_two_of_one_path(&session);
    let folded = |files: &[&str]| {
        let inputs = files.iter().flat_map(|file| ["-i", file]);
        let options = ["report", "--no-inline", "--folded", "-"];
        run(
            &session,
            &options.into_iter().chain(inputs).collect::<Vec<_>>(),
        )
    };
    let weight = |folded: &str, function: &str| {
        let stacks = Stacks::from_folded(folded);
        let with = |(frames, _): &(&[String], u64)| frames.iter().any(|it| it == function);
        stacks
            .iter()
            .filter(with)
            .map(|(_, weight)| weight)
            .sum::<u64>()
    };
    let second = weight(&folded(&["second.data"]).stdout, "work");
    for files in [["first.data", "second.data"], ["second.data", "first.data"]] {
        let both = folded(&files);
        both.assert_says(&["missing in app", "several files of this path"]);
        assert_eq!(weight(&both.stdout, "work"), second, "{both}");
    }
    // The first program has its names if they were stored in time.
    std::fs::rename(session.path("app"), session.path("new")).unwrap();
    std::fs::rename(session.path("old"), session.path("app")).unwrap();
    run(&session, &["archive", "first.data"]);
    std::fs::rename(session.path("new"), session.path("app")).unwrap();
    let first = weight(&folded(&["first.data"]).stdout, "after_exec");
    let both = folded(&["first.data", "second.data"]).stdout;
    assert!(first > 0);
    assert_eq!(weight(&both, "after_exec"), first, "{both}");
    let names = ["work", "burn_sixty", "burn_thirty", "burn_ten"];
    let wrong = |(frames, _): &(&[String], u64)| {
        let has = |name: &str| frames.iter().any(|it| it == name);
        has("after_exec") && names.iter().any(|name| has(name))
    };
    assert_eq!(
        Stacks::from_folded(&both).iter().filter(wrong).count(),
        0,
        "{both}"
    );
}

#[test]
fn a_file_that_cannot_be_archived_stays_as_it_is() {
    if !needs(&[Need::Tool("g++")]) {
        return;
    }
    let session = Session::new();
    let program = install(&session);
    let recorded = session.record(USER_CODE, &[&program]);
    let whole = std::fs::read(&recorded.file).unwrap();
    let cut = session.write("cut.data", &whole[..whole.len() / 2]);
    session
        .run(["archive", "cut.data"])
        .assert_refused(&["cut off", "cut.data"]);
    assert!(std::fs::read(cut).unwrap() == whole[..whole.len() / 2]);
    session
        .run(["archive", "prof.data", "-o", "no/such/place"])
        .assert_refused(&["no/such/place"]);
    session
        .run(["archive", "nothing"])
        .assert_refused(&["nothing"]);
    let left = std::fs::read_dir(session.directory()).unwrap().count();
    assert_eq!(left, 3, "the program, the recording and what was cut");
    assert!(std::fs::read(&recorded.file).unwrap() == whole);
}
