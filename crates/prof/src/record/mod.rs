//! `prof record`: recording, and the messages at the end.

mod events;
mod options;

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{ExitCode, ExitStatus};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use prof_console::Console;
use prof_model::{StackEnd, Verdict, byte_size, counted};
use prof_recorder::{CallGraph, Options, Signals, Summary, Target};
use prof_report::Filter;

use crate::exit;
use crate::flags::{RecordFlags, SamplingFlags, ScheduleFlags, StorageFlags, SymbolFlags};
use crate::output::ensure_writable;
use crate::report;
use crate::runtimes::RuntimeHelp;
use crate::symbolization;
use crate::targets::TargetRequest;
use options::{schedule, storage};

pub(crate) use options::{options, target_request};

/// A recording to make.
pub(crate) struct Job {
    /// What to record.
    pub target: TargetRequest,
    /// How to record it, and where to.
    pub sampling: SamplingFlags,
    /// When to sample.
    pub schedule: ScheduleFlags,
    /// How to write the recording.
    pub storage: StorageFlags,
    /// The command line to store in the recording.
    pub(crate) command_line: Vec<OsString>,
    /// The pictures to draw of the recording.
    pub pictures: Pictures,
}

/// Pictures of a recording.
#[derive(Default)]
pub(crate) struct Pictures {
    /// Draw this flamegraph.
    pub flamegraph: Option<PathBuf>,
    /// Write this page for browsers.
    pub html: Option<PathBuf>,
    /// Which frames they show.
    pub filter: Filter,
}

impl Pictures {
    fn paths(&self) -> impl Iterator<Item = &PathBuf> {
        [&self.flamegraph, &self.html].into_iter().flatten()
    }

    /// Draws them from a recording; `drawn` is called after each.
    fn make(&self, recording: &Path, drawn: impl Fn(&Path)) -> Result<()> {
        if let Some(svg) = &self.flamegraph {
            report::draw_recording(recording, svg, &self.filter)?;
            drawn(svg);
        }
        if let Some(page) = &self.html {
            report::write_page(recording, page, &self.filter)?;
            drawn(page);
        }
        Ok(())
    }
}

/// `prof record`.
///
/// # Errors
///
/// Those of [`run`].
pub(crate) fn verb(mut flags: RecordFlags) -> Result<ExitCode> {
    ensure!(
        !flags.branch_any,
        "-b: prof does not record branches; --call-graph lbr finds callers in the CPU's branch records"
    );
    let sleep = flags.target.take_sleep()?;
    flags.sampling.duration = flags.sampling.duration.or(sleep);
    run(Job {
        target: target_request(flags.target, flags.sampling.output == Path::new("-")),
        sampling: flags.sampling,
        schedule: flags.schedule,
        storage: flags.storage,
        command_line: std::env::args_os().collect(),
        pictures: Pictures {
            flamegraph: flags.flamegraph,
            html: flags.html,
            filter: Filter::default(),
        },
    })
}

/// Records, reports the result, and exits as the recorded command did.
///
/// # Errors
///
/// Nothing could be recorded, or the recording could not be written or drawn.
pub(crate) fn run(job: Job) -> Result<ExitCode> {
    check(&job)?;
    // Before any thread starts: threads inherit the blocked signals.
    let signals = match job.storage.when() {
        Some(_) => Signals::block_with_rotation(),
        None => Signals::block(),
    }
    .context("cannot watch for signals")?;
    prof_events::remove_leftovers();
    RuntimeHelp::remove_leftovers();
    let console = Console::new(job.sampling.quiet, job.sampling.verbose);
    let target = job.target.find(&signals, console)?;
    // Symbols can be embedded in a file only.
    let is_left_alone = job.sampling.no_runtime_help || job.sampling.output == Path::new("-");
    let help = |target: &mut Target| match is_left_alone {
        true => RuntimeHelp::none(),
        false => RuntimeHelp::prepare(target, &job.sampling.output),
    };
    let schedule = schedule(job.schedule, job.sampling.duration, job.sampling.quiet)?;
    let mut options = options(target, &job.sampling, schedule, job.command_line)?;
    options.storage = storage(&job.storage, job.sampling.quiet);
    let mut runtimes = help(&mut options.target);
    let summary = loop {
        match prof_recorder::record(&options, &signals) {
            Ok(summary) => break summary,
            Err(error) if job.target.is_by_name() && error.has_no_target() => {
                options.target = job.target.find(&signals, console)?;
                runtimes = help(&mut options.target);
            }
            Err(error) => {
                let code = exit::code_of(&error);
                Console::error(&error.into());
                return Ok(code);
            }
        }
    };
    // A signal that ends a recording may come twice, as from `timeout`: the second is ignored. One
    // that comes later ends what prof waits for.
    let ignore_repeated = || {
        if summary.stopped_by.is_some() {
            while signals.next().is_some() {}
        }
    };
    ignore_repeated();
    runtimes.finish(&summary, &signals, console);
    let verdict = verdict(&summary, &options)?;
    print(console, &summary, &options, &verdict);
    ignore_repeated();
    // From here on a signal ends prof as usual: the recording is safe, its verdict printed.
    drop(signals);
    let shown = show(
        &summary.files,
        job.sampling.embed_symbols,
        &job.pictures,
        console,
    );
    match (shown, summary.exit) {
        (Err(error), Some(status)) if !status.success() => {
            Console::error(&error);
            Ok(exit::like(status))
        }
        (shown, None) if summary.left_running => {
            shown.map(|()| exit::by_signal(summary.stopped_by.unwrap_or_default()))
        }
        (shown, exit) => shown.map(|()| exit_code(exit, job.sampling.strict, &verdict)),
    }
}

