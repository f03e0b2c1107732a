//! Waiting for effects of a running program.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Waits until something is so that `child` brings about, without taking the CPU from it.
///
/// # Panics
/// If it ends before.
pub fn wait_until(child: &mut Child, is_so: impl Fn() -> bool) {
    while !is_so() {
        if let Some(status) = child.try_wait().unwrap()
            && !is_so()
        {
            let mut said = String::new();
            if let Some(errors) = &mut child.stderr {
                errors.read_to_string(&mut said).unwrap();
            }
            panic!("it has ended too early: {status}: {said}");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Starts a program with piped input and output, and waits until it has written that it is ready.
///
/// # Panics
/// If it does not start, or writes something else.
pub fn spawn_ready(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut line = String::new();
    // The pipe stays open: the program may write more.
    let output = child.stdout.as_mut().unwrap();
    BufReader::new(output).read_line(&mut line).unwrap();
    assert_eq!(line, "ready\n");
    child
}
