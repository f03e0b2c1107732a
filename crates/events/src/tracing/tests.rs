use std::collections::HashSet;
use std::process::{Command, Stdio};

use super::*;
use crate::HeldCommand;
use crate::Program;
use crate::Signals;

/// Runs a command to its end, traced with all its children, and returns the stops.
fn trace(argv: &[&str]) -> (Vec<Stopped>, std::process::ExitStatus) {
    let signals = Signals::block().expect("signalfd");
    let held = HeldCommand::fork(&Program::new(argv), &signals).expect("it forks");
    let tracer = Tracer::new(Some(held.pid()));
    tracer.seize(held.pid()).expect("our child may be traced");
    let mut command = held.release().expect("it starts");
    let mut seen = Vec::new();
    loop {
        while let Some(stopped) = tracer.next() {
            seen.push(stopped);
            match stopped.why {
                Why::Signal(signal) => tracer.resume(stopped.tid, signal),
                Why::GroupStop => tracer.leave_stopped(stopped.tid),
                Why::Gone => {}
                _ => tracer.resume(stopped.tid, 0),
            }
        }
        if let Some(status) = command.try_wait().expect("it is our child") {
            return (seen, status);
        }
        std::thread::yield_now();
    }
}

fn saw(seen: &[Stopped], accept: impl Fn(&Why) -> bool) -> usize {
    seen.iter().filter(|stopped| accept(&stopped.why)).count()
}

#[test]
fn programs_and_processes_are_followed() {
    let (seen, status) = trace(&["sh", "-c", "true & /bin/true; /bin/true; wait; exit 7"]);
    assert_eq!(status.code(), Some(7));
    assert_eq!(saw(&seen, |why| matches!(why, Why::Exec { .. })), 3);
    let made = saw(&seen, |why| matches!(why, Why::Made(_)));
    assert_eq!(made, 3, "{seen:?}");
    let processes: HashSet<Tid> = seen.iter().map(|stopped| stopped.tid).collect();
    assert_eq!(processes.len(), 4);
    assert_eq!(saw(&seen, |why| *why == Why::Exiting), 4);
}

#[test]
fn signals_reach_the_target_as_they_were_sent() {
    let script = "trap 'exit 5' USR1; kill -USR1 $$; while :; do :; done";
    let (seen, status) = trace(&["sh", "-c", script]);
    assert_eq!(status.code(), Some(5));
    assert_eq!(saw(&seen, |why| *why == Why::Signal(libc::SIGUSR1)), 1);
    let (_, status) = trace(&["sh", "-c", "kill -TERM $$; exit 3"]);
    assert_eq!(status.code(), None, "it was killed");
    let (_, status) = trace(&["sh", "-c", "kill -KILL $$; exit 3"]);
    assert_eq!(status.code(), None, "it was killed");
}

#[test]
fn a_stopped_process_stays_stopped_until_it_is_continued() {
    let script = "(kill -STOP $$; until grep -q 'State:.[Tt]' /proc/$$/status; do :; done; kill -CONT $$) & wait; wait; exit 9";
    let (seen, status) = trace(&["bash", "-c", script]);
    assert_eq!(status.code(), Some(9), "{seen:?}");
    assert!(saw(&seen, |why| *why == Why::GroupStop) >= 1, "{seen:?}");
}

#[test]
fn registers_are_those_that_the_program_has() {
    let mut child = Command::new("sh")
        .args(["-c", "while :; do :; done"])
        .stdin(Stdio::null())
        .spawn()
        .expect("it starts");
    let tid = child.id() as Tid;
    let tracer = Tracer::new(Some(tid));
    tracer.seize(tid).expect("our child may be traced");
    let registers = loop {
        let _ = tracer.interrupt(tid);
        if let Some(stopped) = tracer.next() {
            if stopped.why == Why::Interrupted {
                break tracer.registers(tid).expect("it is stopped");
            }
            tracer.resume(tid, 0);
        }
    };
    let maps = std::fs::read_to_string(format!("/proc/{tid}/maps")).expect("maps");
    let holds = |address: u64, line: &str| {
        let (range, _) = line.split_once(' ')?;
        let (start, end) = range.split_once('-')?;
        let hex = |text| u64::from_str_radix(text, 16).ok();
        Some((hex(start)?..hex(end)?).contains(&address))
    };
    let line_of = |address| maps.lines().find(|line| holds(address, line) == Some(true));
    let (code, stack) = (line_of(registers.ip), line_of(registers.sp));
    // Killed before anything is checked.
    child.kill().expect("it is our child");
    tracer.resume(tid, 0);
    child.wait().expect("it is our child");
    assert!(
        code.is_some_and(|line| line.contains(" r-xp ")),
        "{registers:x?}\n{maps}"
    );
    assert!(
        stack.is_some_and(|line| line.contains("[stack]")),
        "{registers:x?}\n{maps}"
    );
    let user = registers.user.expect("a 64-bit program");
    assert_eq!(user.stack_pointer(), Some(registers.sp));
    assert_eq!(user.instruction_pointer(), Some(registers.ip));
}

#[test]
fn untraceable_processes_are_refused() {
    let tracer = Tracer::new(None);
    assert_eq!(tracer.seize(i32::MAX), Err(Errno::SRCH));
    assert_eq!(tracer.seize(std::process::id() as Tid), Err(Errno::PERM));
}
