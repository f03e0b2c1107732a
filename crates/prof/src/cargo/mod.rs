//! `cargo prof`: build a target with debug info, record it, draw its flamegraph.

mod build;
mod choose;
mod each;
mod harness;
mod runner;

use std::env::args_os;
use std::ffi::OsString;
use std::iter::once;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

use anyhow::{Result, anyhow, bail};
use prof_console::Console;
use prof_recorder::{Program, Target};
use prof_report::{Filter, Pattern};

use crate::flags::{
    CargoFlags, CargoFlamegraphFlags, CargoPictureFlags, CargoRecordFlags, CargoStatFlags,
    CargoTopFlags, CargoVerb, SamplingFlags, ScheduleFlags, StorageFlags, TargetFlags,
};
use crate::record::{self, Job, Pictures};
use crate::report;
use crate::targets::TargetRequest;
use build::Built;
use choose::Choice;

/// Executes the command; the exit code is that of the recorded program.
pub(crate) fn run(flags: CargoFlags) -> Result<ExitCode> {
    match flags.verb {
        None => draw(flags.flamegraph),
        Some(CargoVerb::Flamegraph(flags)) => draw(*flags),
        Some(CargoVerb::Html(mut flags)) => {
            let page = flags.pictures.html.take();
            flags.pictures.html = Some(page.unwrap_or("prof.html".into()));
            record(*flags)
        }
        Some(CargoVerb::Record(flags)) => record(*flags),
        Some(CargoVerb::Stat(flags)) => stat(*flags),
        Some(CargoVerb::Top(flags)) => top(*flags),
        Some(CargoVerb::Report(flags)) => report::run(*flags),
        Some(CargoVerb::View(flags)) => report::view(&flags),
        Some(CargoVerb::Annotate(flags)) => report::annotate(*flags),
        Some(CargoVerb::Diff(flags)) => report::diff(*flags).map(report::CheckedLimits::conclude),
    }
}

fn draw(mut flags: CargoRecordFlags) -> Result<ExitCode> {
    if flags.each.each.is_some() {
        return record(flags);
    }
    let (recording, flamegraph) = outputs(flags.sampling.output, flags.pictures.flamegraph)?;
    flags.sampling.output = recording;
    flags.pictures.flamegraph = Some(flamegraph);
    record(flags)
}

fn record(flags: CargoRecordFlags) -> Result<ExitCode> {
    let console = Console::new(flags.sampling.quiet, flags.sampling.verbose);
    answer(&flags.foreign, console)?;
    if flags.sampling.no_inherit {
        console.say(
            "-i (--no-inherit) records the first thread only; flamegraphs have their roots at the \
             top without it",
        );
    }
    let session = Session::build(&flags.target)?;
    let program = session.built.executable.display();
    console.detail(format_args!("recording {program}"));
    if let Some(pattern) = &flags.each.each {
        return each::run(&flags, &session, pattern);
    }
    let pictures = session.pictures(&flags.pictures);
    let args = session.only_run(flags.args, Session::SECONDS, console);
    let opened = pictures.html.clone().or(pictures.flamegraph.clone());
    let code = record::run(record_job(&session, args, flags.sampling, pictures))?;
    if let Some(picture) = opened.filter(|_| flags.pictures.open) {
        report::show_in_browser(&picture, console);
    }
    Ok(code)
}

/// Records the built program with these arguments.
fn record_job(
    session: &Session,
    args: Vec<OsString>,
    sampling: SamplingFlags,
    pictures: Pictures,
) -> Job {
    let Session { choice, built, .. } = session;
    Job {
        target: TargetRequest::Known(Target::Command(Program {
            argv: argv(built, choice, args).collect(),
            environment: built.environment.clone(),
            directory: built.directory.clone(),
            ..Program::default()
        })),
        sampling,
        schedule: ScheduleFlags::default(),
        storage: StorageFlags::default(),
        // As the user typed it: cargo starts us as `cargo-prof prof ...`.
        command_line: once("cargo".into()).chain(args_os().skip(1)).collect(),
        pictures,
    }
}

fn stat(flags: CargoStatFlags) -> Result<ExitCode> {
    let events = flags
        .events
        .into_iter()
        .map(|events| format!("--event={events}"));
    let repeat = flags.repeat.map(|repeat| format!("--repeat={repeat}"));
    run_verb("stat", events.chain(repeat), &flags.target, flags.args)
}

fn top(flags: CargoTopFlags) -> Result<ExitCode> {
    let rate = flags.rate.map(|rate| format!("--freq={rate}"));
    run_verb("top", rate, &flags.target, flags.args)
}

