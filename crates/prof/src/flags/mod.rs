//! The command line. Flags are parsed into plain structs here; other modules act on them.

mod annotate;
mod archive;
mod cargo;
mod ci;
mod complete;
mod diff;
mod doctor;
mod filter;
mod input;
mod list;
mod output;
mod quantity;
mod record;
mod report;
mod schedule;
mod sort;
mod stat;
mod storage;
mod symbols;
mod target;
mod top;
mod view;

pub(crate) use annotate::AnnotateFlags;
pub(crate) use archive::ArchiveFlags;
pub(crate) use cargo::{
    CargoFlags, CargoFlamegraphFlags, CargoPictureFlags, CargoRecordFlags, CargoStatFlags,
    CargoTopFlags, CargoVerb, EachFlags, TargetFlags, UnitKind,
};
pub(crate) use ci::CiFlags;
pub(crate) use diff::{DiffFlags, GrowthLimit};
pub(crate) use doctor::DoctorFlags;
pub(crate) use list::ListFlags;
pub(crate) use quantity::CpuList;
pub(crate) use record::{AllocFlag, EveryFlag, RateFlag, RecordFlags, SamplerFlag, SamplingFlags};
pub(crate) use report::{FileFlags, OutputFlags, ReportFlags, ScriptFlags, TextFlags};
pub(crate) use schedule::{ControlFlag, DelayFlag, ScheduleFlags};
pub(crate) use sort::Rows;
pub(crate) use stat::StatFlags;
pub(crate) use storage::StorageFlags;
pub(crate) use symbols::{ServerFlags, SymbolFlags};
pub(crate) use target::{TargetSelection, take_sleep};
pub(crate) use top::{ShowFlags, TopFlags};
pub(crate) use view::ViewFlags;

use clap::{Parser, Subcommand};

/// A sampling profiler for Linux: whole stacks without root or frame pointers, and a verdict on
/// each profile.
#[derive(Debug, Parser)]
#[command(
    name = "prof",
    version,
    max_term_width = 100,
    override_usage = "prof <COMMAND> [OPTIONS]",
    arg_required_else_help = true
)]
pub(crate) struct ProfCli {
    /// Print a manual page (man, man-record, ...: `prof --generate man-record | man -l -`) or
    /// completions for a shell (complete-bash, complete-zsh, complete-fish: they say how to load
    /// them); `list` prints all kinds
    #[arg(long, value_name = "KIND", exclusive = true)]
    pub generate: Option<String>,

    /// The verb.
    #[command(subcommand)]
    pub command: Option<ProfCommand>,
}

/// The verbs of `prof`.
#[derive(Debug, Subcommand)]
pub(crate) enum ProfCommand {
    /// Sample a command or running processes, and write a recording
    Record(Box<RecordFlags>),
    /// Show a recording as a table, tree or flamegraph, or write it in other tools' formats
    Report(Box<ReportFlags>),
    /// Show a recording in a browser: one page that loads nothing
    View(ViewFlags),
    /// Show live what runs now: functions, calls, flamegraph, threads
    Top(Box<TopFlags>),
    /// Show source lines or instructions, with the weight of each
    Annotate(Box<AnnotateFlags>),
    /// Print each sample with its stack, innermost function first, in the format of `perf script`
    /// (for other programs; it runs no scripts)
    Script(Box<ScriptFlags>),
    /// Store symbols in a recording, so that any machine can report it
    Archive(Box<ArchiveFlags>),
    /// Compare two recordings: which functions got slower or faster, and how sure that is
    Diff(Box<DiffFlags>),
    /// Run a command several times and compare with a baseline: which functions grew, for CI
    Ci(Box<CiFlags>),
    /// Count events in a command, in running processes or on all CPUs
    Stat(Box<StatFlags>),
    /// List the events that you can count and sample on this machine
    List(ListFlags),
    /// Show what you can record on this machine, what is missing, and what changes that
    Doctor(DoctorFlags),
}

/// The command line of `cargo prof ...`: cargo passes the subcommand's own name as the first
/// argument.
#[derive(Debug, Parser)]
#[command(
    name = "cargo",
    bin_name = "cargo",
    max_term_width = 100,
    subcommand_required = true
)]
pub(crate) struct CargoCli {
    /// Always `prof`.
    #[command(subcommand)]
    pub command: CargoCommand,
}

/// The only verb that cargo passes on.
#[derive(Debug, Subcommand)]
pub(crate) enum CargoCommand {
    /// Build a Cargo target with debug info, record it and draw its flamegraph
    #[command(version)]
    Prof(Box<CargoFlags>),
}

#[cfg(test)]
mod documented;

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_flags_are_consistent() {
        ProfCli::command().debug_assert();
        CargoCli::command().debug_assert();
    }
}
