//! Completions of events, processes, commands and functions.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::{env, fs};

use clap_complete::engine::{CompletionCandidate, PathCompleter, ValueCompleter};
use prof_events::parsing::{Catalog, cache_events, hardware_events, software_events};
use prof_procfs::Task;
use prof_report::{LoadOptions, SymbolizedProfile};
use prof_symbols::{AmbiguousPaths, EmbeddedSymbols, SymbolOptions, Symbolizer};

/// Events of this machine; for a list with commas, those for its last element.
pub(super) fn events(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let last = typed.rfind(',').map_or(0, |comma| comma + 1);
    let (others, prefix) = typed.split_at(last);
    let named = [hardware_events(), software_events(), cache_events()];
    let mut names: Vec<String> = named
        .into_iter()
        .flatten()
        .flat_map(|event| event.names)
        .collect();
    // Without the permission to read tracefs, there are none.
    let tracepoints = Catalog::system().parse("*:*").unwrap_or_default();
    let specs = tracepoints.into_iter().flat_map(|group| group.events);
    names.extend(specs.map(|spec| spec.name));
    names.retain(|name| name.starts_with(prefix));
    let whole = |name| CompletionCandidate::new(format!("{others}{name}"));
    names.into_iter().map(whole).collect()
}

/// Running processes, with the names of their programs.
pub(super) fn processes() -> Vec<CompletionCandidate> {
    let candidate = |pid: i32| {
        let name = Task::of(pid).name();
        let name = String::from_utf8_lossy(&name).into_owned();
        CompletionCandidate::new(pid.to_string()).help(Some(name.into()))
    };
    prof_procfs::processes()
        .into_iter()
        .map(candidate)
        .collect()
}

/// Programs of the search path, and files; for the command's arguments, only files.
pub(super) fn command(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = PathCompleter::any().complete(typed);
    let Some(prefix) = typed.to_str().filter(|typed| !typed.contains('/')) else {
        return found;
    };
    let path = env::var_os("PATH").unwrap_or_default();
    let programs = env::split_paths(&path).flat_map(programs);
    let fitting = programs.filter(|name| name.starts_with(prefix));
    found.extend(fitting.map(CompletionCandidate::new));
    found
}

fn programs(directory: PathBuf) -> impl Iterator<Item = String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().into_string().ok())
}

/// Functions of prof.data in this directory, the default recording.
pub(super) fn functions(typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_str().unwrap_or_default();
    let names = recorded_functions("prof.data".as_ref()).unwrap_or_default();
    let fitting = names.into_iter().filter(|name| name.starts_with(typed));
    fitting.map(CompletionCandidate::new).collect()
}

/// Functions whose names a shell takes as one word and that match themselves as regular
/// expressions.
fn recorded_functions(recording: &Path) -> Option<BTreeSet<String>> {
    let profile = prof_report::read(recording, &LoadOptions::default()).ok()?;
    let stored = profile.symbols.as_deref().map(EmbeddedSymbols::from_bytes);
    // The user waits for the shell: no debug info and no network.
    let symbolizer = Symbolizer::new(SymbolOptions {
        inlines: false,
        ambiguous_paths: AmbiguousPaths::of(&profile.modules),
        ..SymbolOptions::default()
    });
    let symbolizer = match stored {
        Some(Ok(stored)) => symbolizer.with_embedded(stored),
        _ => symbolizer,
    };
    let named = SymbolizedProfile::new(profile, &symbolizer);
    let is_plain = |name: &&str| {
        let mut chars = name.chars();
        !name.is_empty() && chars.all(|c| c.is_alphanumeric() || "_:".contains(c))
    };
    let names = named.functions().iter().map(|function| &*function.name);
    Some(names.filter(is_plain).map(str::to_owned).collect())
}

/// Functions and source files.
pub(super) fn functions_and_files(typed: &OsStr) -> Vec<CompletionCandidate> {
    let mut found = functions(typed);
    found.extend(PathCompleter::file().complete(typed));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(candidates: &[CompletionCandidate]) -> Vec<&str> {
        candidates
            .iter()
            .filter_map(|candidate| candidate.get_value().to_str())
            .collect()
    }

    #[test]
    fn the_last_event_of_a_list_is_completed() {
        let found = events("cycles,page-fau".as_ref());
        assert_eq!(values(&found), ["cycles,page-faults"]);
    }

    #[test]
    fn processes_are_offered_with_their_names() {
        let own = std::process::id().to_string();
        let found = processes();
        let own = found
            .iter()
            .find(|candidate| candidate.get_value() == &*own);
        let name = String::from_utf8(Task::this_process().name()).unwrap();
        let help = own.and_then(CompletionCandidate::get_help).unwrap();
        assert_eq!(help.to_string(), name.trim_end());
    }

    #[test]
    fn commands_are_in_the_search_path() {
        assert!(values(&command("sh".as_ref())).contains(&"sh"));
        assert!(!values(&command("/bi".as_ref())).contains(&"sh"));
    }
}
