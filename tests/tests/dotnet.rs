//! Programs of .NET have names without a flag, and nothing remains of how.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use prof_tests::{
    Need, Outcome, Program, Session, Stacks, USER_CODE, dotnet, needs, own_tmp, starts_at_root,
};

/// Compiles this program; the command that runs it.
fn program(session: &Session, source: &str) -> Option<[String; 2]> {
    if !needs(&[Need::Tool("mcs"), Need::Dotnet, Need::MountNamespaces]) {
        return None;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("programs")
        .join(source);
    let compiled = session.path("program.dll");
    let out = format!("-out:{}", compiled.display());
    let status = Command::new("mcs").arg(out).arg(source).status();
    assert!(status.is_ok_and(|status| status.success()));
    let options = r#"{"runtimeOptions": {
        "framework": {"name": "Microsoft.NETCore.App", "version": "3.1.0"},
        "configProperties": {"System.Globalization.Invariant": true}
    }}"#;
    fs::write(session.path("program.runtimeconfig.json"), options).unwrap();
    Some([dotnet()?, compiled].map(|path| path.display().to_string()))
}

/// Records it in a `/tmp` where only it writes, with a variable that the user has set.
fn record(session: &Session, command: &[String; 2], (name, value): (&str, &str)) -> Outcome {
    let arguments = ["record"].into_iter().chain(USER_CODE.iter().copied());
    let command = command.iter().map(String::as_str);
    let arguments = arguments.chain(["--"]).chain(command);
    let mut prof = session.prof_under(&own_tmp(session, "755", ""), arguments);
    let outcome = Outcome::of({
        prof.env(name, value);
        prof
    });
    outcome.assert_code(0);
    assert!(!outcome.stdout.contains(".map"), "{outcome}");
    outcome
}

/// The files in `/tmp` with names for profilers, of the process that a script has printed.
fn left(outcome: &Outcome) -> Vec<PathBuf> {
    let pid = outcome.stdout.lines().next().unwrap();
    let mut left = [
        format!("/tmp/perf-{pid}.map"),
        format!("/tmp/perfinfo-{pid}.map"),
    ]
    .map(PathBuf::from)
    .to_vec();
    left.retain(|path| path.exists());
    left
}

#[test]
fn methods_have_names_and_whole_stacks() {
    let session = Session::new();
    let Some(command) = program(&session, "Hot.cs") else {
        return;
    };
    record(&session, &command, ("LANG", "C")).assert_says(&[
        "kept the symbols of JIT code of 1 process",
        "set COMPlus_PerfMapEnabled for them",
    ]);
    let report = session.run(["report", "-i", "prof.data", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    let of = |method: &str| {
        stacks.share(|frames| {
            let [.., caller, last] = frames else {
                return false;
            };
            starts_at_root(frames) && caller == "Hot::Main()" && last == method
        })
    };
    let (light, heavy) = (of("Hot::Light(int32)"), of("Hot::Heavy(int32)"));
    assert!(
        light + heavy > 0.9 && heavy > light,
        "{light} {heavy}:\n{stacks}"
    );
}

/// .NET itself prints the stack.
#[test]
fn methods_that_were_compiled_before_have_names() {
    let session = Session::new();
    // The library's methods are not compiled again.
    let Some(command) = program(&session, "Sorted.cs") else {
        return;
    };
    let outcome = record(&session, &command, ("COMPlus_TieredCompilation", "0"));
    let printed = outcome.stdout.lines();
    let mut printed: Vec<String> = printed
        .filter_map(|line| line.trim_start().strip_prefix("at ")?.split_once('('))
        .filter_map(|(method, _)| method.rsplit_once('.'))
        .map(|(of, method)| format!("{of}::{method}"))
        .collect();
    printed.reverse();
    assert_eq!(
        printed.pop().as_deref(),
        Some("System.Environment::get_StackTrace")
    );
    assert!(printed.len() > 3, "{printed:?}");
    let is_printed = |frames: &[String]| {
        let names = frames
            .iter()
            .map(|name| name.split_once('(').map_or(&**name, |it| it.0));
        let names: Vec<&str> = names.collect();
        names.ends_with(&printed.iter().map(String::as_str).collect::<Vec<_>>())
    };
    let report = session.run(["report", "--no-inline", "--folded", "-"]);
    let stacks = Stacks::from_folded(&report.stdout);
    assert!(stacks.share(is_printed) > 0.8, "{printed:?}:\n{stacks}");
}

/// As .NET maps it from version 7 on, which no package here has.
#[test]
fn code_that_is_mapped_twice_has_names_and_whole_stacks() {
    let session = Session::new();
    let binary = Program::c(&["jit.c"]).build();
    let script = format!("echo $$; exec {} 200 'mapped twice'", binary.display());
    let recorded = session.record(USER_CODE, &["sh", "-c", &script]);
    let stacks = recorded.physical_stacks();
    for map in left(&recorded.outcome) {
        fs::remove_file(map).unwrap();
    }
    let is_right = |frames: &[String]| {
        let calls = ["calls_generated_code", "function_made_at_run_time"].map(String::from);
        starts_at_root(frames) && frames.ends_with(&calls)
    };
    assert!(stacks.share(is_right) > 0.9, "{stacks}");
}

#[test]
fn settings_of_the_user_are_kept() {
    let session = Session::new();
    let Some(command) = program(&session, "Hot.cs") else {
        return;
    };
    let outcome = record(&session, &command, ("DOTNET_PerfMapEnabled", "0"));
    outcome.assert_says(&["verdict: good"]);
    assert!(!outcome.stderr.contains("PerfMapEnabled"), "{outcome}");
}

/// What a script starts gets no variable; the report says which one names its code.
#[test]
fn programs_behind_a_script_are_left_alone() {
    let session = Session::new();
    let Some(command) = program(&session, "Hot.cs") else {
        return;
    };
    let script = format!("echo $$; exec {}", command.join(" "));
    let recorded = session.record(USER_CODE, &["sh", "-c", &script]);
    assert_eq!(left(&recorded.outcome), [""; 0].map(PathBuf::from));
    let report = recorded.report(&[]);
    assert!(
        report.stdout.contains("COMPlus_PerfMapEnabled=3"),
        "{report}"
    );
}
