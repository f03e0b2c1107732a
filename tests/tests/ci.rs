//! `prof ci` on two builds of a program.

use prof_tests::{Outcome, Session};

/// Does so much in `parse`, and always the same in `render`.
fn program(session: &Session, rounds: u32) {
    session.write(
        "program.c",
        b"volatile long sum;\n\
          __attribute__((noinline)) void parse(void) {\n\
              for (long i = 0; i < ROUNDS * 800000L; i++) sum += i;\n\
          }\n\
          __attribute__((noinline)) void render(void) {\n\
              for (long i = 0; i < 800000000L; i++) sum += i;\n\
          }\n\
          int main(void) { parse(); render(); }\n",
    );
    let mut build = session.command("gcc".as_ref(), ["-O1", "-g", "-o", "program", "program.c"]);
    build.arg(format!("-DROUNDS={rounds}"));
    Outcome::of(build).assert_code(0);
}

fn ci(session: &Session, options: &[&str]) -> Outcome {
    let fixed = ["ci", "--repeat", "4", "-F", "1999", "-e", "cpu-clock:u"];
    session.run([&fixed, options, &["--", "./program"]].concat())
}

#[test]
fn a_function_that_grew_is_named() {
    let session = Session::alone();
    program(&session, 200);
    ci(&session, &[]).assert_refused(&["prof ci --save-baseline"]);
    ci(&session, &["--save-baseline"]).assert_code(0);
    let same = ci(&session, &[]);
    same.assert_code(0);
    assert!(
        same.stdout.starts_with("## prof ci: no function grew"),
        "{same}"
    );
    program(&session, 400);
    let slower = ci(&session, &[]);
    slower.assert_code(3);
    assert!(
        slower.stdout.starts_with("## prof ci: parse grew"),
        "{slower}"
    );
    let row = slower
        .stdout
        .lines()
        .find(|line| line.contains("| parse |"));
    assert!(row.is_some_and(|row| row.contains("**grew**")), "{slower}");
    // Only what is asked for counts.
    ci(&session, &["--fail-above", "1:render"]).assert_code(0);
}

#[test]
fn what_fails_is_passed_on() {
    let session = Session::new();
    let failing = session.run(["ci", "--save-baseline", "--", "sh", "-c", "exit 7"]);
    failing.assert_code(7);
    let gone = session.run(["ci", "--save-baseline", "--", "./gone"]);
    gone.assert_code(127);
}
