//! The output of `prof --generate` and `prof-fleet --generate`, used as its readers use it.

use std::fs;
use std::path::Path;

use prof_tests::{Compiler, Need, Outcome, Program, Session, needs, prof};

const THREADS: Program = Program::new(&["threads.c"], Compiler::Gcc, &["-pthread"]);

/// In a directory with a recording, whose functions are offered.
fn with_recording() -> Session {
    let session = Session::new();
    session.record(&["-e", "cpu-clock:u"], &[THREADS.build()]);
    session
}

/// The first of these words, and its name in scripts.
fn program(words: &str) -> (&str, String) {
    let program = words.split(' ').next().unwrap();
    (program, program.replace('-', "_"))
}

/// Lets bash complete the last of these words, as after Tab.
fn completed(session: &Session, words: &str) -> String {
    let (program, name) = program(words);
    // Bash splits words at these.
    let parts = words.replace(':', " : ").replace('=', " = ");
    let script = format!(
        r#"
        PATH="$(dirname "$PROF"):$PATH"
        source <({program} --generate complete-bash)
        COMP_LINE="{words}"
        COMP_WORDBREAKS=" =:"
        COMP_WORDS=({parts})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _{name}_complete {program}
        printf '%s\n' "${{COMPREPLY[@]}}"
        "#
    );
    let mut command = session.command(Path::new("bash"), ["-c", &script]);
    command.env("PROF", prof());
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    outcome.stdout
}

#[test]
fn bash_completes_verbs_flags_events_processes_and_functions() {
    let session = with_recording();
    let check = |words: &str, expected: &str| {
        let found = completed(&session, words);
        assert!(
            found.lines().any(|line| line == expected),
            "{words}: {found}"
        );
    };
    check("prof rec", "record");
    check("prof record --call-g", "--call-graph");
    check("prof record -e cycles,page-fau", "cycles,page-faults");
    check("prof record -- bas", "bash");
    check("prof record -e sched:sched_swi", "sched_switch");
    check("prof record -e sched:", "sched_switch");
    check("prof record --event=page-fau", "page-faults");
    let own = std::process::id().to_string();
    check(&format!("prof record -p {own}"), &own);
    check("prof annotate thread_m", "thread_main");
    check("prof report --callers thread_m", "thread_main");
    check("prof pus", "push");
    check("prof push --serv", "--service");
    check("prof-fleet pus", "push");
    check("prof-fleet data comp", "compact");
}

#[test]
fn completions_of_prof_alone_are_without_those_of_prof_fleet() {
    let session = Session::new();
    let alone = session.directory().join("prof");
    fs::copy(prof(), &alone).unwrap();
    let mut command = session.command(&alone, ["--", "prof", "push", "--serv"]);
    command.env("_PROF_COMPLETE", "bash");
    command.env("_CLAP_COMPLETE_INDEX", "2");
    command.env("PATH", "/usr/bin:/bin");
    let outcome = Outcome::of(command);
    outcome.assert_code(0);
    assert_eq!((&*outcome.stdout, &*outcome.stderr), ("", ""), "{outcome}");
}

#[test]
fn fish_completes_verbs_flags_events_processes_and_functions() {
    if !needs(&[Need::Tool("fish")]) {
        return;
    }
    let session = with_recording();
    let check = |words: &str, expected: &str| {
        let (program, _) = program(words);
        let script = format!(
            "set PATH (dirname $PROF) $PATH; {program} --generate complete-fish | source; complete -C \"{words}\""
        );
        let mut command = session.command(Path::new("fish"), ["--no-config", "-c", &script]);
        command.env("PROF", prof()).env("HOME", session.directory());
        let found = Outcome::of(command);
        let names = found
            .stdout
            .lines()
            .filter_map(|line| line.split('\t').next());
        assert!(
            names.clone().any(|name| name == expected),
            "{words}: {found}"
        );
    };
    check("prof rec", "record");
    check("prof record --call-g", "--call-graph");
    check("prof record -e sched:sched_swi", "sched:sched_switch");
    let own = std::process::id().to_string();
    check(&format!("prof record -p {own}"), &own);
    check("prof annotate thread_m", "thread_main");
    check("prof push --serv", "--service");
    check("prof-fleet data comp", "compact");
}

/// Presses Tab in a zsh on a terminal, and reads the resulting line.
#[test]
fn zsh_completes_verbs_events_processes_and_functions() {
    if !needs(&[Need::Tool("zsh")]) {
        return;
    }
    let session = with_recording();
    let check = |typed: &str, expected: &str| {
        let (program, _) = program(typed);
        let script = format!(
            r#"
            PATH="${{PROF:h}}:$PATH"
            zmodload zsh/zpty
            zpty shell zsh -f -i
            zpty -w shell 'PS1=; autoload -U compinit; compinit -u -D; source <({program} --generate complete-zsh); echo rea""dy'
            zpty -r -m shell whole '*ready*'
            zpty -w -n shell $'{typed}\t'
            zpty -r -m shell line '*{expected}*'
            print -r -- $line
            zpty -d shell
            "#
        );
        let mut command = session.command(Path::new("zsh"), ["-f", "-c", &script]);
        command.env("PROF", prof()).env("HOME", session.directory());
        let found = Outcome::of(command);
        assert!(found.stdout.contains(expected), "{typed}: {found}");
    };
    check("prof rec", "record");
    check("prof record -e sched:sched_swi", "sched:sched_switch");
    check("prof annotate thread_m", "thread_main");
    check("prof push --serv", "--service");
    check("prof-fleet pus", "push");
}

#[test]
fn each_verb_has_a_manual_page() {
    let session = Session::new();
    let check = |program: &str, kind: &str, title: &str| {
        let program = prof().with_file_name(program);
        let page = Outcome::of(session.command(&program, ["--generate", kind]));
        page.assert_code(0);
        assert!(page.stdout.contains(&format!(".TH {title} 1")), "{page}");
    };
    check("prof", "man", "prof");
    check("prof", "man-record", "prof-record");
    check("prof", "man-cargo-prof", "cargo-prof");
    check("prof", "man-cargo-prof-stat", "cargo-prof-stat");
    check("prof", "man-push", "prof-push");
    check("prof-fleet", "man", "prof-fleet");
    check("prof-fleet", "man-push", "prof-push");
    check("prof-fleet", "man-data-check", "prof-data-check");
    let unknown = session.run(["--generate", "man-page"]);
    unknown.assert_refused(&["error: --generate man-page: there is no such page or script"]);
}
