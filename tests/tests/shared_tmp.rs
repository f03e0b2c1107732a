//! Files in a directory where everybody may write: other users neither take prof's place there nor
//! find anything of its.

use prof_tests::{Outcome, Session};

/// A command may leave programs running, which keep its environment: what that names must not be a
/// place that others can fill once prof has left it.
#[test]
fn nothing_that_outlives_prof_points_to_where_others_can_write() {
    let session = Session::new();
    // Whatever runtimes are installed: theirs need not be executable to be found.
    for runtime in ["php", "node", "erl", "mono", "dotnet"] {
        session.write(runtime, b"");
    }
    let path = std::env::var("PATH").unwrap();
    let path = format!("PATH={path}:{}", session.directory().display());
    let printed = |command: &[&str]| {
        let words = [&[&*path], command].concat();
        let outcome = Outcome::of(session.command("env".as_ref(), words));
        outcome.assert_code(0);
        let mut variables: Vec<_> = outcome.stdout.lines().map(String::from).collect();
        // The shell's own: the command that it runs.
        variables.retain(|line| !line.starts_with("_="));
        variables
    };
    let prof = prof_tests::prof().to_str().unwrap();
    let before = printed(&["sh", "-c", "env"]);
    let during = printed(&[prof, "record", "--", "sh", "-c", "env"]);
    for set in during.iter().filter(|line| !before.contains(line)) {
        assert!(!set.contains('/'), "{set}");
    }
}
