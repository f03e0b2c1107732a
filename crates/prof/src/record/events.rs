//! The events that the flags of `prof record` select.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use prof_procfs::Task;
use prof_recorder::parsing::{Catalog, EventSpec};
use prof_recorder::{
    AllocationWeight, CallGraph, EventRequest, GroupRequest, Program, Rate, Target, USUAL_HERTZ,
    allocations,
};

use crate::flags::{AllocFlag, EveryFlag, RateFlag, SamplingFlags};

/// The events that the flags name, or the default one.
pub(super) fn groups(target: &Target, flags: &SamplingFlags) -> Result<Vec<GroupRequest>> {
    let mut groups = requested(target, flags)?;
    if flags.no_inherit {
        for event in groups.iter_mut().flat_map(|group| &mut group.events) {
            event.spec.terms.inherit.get_or_insert(false);
        }
    }
    Ok(groups)
}

fn requested(target: &Target, flags: &SamplingFlags) -> Result<Vec<GroupRequest>> {
    let call_graph = flags.call_graph;
    if flags.off_cpu || flags.wall || flags.alloc.is_some() {
        ensure!(
            matches!(call_graph, CallGraph::Dwarf { .. }) && !flags.no_unwind,
            "--off-cpu, --wall and --alloc always unwind stacks while recording: leave out \
             --call-graph and --no-unwind"
        );
    }
    let events = match flags.alloc {
        Some(alloc) => allocators(target, alloc, flags.every, call_graph)?,
        None if flags.off_cpu => vec![EventRequest::off_cpu(call_graph)],
        None if flags.wall => {
            let clock = EventRequest::named(EventSpec::cpu_clock(), rate(flags), call_graph);
            vec![clock, EventRequest::off_cpu(call_graph)]
        }
        None if flags.events.is_empty() => {
            let rate = rate(flags).unwrap_or(Rate::Hertz(USUAL_HERTZ));
            vec![EventRequest::usual(rate, call_graph)]
        }
        None => return named(flags),
    };
    Ok(events.into_iter().map(GroupRequest::alone).collect())
}

fn named(flags: &SamplingFlags) -> Result<Vec<GroupRequest>> {
    let catalog = Catalog::system();
    let mut groups = Vec::new();
    for text in &flags.events {
        groups.extend(catalog.parse(text)?);
    }
    let named = |group| GroupRequest::named(group, rate(flags), flags.call_graph);
    Ok(groups.into_iter().map(named).collect())
}

fn rate(flags: &SamplingFlags) -> Option<Rate> {
    match (flags.period, flags.rate) {
        (Some(period), _) => Some(Rate::Period(period)),
        (None, Some(RateFlag::Hertz(hertz))) => Some(Rate::Hertz(hertz)),
        (None, Some(RateFlag::Max)) => Some(Rate::Maximum),
        (None, None) => None,
    }
}

fn allocators(
    target: &Target,
    alloc: AllocFlag,
    every: Option<EveryFlag>,
    call_graph: CallGraph,
) -> Result<Vec<EventRequest>> {
    let (calls, bytes) = match every {
        None => (1, 1),
        Some(EveryFlag::Calls(calls)) => (calls, 1),
        Some(EveryFlag::Bytes(bytes)) => (1, bytes),
    };
    let weight = match alloc {
        AllocFlag::Bytes => AllocationWeight::Bytes { every: bytes },
        AllocFlag::Calls => {
            ensure!(
                bytes == 1,
                "--alloc=calls counts calls, not bytes: use --every with a number of calls"
            );
            AllocationWeight::Calls
        }
    };
    let programs = programs(target);
    allocations(&Catalog::system(), &programs, weight, calls, call_graph)
        .context("cannot probe any function that allocates memory")
}

/// The programs that may contain an allocator of their own.
fn programs(target: &Target) -> Vec<PathBuf> {
    match target {
        Target::Command(_) | Target::Cpus(_) => {
            target.command().and_then(executable).into_iter().collect()
        }
        Target::Processes(ids) | Target::Threads(ids) => ids
            .iter()
            .filter_map(|&pid| std::fs::read_link(Task::of(pid).exe()).ok())
            .collect(),
    }
}

/// The file of a command, as a shell would find it.
fn executable(program: &Program) -> Option<PathBuf> {
    let name = program.argv.first()?;
    if name.to_string_lossy().contains('/') {
        return Some(name.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}
