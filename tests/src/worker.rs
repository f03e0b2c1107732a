//! The process that does the work of a prof that was started.

use std::fs;
use std::process::Child;

use crate::waiting::wait_until;

/// The id of the only child of a running prof; waits until there is one.
pub fn worker(prof: &mut Child) -> u32 {
    let started = prof.id();
    wait_until(prof, || only_child(started).is_some());
    only_child(started).unwrap_or(started)
}

/// `None` if there is none yet.
pub(crate) fn only_child(of: u32) -> Option<u32> {
    let entries = fs::read_dir("/proc").ok()?;
    let processes = entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
    let mut children = processes.filter(|&pid| parent(pid) == Some(of));
    children.next()
}

fn parent(pid: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}
