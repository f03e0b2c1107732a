//! Records a command, for trying the recorder without the rest: `record FILE HZ COMMAND...`, or
//! `record FILE HZ -p PID` for a running process.
#![allow(clippy::print_stderr)]

use std::ffi::OsString;
use std::path::PathBuf;

use prof_model::Verdict;
use prof_recorder::{
    CallGraph, EventRequest, GroupRequest, Options, Program, Rate, Schedule, Signals, Storage,
    Target,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let signals = Signals::block()?;
    let mut arguments = std::env::args_os().skip(1);
    let output = PathBuf::from(arguments.next().ok_or("no FILE")?);
    let hertz = arguments.next().ok_or("no HZ")?.to_string_lossy().parse()?;
    let rest: Vec<OsString> = arguments.collect();
    let target = match rest.as_slice() {
        [option, pid] if option == "-p" => Target::Processes(vec![pid.to_string_lossy().parse()?]),
        _ => Target::Command(Program::new(rest)),
    };
    let options = Options {
        target,
        groups: vec![GroupRequest::alone(EventRequest::usual(
            Rate::Hertz(hertz),
            CallGraph::Dwarf { dump: None },
        ))],
        backend: prof_recorder::Backend::Automatic,
        unwind: true,
        ring_bytes: None,
        schedule: Schedule::default(),
        storage: Storage::default(),
        limits: None,
        output,
        command_line: std::env::args_os().collect(),
    };
    let summary = prof_recorder::record(&options, &signals)?;
    for fallback in &summary.quality.fallbacks {
        eprintln!("{fallback}");
    }
    eprintln!(
        "{} samples of {:?}, {} bytes, {:?}, exit {:?}, stopped by {:?}",
        summary.samples,
        summary.events,
        summary.bytes,
        summary.duration,
        summary.exit,
        summary.stopped_by
    );
    eprintln!("{}", Verdict::new(&summary.quality));
    Ok(())
}
