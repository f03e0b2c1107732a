//! `cargo prof`: build a target with debug info, record it, draw its flamegraph.

mod build;
mod choose;

use std::env::args_os;
use std::ffi::OsString;
use std::iter::once;
use std::process::ExitCode;

use anyhow::Result;

use prof_recorder::{Program, Target};

use crate::console::Console;
use crate::flags::{CargoFlags, CourseFlags, StorageFlags};
use crate::record::{self, Job, Wanted};

/// Does what the flags say; the exit code is that of the program that was recorded.
pub(crate) fn run(flags: CargoFlags) -> Result<ExitCode> {
    let console = Console::new(flags.sampling.quiet, flags.sampling.verbose);
    let choice = choose::choose(&flags.target)?;
    let built = build::build(&flags.target, &choice)?;
    console.detail(format_args!("recording {}", built.executable.display()));
    let mut argv: Vec<OsString> = vec![built.executable.into_os_string()];
    argv.extend(choice.leading_arguments().map(OsString::from));
    argv.extend(flags.args);
    record::run(Job {
        target: Wanted::Known(Target::Command(Program {
            argv,
            environment: built.environment,
            directory: built.directory,
            stdout_is_stderr: false,
        })),
        sampling: flags.sampling,
        course: CourseFlags::default(),
        storage: StorageFlags::default(),
        // As it was typed: cargo starts us as `cargo-prof prof ...`.
        command_line: once("cargo".into()).chain(args_os().skip(1)).collect(),
        flamegraph: Some(flags.flamegraph),
    })
}