/// Builds the target and becomes `prof VERB OPTIONS -- PROGRAM ARGS`.
fn run_verb(
    verb: &str,
    options: impl IntoIterator<Item = String>,
    target: &TargetFlags,
    args: Vec<OsString>,
) -> Result<ExitCode> {
    let Session { choice, built, .. } = Session::build(target)?;
    let mut command = Command::new("/proc/self/exe");
    command.arg0("prof").arg(verb).args(options);
    command.arg("--").args(argv(&built, &choice, args));
    command.envs(built.environment);
    if let Some(directory) = built.directory {
        command.current_dir(directory);
    }
    Err(anyhow!("cannot start prof {verb}: {}", command.exec()))
}

/// A target that has been chosen and built.
struct Session {
    choice: Choice,
    built: Built,
    /// Cargo's build directory.
    target_directory: PathBuf,
}

impl Session {
    fn build(flags: &TargetFlags) -> Result<Self> {
        let (choice, target_directory) = choose::choose(flags)?;
        let built = build::build(flags, &choice)?;
        Ok(Self {
            choice,
            built,
            target_directory,
        })
    }

    /// How long Criterion runs each benchmark if all are in one recording.
    const SECONDS: u32 = 1;
    /// How long it runs each benchmark that has its own recording, which is to be compared.
    const SECONDS_EACH: u32 = 3;

    /// The user's arguments, and the flag that makes Criterion only run benchmarks.
    fn only_run(&self, mut args: Vec<OsString>, seconds: u32, console: Console) -> Vec<OsString> {
        if self.choice.is_benchmark() {
            let flags = harness::profile_time(&self.built.executable, &args, seconds);
            if !flags.is_empty() {
                console.say(format_args!(
                    "Criterion runs each benchmark for {seconds} s, without statistics \
                     (--profile-time {seconds}); flags after -- change that"
                ));
            }
            args.extend(flags);
        }
        args
    }

    /// The functions that pictures leave out.
    fn hidden(&self, keep_harness: bool) -> Option<Pattern> {
        let hides = self.choice.has_harness() && !keep_harness;
        hides.then(harness::functions).flatten()
    }

    fn pictures(&self, flags: &CargoPictureFlags) -> Pictures {
        Pictures {
            flamegraph: flags.flamegraph.clone(),
            html: flags.html.clone(),
            filter: Filter {
                no_inline: flags.no_inline,
                hide: self.hidden(flags.keep_harness),
                ..Filter::default()
            },
        }
    }
}

/// The command that cargo would run: its runner, the program, cargo's own arguments and the user's.
fn argv(built: &Built, choice: &Choice, args: Vec<OsString>) -> impl Iterator<Item = OsString> {
    let program = built.executable.clone().into_os_string();
    let leading = choice.leading_argument();
    // Users of cargo-flamegraph pass it themselves, and Criterion takes it once.
    let args = args.into_iter();
    let args = args.filter(move |arg| leading.is_none_or(|leading| arg != leading));
    let leading = leading.map(OsString::from);
    let runner = built.runner.iter().cloned();
    runner.chain(once(program)).chain(leading).chain(args)
}

/// Reports replacements for the flags of cargo-flamegraph that prof does not have.
fn answer(flags: &CargoFlamegraphFlags, console: Console) -> Result<()> {
    if let Some(command) = &flags.post_process {
        bail!(
            "--post-process is not supported: use `cargo prof record`, then `prof report --folded - \
             | {} | prof report -i - --flamegraph flamegraph.svg`",
            command.display()
        );
    }
    if flags.cmd.is_some() {
        bail!(
            "--cmd is not supported: prof needs no perf; its flags are perf's, such as -F, -e and \
             --call-graph"
        );
    }
    if flags.flamechart > 0 || !flags.palette.is_empty() {
        bail!(
            "--flamechart, --reverse, --inverted, --palette, --min-width, --image-width, --title, \
             --subtitle, --notes and --skip-after are for drawing: use `cargo prof record`, then \
             `cargo prof report` with --flamechart FILE, or --flamegraph FILE and --reverse, \
             --palette, --min-percent, --width, --title or --hide; roots are at the top already"
        );
    }
    if flags.compression_level.is_some() {
        console.say("--compression-level is not needed: recordings hold no stack dumps");
    }
    if flags.root.is_some() {
        console.say("--root is not needed: prof records your own programs without root");
    }
    Ok(())
}

/// The paths of the recording and the flamegraph. With `-o my.svg`, the user means the picture.
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
