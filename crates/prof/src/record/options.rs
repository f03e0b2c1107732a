//! From flags to the options of a recording.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use prof_console::say;
use prof_model::counted;
use prof_recorder::{
    Backend, Control, CpuTarget, Delay, Options, Program, Rotation, Schedule, Storage, Target,
};

use super::events;
use crate::flags::{
    ControlFlag, CpuList, DelayFlag, SamplerFlag, SamplingFlags, ScheduleFlags, StorageFlags,
    TargetSelection,
};
use crate::targets::TargetRequest;

/// The target of these flags. `stdout_is_taken`: the recording goes to the standard output, and the
/// command's output to its standard error output.
pub(crate) fn target_request(flags: TargetSelection, stdout_is_taken: bool) -> TargetRequest {
    let with_subprocesses = flags.subprocesses;
    let request = without_subprocesses(flags, stdout_is_taken);
    match with_subprocesses {
        true => TargetRequest::WithSubprocesses(Box::new(request)),
        false => request,
    }
}

fn without_subprocesses(flags: TargetSelection, stdout_is_taken: bool) -> TargetRequest {
    let program = (!flags.command.is_empty()).then(|| Program {
        stdout_is_stderr: stdout_is_taken,
        ..Program::new(flags.command)
    });
    let cpu_wide = flags.all_cpus || flags.cpus.is_some() || flags.cgroup.is_some();
    TargetRequest::Known(match (flags.name, program) {
        (Some(pattern), _) => {
            let wait = flags.wait;
            return TargetRequest::Named { pattern, wait };
        }
        (None, command) if cpu_wide => Target::Cpus(CpuTarget {
            cpus: flags.cpus.map(|CpuList(cpus)| cpus),
            cgroup: flags.cgroup,
            command,
        }),
        (None, Some(program)) => Target::Command(program),
        (None, None) if flags.tids.is_empty() => Target::Processes(flags.pids),
        (None, None) => Target::Threads(flags.tids),
    })
}

/// The options of the recording, except how it is written.
///
/// # Errors
///
/// There is no such event.
pub(crate) fn options(
    target: Target,
    flags: &SamplingFlags,
    schedule: Schedule,
    command_line: Vec<OsString>,
) -> Result<Options> {
    Ok(Options {
        groups: events::groups(&target, flags)?,
        target,
        backend: match flags.sampler {
            SamplerFlag::Auto => Backend::Automatic,
            SamplerFlag::Perf => Backend::Events,
            SamplerFlag::Ptrace => Backend::Ptrace,
        },
        unwind: !flags.no_unwind,
        ring_bytes: flags.mmap_pages,
        schedule,
        output: flags.output.clone(),
        storage: Storage::default(),
        limits: None,
        command_line,
    })
}

/// When to sample.
///
/// # Errors
///
/// The FIFO or descriptor for commands cannot be opened, or is needed.
pub(super) fn schedule(
    flags: ScheduleFlags,
    duration: Option<Duration>,
    quiet: bool,
) -> Result<Schedule> {
    let control = flags.control.map(|flag| match flag {
        ControlFlag::Fifos(commands, answers) => Control::fifos(&commands, answers.as_deref()),
        ControlFlag::Descriptors(commands, answers) => Control::descriptors(commands, answers),
    });
    if flags.delay == Some(DelayFlag::UntilEnabled) && control.is_none() {
        anyhow::bail!(
            "--delay -1 waits for a command from --control: add --control with a FIFO \
                       or a descriptor"
        );
    }
    Ok(Schedule {
        delay: match flags.delay {
            None => Delay::None,
            Some(DelayFlag::After(time)) => Delay::After(time),
            Some(DelayFlag::UntilEnabled) => Delay::UntilEnabled,
        },
        duration,
        control: control
            .transpose()
            .context("cannot open the FIFO or descriptor of --control")?,
        again: flags.repeat.saturating_sub(1),
        unfinished: (!quiet).then_some(print_unfinished),
    })
}

/// How to write the recording.
pub(super) fn storage(flags: &StorageFlags, quiet: bool) -> Storage {
    Storage {
        compression: flags.compression,
        max_size: flags.max_size,
        rotation: flags.when().map(|when| Rotation {
            when,
            most_files: flags.switch_max_files.map(|most| most as usize),
            completed: (!quiet).then_some(print_completed),
        }),
        streaming: None,
    }
}

fn print_unfinished(records: usize) {
    say(&format_args!(
        "sampling has ended; unwinding and writing the last {} (Ctrl-C writes them without callers)",
        counted(records as u64, "record")
    ));
}

fn print_completed(file: &Path) {
    say(&format_args!("wrote {}", file.display()));
}
