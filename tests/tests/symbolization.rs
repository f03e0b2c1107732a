//! Frames have their symbols, and frames without are counted by module, with the reason.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use prof_tests::{
    Compiler, Need, Program, Recorded, Session, Stacks, USER_CODE, Variant, copy_executable, needs,
};

const SHARES: Program = Program::c(&["shares.c"]);
const PHASES: Program = Program::c(&["phases.c"]);
const NO_BUILD_ID: Variant = Variant::new("no build id", &["-Wl,--build-id=none"]);
const STUBS: Program = Program::new(&["stubs.c"], Compiler::Gcc, &["-fno-builtin"]);

/// Each kind of stub has its section and its unwind table.
#[test]
fn stubs_of_the_linker_have_names_and_callers() {
    let session = Session::new();
    for (name, flags) in [
        ("lazy", &["-Wl,-z,lazy"][..]),
        ("now", &["-Wl,-z,now"]),
        ("ibt", &["-fcf-protection", "-Wl,-z,ibtplt", "-Wl,-z,lazy"]),
    ] {
        let program = STUBS.build_as(Variant::new(name, flags));
        let stacks = session.record(USER_CODE, &[program]).physical_stacks();
        let path = ["main", "through_stubs", "labs@plt"].map(String::from);
        let share = stacks.share(|frames| frames.ends_with(&path));
        assert!(share > 0.01, "{share} in stubs by {flags:?}:\n{stacks}");
    }
}

/// Two programs that have no build id, one after the other at one path.
#[test]
fn programs_of_one_path_without_build_ids_keep_their_names() {
    let replaced = "cp before app && ./app 300 && mv app old && cp after app && ./app 300";
    // As containers do, each with its own file at the path.
    let mounted = "touch app && for program in before after; do \
                   unshare -m sh -c \"mount --bind $program app && ./app 300\"; done";
    let scripts = match needs(&[Need::MountNamespaces]) {
        true => &[replaced, mounted][..],
        false => &[replaced],
    };
    for script in scripts {
        let session = Session::new();
        let programs = [(&PHASES, "before"), (&SHARES, "after")];
        for (program, name) in programs {
            copy_executable(&program.build_as(NO_BUILD_ID), &session.path(name));
        }
        let recorded = session.record(USER_CODE, &["sh", "-c", script]);
        let outcome = recorded.report(&["--no-inline", "--folded", "-", "--module", "app"]);
        let stacks = Stacks::from_folded(&outcome.stdout);
        let share = |function: &str| stacks.share(|frames| frames.iter().any(|it| it == function));
        for function in ["after_exec", "work"] {
            assert!(share(function) > 0.3, "{script}: {outcome}");
        }
        assert!(!outcome.stdout.contains("app+0x"), "{script}: {outcome}");
        assert!(
            !outcome.stderr.contains("missing in app"),
            "{script}: {outcome}"
        );
    }
}

/// A program that was built anew has other functions at the recorded addresses.
#[test]
fn newer_programs_without_build_ids_may_have_wrong_names() {
    let session = Session::new();
    let binary = session.path("app");
    let check = |recorded: &Recorded<'_>, expected: bool| {
        let outcome = recorded.report(&["--limit", "1"]);
        let says = outcome.stdout.contains("symbols of app may be wrong");
        assert_eq!(says, expected, "{outcome}");
    };
    copy_executable(&SHARES.build_as(NO_BUILD_ID), &binary);
    let recorded = session.record(USER_CODE, &[&binary]);
    check(&recorded, false);
    copy_executable(&PHASES.build_as(NO_BUILD_ID), &binary);
    check(&recorded, true);
    copy_executable(&SHARES.build(), &binary);
    let recorded = session.record(USER_CODE, &[&binary]);
    copy_executable(&PHASES.build(), &binary);
    // Its build id differs: its names are not used.
    check(&recorded, false);
}

/// What happened to a program between its recording and its report.
type Change = fn(&std::path::Path);

#[test]
fn unnamed_code_is_listed_with_its_reason() {
    if !needs(&[Need::Root, Need::PlainSampling]) {
        return;
    }
    // A plain user, who may not read all files.
    let session = Session::plain_user();
    let cases: [(&str, Variant, Change, &str); 4] = [
        ("stripped", Variant::STRIPPED, |_| {}, ": stripped"),
        (
            "gone",
            Variant::PLAIN,
            |program| fs::remove_file(program).unwrap(),
            "does not exist",
        ),
        (
            "rebuilt",
            Variant::PLAIN,
            |program| copy_executable(&SHARES.build_as(Variant::STATIC), program),
            "is not the file that ran",
        ),
        (
            "closed",
            Variant::PLAIN,
            |program| {
                std::os::unix::fs::chown(program, Some(0), Some(0)).unwrap();
                fs::set_permissions(program, Permissions::from_mode(0o600)).unwrap();
            },
            "no permission to read",
        ),
    ];
    for (name, variant, change, reason) in cases {
        let program = session.path(name);
        copy_executable(&SHARES.build_as(variant), &program);
        let recorded = session.record(USER_CODE, &[&program]);
        change(&program);
        let outcome = recorded.report(&["--no-inline", "--folded", "-"]);
        let line =
            (outcome.stderr.lines()).find(|line| line.contains(&format!("missing in {name}")));
        let line = line.unwrap_or_else(|| panic!("nothing on {name}: {outcome}"));
        assert!(line.contains(reason), "{name}: {outcome}");
        // How much of the recording that is.
        assert!(line.contains(" samples)"), "{name}: {outcome}");
        assert!(outcome.stdout.contains(&format!("{name}+0x")), "{outcome}");
        assert!(!outcome.stdout.contains("burn_sixty"), "{outcome}");
    }
}
