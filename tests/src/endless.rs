//! A program that is busy for as long as a test wants.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::program::Program;
use crate::session::{Session, copy_executable};

/// A running `endless`: its main thread is in `leading`, a thread named `helper` in `helping`.
/// Dropping it ends it.
pub struct Endless {
    child: Child,
    helper: i32,
}

impl Endless {
    /// A copy of the program under a name of its own.
    pub fn install(session: &Session, name: &str) -> PathBuf {
        let copy = session.path(name);
        copy_executable(&Program::c(&["endless.c"]).build(), &copy);
        copy
    }

    /// Starts a command that becomes the program, and waits until it is busy.
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        output.read_line(&mut line).unwrap();
        let helper = line.trim().parse();
        let helper = helper.unwrap_or_else(|_| panic!("{command:?} says {line:?}"));
        Self { child, helper }
    }

    /// Its process id, if no launcher in front of it forks.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// The number of its thread `helper`, in its own PID namespace.
    pub fn helper(&self) -> i32 {
        self.helper
    }

    /// Ends it.
    pub fn end(mut self) {
        self.stop();
    }

    fn stop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Drop for Endless {
    fn drop(&mut self) {
        self.stop();
    }
}
