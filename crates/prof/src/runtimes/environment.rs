//! Environment variables that runtimes add to their arguments.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use prof_recorder::Program;

use super::releases::{does_node_write_only_a_map, erlang_release};

/// How to make a runtime name its code.
struct Runtime {
    /// The variable that holds further arguments.
    variable: &'static str,
    arguments: &'static str,
    /// Arguments that contain this show that the user has chosen the options for profilers.
    own: &'static str,
    /// The file names of its executable.
    executables: &'static [&'static str],
    /// Whether the runtime that the command would start knows the arguments, and they change
    /// nothing that the command writes. One that does not know them would refuse to start.
    is_harmless: fn(&Program) -> bool,
}

const RUNTIMES: [Runtime; 2] = [
    // <https://nodejs.org/api/cli.html#node_optionsoptions>: `--perf-basic-prof` also names V8's
    // stubs and regular expressions, but writes V8's log, and the variable may not contain the
    // flags that send it elsewhere.
    Runtime {
        variable: "NODE_OPTIONS",
        arguments: "--perf-basic-prof-only-functions --interpreted-frames-native-stack",
        own: "--perf-",
        executables: &["node", "nodejs"],
        is_harmless: does_node_write_only_a_map,
    },
    // <https://www.erlang.org/doc/apps/erts/beamasm#linux-perf-support>; `true` would leave a dump
    // of 11 MB in /tmp besides the map.
    Runtime {
        variable: "ERL_FLAGS",
        arguments: "+JPperf map",
        own: "JPperf",
        executables: &["beam.smp"],
        is_harmless: |_| erlang_release().is_some_and(|release| release >= 25),
    },
];

/// Sets the variables for a program. Returns the names of those set: none if its arguments or a
/// variable show that the user has decided.
pub(super) fn set(program: &mut Program) -> Vec<&'static str> {
    let harmless = RUNTIMES.iter().filter(|it| (it.is_harmless)(program));
    let set = variables(program, harmless, |variable| {
        env::var_os(variable).unwrap_or_default()
    });
    let names = set.iter().map(|(name, _)| *name).collect();
    let set = set.into_iter().map(|(name, value)| (name.into(), value));
    program.environment.extend(set);
    names
}

/// Whether a file is the executable of a runtime that reads one of the variables.
pub(super) fn is_executable_of_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    RUNTIMES
        .iter()
        .any(|runtime| runtime.executables.iter().any(|&known| name == known))
}

fn variables<'r>(
    program: &Program,
    wanted: impl Iterator<Item = &'r Runtime>,
    value_of: impl Fn(&str) -> OsString,
) -> Vec<(&'static str, OsString)> {
    let is_own = |runtime: &Runtime| {
        let value = value_of(runtime.variable);
        let mut words = program.argv.iter().chain([&value]);
        words.any(|word| contains(word, runtime.own))
    };
    // A new perf map could then belong to either runtime, so nothing is set.
    if RUNTIMES.iter().any(is_own) {
        return Vec::new();
    }
    let set = wanted.map(|runtime| {
        let mut value = value_of(runtime.variable);
        if !value.is_empty() {
            value.push(" ");
        }
        value.push(runtime.arguments);
        (runtime.variable, value)
    });
    set.collect()
}

fn contains(word: &OsStr, part: &str) -> bool {
    let mut windows = word.as_bytes().windows(part.len());
    windows.any(|window| window == part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(argv: &[&str], options: &str) -> Option<OsString> {
        let value_of = |variable: &str| match variable {
            "NODE_OPTIONS" => options.into(),
            _ => OsString::new(),
        };
        let set = variables(&Program::new(argv.to_vec()), RUNTIMES.iter(), value_of);
        set.into_iter().next().map(|(_, value)| value)
    }

    #[test]
    fn arguments_are_added_to_those_of_the_user() {
        let ours = "--perf-basic-prof-only-functions --interpreted-frames-native-stack";
        assert_eq!(node(&["node", "a.js"], "").unwrap(), ours);
        let both = format!("--no-warnings {ours}");
        assert_eq!(*node(&["npm", "start"], "--no-warnings").unwrap(), *both);
    }

    #[test]
    fn options_of_the_user_are_kept() {
        assert_eq!(node(&["node", "--perf-prof", "a.js"], ""), None);
        assert_eq!(node(&["sh", "-c", "node --perf-basic-prof a.js"], ""), None);
        assert_eq!(node(&["node", "a.js"], "--perf-basic-prof"), None);
        assert_eq!(node(&["erl", "+JPperf", "true"], ""), None);
    }
}
