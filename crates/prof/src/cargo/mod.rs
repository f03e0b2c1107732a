//! `cargo prof`: build a target with debug info, record it, draw its flamegraph.

mod build;
mod choose;

use std::env::args_os;
use std::ffi::OsString;
use std::iter::once;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

use prof_recorder::{Program, Target};

use crate::console::Console;
use crate::flags::{CargoFlags, CourseFlags, SamplingFlags, StorageFlags};
use crate::record::{self, Job, Wanted};

/// Does what the flags say; the exit code is that of the program that was recorded.
pub(crate) fn run(flags: CargoFlags) -> Result<ExitCode> {
    let console = Console::new(flags.sampling.quiet, flags.sampling.verbose);
    let (recording, flamegraph) = outputs(flags.sampling.output, flags.flamegraph)?;
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
        sampling: SamplingFlags {
            output: recording,
            ..flags.sampling
        },
        schedule: CourseFlags::default(),
        storage: StorageFlags::default(),
        // As it was typed: cargo starts us as `cargo-prof prof ...`.
        command_line: once("cargo".into()).chain(args_os().skip(1)).collect(),
        flamegraph: Some(flamegraph),
        html: None,
    })
}

/// Where the recording and the flamegraph go. Whoever writes `-o my.svg` means the picture.
fn outputs(output: PathBuf, flamegraph: Option<PathBuf>) -> Result<(PathBuf, PathBuf)> {
    match (record::is_picture(&output), flamegraph) {
        (true, Some(flamegraph)) => bail!(
            "-o {} is a picture, and so is --flamegraph {}: name one of them",
            output.display(),
            flamegraph.display()
        ),
        (true, None) => Ok((SamplingFlags::DEFAULT_OUTPUT.into(), output)),
        (false, flamegraph) => Ok((output, flamegraph.unwrap_or("flamegraph.svg".into()))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_no_recording() {
        let check = |output: &str, flamegraph: Option<&str>, expected: Option<(&str, &str)>| {
            let found = outputs(output.into(), flamegraph.map(PathBuf::from)).ok();
            let expected = expected.map(|(recording, svg)| (recording.into(), svg.into()));
            assert_eq!(found, expected, "{output} {flamegraph:?}");
        };
        check("prof.data", None, Some(("prof.data", "flamegraph.svg")));
        check("my.svg", None, Some(("prof.data", "my.svg")));
        check("my.data", Some("a.svg"), Some(("my.data", "a.svg")));
        check("my.svg", Some("a.svg"), None);
    }
}
