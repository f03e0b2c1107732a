//! The flags that select samples and frames.

use std::time::Duration;

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap_complete::engine::ArgValueCompleter;
use prof_model::{Pid, Tid};
use prof_report::{Filter, Language, Pattern};

use super::complete;
use super::quantity::{CpuList, parse_moment, parse_recorded};

/// Which samples and frames to show.
#[derive(Debug, Default, Args)]
#[command(next_help_heading = "Filters")]
pub struct FilterFlags {
    /// Only samples of this event [default: the first event that has some; `prof script`: all]
    #[arg(long, value_name = "NAME")]
    pub event: Option<String>,

    /// Only threads whose name matches
    #[arg(long, alias = "comms", value_name = "REGEX")]
    pub comm: Option<Pattern>,

    /// Only these processes
    #[arg(long = "pid", value_name = "PID", value_delimiter = ',', value_parser = parse_recorded)]
    pub pids: Vec<Pid>,

    /// Only these threads
    #[arg(long = "tid", value_name = "TID", value_delimiter = ',', value_parser = parse_recorded)]
    pub tids: Vec<Tid>,

    /// Only samples on these CPUs, as in 0,2-3
    #[arg(long = "cpu", value_name = "LIST", value_parser = CpuList::parse)]
    pub(crate) cpus: Vec<CpuList>,

    /// Only samples from TIME on, counted from the first sample (1.5, 250ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub since: Option<Duration>,

    /// Only samples before TIME, counted from the first sample
    #[arg(long, value_name = "TIME", value_parser = parse_moment)]
    pub until: Option<Duration>,

    /// Only stacks with code of a module (dso) whose name matches
    #[arg(long, aliases = ["dso", "dsos"], value_name = "REGEX")]
    pub module: Option<Pattern>,

    /// Only stacks with a function whose name matches
    #[arg(long, visible_alias = "focus", alias = "symbols", value_name = "REGEX", add = ArgValueCompleter::new(complete::functions))]
    pub function: Option<Pattern>,

    /// Only stacks with a function in one of these languages. The source file decides, or else the
    /// function's name; other native code counts as C
    #[arg(
        long = "language",
        value_name = "LANGUAGE",
        value_delimiter = ',',
        value_parser = parse_language(),
        ignore_case = true
    )]
    pub languages: Vec<Language>,

    /// Omit stacks with a function whose name matches
    #[arg(long, value_name = "REGEX", add = ArgValueCompleter::new(complete::functions))]
    pub ignore: Option<Pattern>,

    /// Omit functions whose name matches; their weight goes to their callers
    #[arg(long, value_name = "REGEX", add = ArgValueCompleter::new(complete::functions))]
    pub hide: Option<Pattern>,

    /// Omit kernel functions
    #[arg(long)]
    pub no_kernel: bool,

    /// Omit inlined functions and source lines: this is faster, only symbol tables are read
    #[arg(long)]
    pub no_inline: bool,

    /// Omit executors and other frames between the functions of an async task (tokio, futures,
    /// async-std, the standard library); their weight goes to their callers
    #[arg(long)]
    pub fold_async: bool,

    /// Merge threads whose names differ only in numbers (worker-1 and worker-2 become worker-*), or
    /// in the parts that REGEX matches. With --by thread, within each process
    #[arg(
        long,
        value_name = "REGEX",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "[0-9]+"
    )]
    pub merge_threads: Option<Pattern>,
}

impl From<FilterFlags> for Filter {
    fn from(flags: FilterFlags) -> Self {
        Self {
            event: flags.event,
            comm: flags.comm,
            pids: flags.pids,
            tids: flags.tids,
            cpus: flags.cpus.into_iter().flat_map(|list| list.0).collect(),
            since: flags.since,
            until: flags.until,
            module: flags.module,
            function: flags.function,
            languages: flags.languages,
            ignore: flags.ignore,
            hide: flags.hide,
            no_kernel: flags.no_kernel,
            no_inline: flags.no_inline,
            fold_async: flags.fold_async,
            merge_threads: flags.merge_threads,
        }
    }
}

fn parse_language() -> impl TypedValueParser<Value = Language> {
    let possible = Language::ALL.map(|language| {
        PossibleValue::new(language.name()).aliases(language.aliases().iter().copied())
    });
    PossibleValuesParser::new(possible)
        .try_map(|name| Language::named(&name).ok_or("there is no such language"))
}