/// Reports errors now, not after a long recording.
fn check(job: &Job) -> Result<()> {
    job.pictures
        .paths()
        .try_for_each(|path| ensure_writable(path))?;
    if is_picture(&job.sampling.output) {
        anyhow::bail!(
            "-o names the recording, not a picture: use --flamegraph {}",
            job.sampling.output.display()
        );
    }
    let read_again = job.pictures.paths().count() > 0 || job.sampling.embed_symbols;
    if read_again && job.sampling.output == Path::new("-") {
        anyhow::bail!(
            "--flamegraph, --html and --embed-symbols need a file, not -o -: name one with -o"
        );
    }
    Ok(())
}

/// Whether a path is that of a picture, by its extension.
pub(crate) fn is_picture(path: &Path) -> bool {
    path.extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("svg"))
}

/// Embeds symbols in the recording and draws it, if requested.
fn show(recording: &[PathBuf], embed: bool, pictures: &Pictures, console: Console) -> Result<()> {
    for file in recording {
        if embed {
            let naming = symbolization::embed(file, file, &SymbolFlags::default())?;
            let unnamed = symbolization::unnamed(&naming);
            unnamed.iter().for_each(|line| console.say(line));
        }
        pictures.make(file, |path| {
            console.say(format_args!("wrote {}", path.display()));
        })?;
    }
    Ok(())
}

/// Only the outermost function's name shows whether frame pointers, or the kernel's or the CPU's
/// callers, led to the root.
fn verdict(summary: &Summary, options: &Options) -> Result<Verdict> {
    let mut events = options.groups.iter().flat_map(|group| &group.events);
    let found_by_others = events.any(|event| {
        matches!(
            event.call_graph,
            CallGraph::FramePointers | CallGraph::LastBranches
        )
    });
    let quality = &summary.quality;
    let ended = quality.stacks.get(&StackEnd::FramePointersEnded);
    // Names take time, so half a percent of the stacks is left alone.
    let is_open = ended.is_some_and(|&stacks| stacks > quality.user_stacks() / 200);
    Ok(
        match (found_by_others || is_open) && !summary.files.is_empty() {
            true => Verdict::new(&report::quality(&summary.files)?),
            false => Verdict::new(quality),
        },
    )
}

fn print(console: Console, summary: &Summary, options: &Options, verdict: &Verdict) {
    for fallback in &summary.quality.fallbacks {
        console.say(fallback);
    }
    let per_sample = summary.bytes.checked_div(summary.samples).unwrap_or(0);
    let wrote = match options.storage.rotation {
        None => options.output.display().to_string(),
        Some(_) => counted(summary.files.len() as u64, "file"),
    };
    console.say(format_args!(
        "wrote {wrote}: {}, {}, in {}",
        counted(summary.samples, "sample"),
        byte_size(summary.bytes),
        Seconds(summary.duration),
    ));
    if summary.left_running {
        console.say("the command goes on: a second signal ended the recording before it");
    }
    console.detail(format_args!(
        "sampled {}, {per_sample} bytes per sample",
        summary.events.join(", ")
    ));
    console.detail(summary.wakeups);
    console.say(verdict);
}

/// The command's own status is passed on; a bad verdict changes it only if the command succeeded.
fn exit_code(status: Option<ExitStatus>, strict: bool, verdict: &Verdict) -> ExitCode {
    match status {
        Some(status) if !status.success() => exit::like(status),
        _ if strict && !verdict.grade.is_trusted() => exit::CHECK_FAILED.into(),
        _ => ExitCode::SUCCESS,
    }
}

struct Seconds(Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            short if short < Duration::from_secs(1) => write!(f, "{} ms", short.as_millis()),
            long => write!(f, "{:.1} s", long.as_secs_f64()),
        }
    }
}
