//! The tracing thread: takes hold of the targets, and stops them at a rate.

use std::io::PipeReader;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

use prof_events::tracing::Errno;
use prof_events::{ChildSignals, Threads, wait_readable};
use prof_model::Pid;
use prof_procfs::settings::setting;
use prof_procfs::{Status, Task};

use super::poll_interval::PollInterval;
use super::shared::Shared;
use super::tracees::Tracees;
use crate::error::Error;

/// Begins to trace the targets.
pub(super) fn seize(tracees: &mut Tracees, threads: &Threads) -> Result<(), Error> {
    match threads {
        Threads::UntilExec(tid) => {
            let seized = tracees.seize_held(*tid);
            seized.map_err(|errno| refused(*tid, errno))
        }
        Threads::Of(pids) => pids.iter().try_for_each(|&pid| {
            let seized = tracees.seize_process(pid);
            seized.map_err(|errno| refused(pid, errno))
        }),
        Threads::Only(tids) => tids.iter().try_for_each(|&tid| {
            let seized = tracees.seize_thread(tid);
            seized.map_err(|errno| refused(tid, errno))
        }),
        // Refused before anything started.
        Threads::OnCpus(_) => Err(Error::NotOfCpus),
    }
}

/// The tracing thread's loop.
pub(super) fn trace(
    mut tracees: Tracees,
    children: &ChildSignals,
    stopped: &PipeReader,
    hertz: u64,
    shared: &Shared,
) {
    let mut poll_interval = PollInterval::new(hertz, Instant::now());
    let mut was_off = false;
    loop {
        let rest = poll_interval.rest(Instant::now());
        if !rest.is_zero()
            && wait_readable(&[children.as_fd(), stopped.as_fd()], Some(rest)).is_err()
        {
            return;
        }
        if shared.stop.load(Ordering::Acquire) {
            tracees.finish();
            shared.append(&mut tracees.builder.out);
            return;
        }
        children.clear();
        tracees.attend();
        let begin = Instant::now();
        if poll_interval.rest(begin).is_zero() {
            let off = shared.off.load(Ordering::Acquire);
            if !off {
                if was_off {
                    tracees.forget_time();
                }
                tracees.poll();
            }
            was_off = off;
            poll_interval.polled(begin, Instant::now());
            tracees.attend();
        }
        let all_ended = tracees.all_ended();
        shared.all_ended.store(all_ended, Ordering::Release);
        if all_ended {
            // Their ends are among the records, and so is the end of the recording.
            shared.signals_each.store(true, Ordering::Relaxed);
        }
        shared.append(&mut tracees.builder.out);
        if let Some(program) = tracees.builder.unprivileged.take() {
            let _ = shared.unprivileged.set(program);
        }
        if all_ended {
            return;
        }
    }
}

/// The error if a process may not be traced.
fn refused(pid: Pid, errno: Errno) -> Error {
    let process = Task::of(pid);
    let has_ended = process.stat().is_ok_and(|stat| stat.state.has_ended());
    let status = process.status().ok().filter(|_| !has_ended);
    let scope = setting("kernel/yama/ptrace_scope").unwrap_or(0);
    let own = prof_events::system::Privileges::read().unwrap_or_default();
    let tracer = status.as_ref().and_then(Status::tracer);
    let user = status.as_ref().and_then(Status::users);
    let advice = match tracer {
        None => "it does not exist, or has ended".into(),
        Some(tracer) if tracer != 0 => {
            format!("process {tracer} traces it already (a debugger?)")
        }
        Some(_) if user.is_some_and(|user| user.real != own.user) => {
            "it belongs to another user: run prof as its user or as root".into()
        }
        Some(_) if scope > 0 => format!(
            "kernel.yama.ptrace_scope is {scope}: start the program with prof, or `sudo sysctl \
             kernel.yama.ptrace_scope=0`"
        ),
        Some(_) => "a sandbox forbids it, too (in Docker and Podman: start the container with \
                    --security-opt seccomp=unconfined, or --cap-add SYS_PTRACE)"
            .into(),
    };
    Error::Tracing {
        pid,
        source: errno.into(),
        advice,
    }
}
