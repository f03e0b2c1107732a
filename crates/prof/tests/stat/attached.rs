//! Counting in running processes.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use super::{prof, stderr};

#[test]
fn running_processes_are_counted_until_they_end() {
    let mut target = Command::new("sh")
        .args(["-c", "read x; ls / >/dev/null; read x; :"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let pid = target.id().to_string();
    let mut stat = Command::new(env!("CARGO_BIN_EXE_prof"))
        .args(["stat", "-I", "10", "-x,", "-e", "page-faults:u", "-p", &pid])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut printed = stat.stderr.take().unwrap();
    // Its first output shows that it counts.
    printed.read_exact(&mut [0]).unwrap();
    let mut input = target.stdin.take().unwrap();
    input.write_all(b"go\nend\n").unwrap();
    drop(input);
    target.wait().unwrap();
    let mut text = String::new();
    printed.read_to_string(&mut text).unwrap();
    assert!(stat.wait().unwrap().success());
    let counts = text
        .lines()
        .filter_map(|line| line.split(',').nth(1)?.parse::<u64>().ok());
    assert!(counts.sum::<u64>() > 50, "{text}");
    let gone = prof(&["stat", "-e", "faults:u", "-p", &pid]);
    assert_eq!(gone.status.code(), Some(1));
    assert!(stderr(&gone).contains("there is no process"), "{gone:?}");
}
