//! What `prof --generate` prints, used as its readers use it.

use std::path::Path;

use prof_tests::{Outcome, Session, prof};

/// Has bash complete the last of these words, as it does when somebody presses Tab.
fn completed(session: &Session, words: &str) -> String {
    let script = format!(
        r#"
        PATH="$(dirname "$PROF"):$PATH"
        source <(prof --generate complete-bash)
        COMP_WORDS=({words})
        COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _clap_complete_prof prof "${{COMP_WORDS[COMP_CWORD]}}"
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
fn bash_completes_verbs_flags_events_and_processes() {
    let session = Session::new();
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
    let own = std::process::id().to_string();
    check(&format!("prof record -p {own}"), &own);
}

#[test]
fn each_verb_has_a_manual_page() {
    let session = Session::new();
    let check = |kind: &str, title: &str| {
        let page = session.run(["--generate", kind]);
        page.assert_code(0);
        assert!(page.stdout.contains(title), "{page}");
    };
    check("man", ".TH prof 1");
    check("man-record", ".TH prof-record 1");
    check("man-cargo-prof", ".TH cargo-prof 1");
    let unknown = session.run(["--generate", "man-page"]);
    unknown.assert_refused(&["man-page", "complete-zsh"]);
}
