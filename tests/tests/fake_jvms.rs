//! Processes that pose as JVMs: prof requests the names of their code, and waits for none of them
//! longer than it says.

use std::process::Child;

use prof_tests::{Outcome, Program, Session, spawn_ready};

const FAKE: Program = Program::c(&["fake_jvm.c"]);

/// A running fake, which ends when it is dropped.
struct Fake(Child);

impl Fake {
    fn start(session: &Session, failure: &str) -> Self {
        let library = session.write("libjvm.so", &[0; 4096]);
        let fake = session.install(&FAKE.build());
        let words = [library.to_str().unwrap(), failure];
        Self(spawn_ready(session.command(&fake, words)))
    }

    /// Records it, which must end.
    fn record(&self, session: &Session) -> Outcome {
        let pid = self.0.id().to_string();
        session.run(["record", "-d", "0.2", "-e", "cpu-clock:u", "-p", &pid])
    }

    /// Records it, and checks what prof says.
    fn assert_given_up(&self, session: &Session) {
        let outcome = self.record(session);
        let pid = self.0.id();
        let said = format!("the JVM {pid} did not name the code it compiled: it does not answer");
        outcome.assert_code(0).assert_says(&[&said]);
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        drop(self.0.stdin.take());
        let _ = self.0.wait();
    }
}

#[test]
fn one_that_accepts_nobody_is_given_up() {
    let session = Session::new();
    Fake::start(&session, "full").assert_given_up(&session);
}

#[test]
fn one_that_answers_a_byte_at_a_time_is_given_up() {
    let session = Session::new();
    Fake::start(&session, "drip").assert_given_up(&session);
}

#[test]
fn a_signal_ends_the_wait() {
    let session = Session::new();
    let fake = Fake::start(&session, "signal");
    // It sends the signal when prof has connected, which may be late on a busy machine.
    let is_ended = || {
        let outcome = fake.record(&session);
        let said = outcome.stderr.contains("a signal ended the wait");
        said && outcome.status.success()
    };
    assert!((0..5).any(|_| is_ended()));
}
