//! Environment variables that runtimes add to their arguments, and those arguments of a command
//! that no variable may contain.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use prof_recorder::Program;
use tempfile::TempDir;

use super::php;
use super::releases::{NodeHelp, erlang_release, node_help, on_path};

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

const RUNTIMES: [Runtime; 3] = [
    // <https://nodejs.org/api/cli.html#node_optionsoptions>: `--perf-basic-prof` also names V8's
    // stubs and regular expressions, but writes V8's log, and the variable may not contain the
    // flags that send it elsewhere.
    Runtime {
        variable: "NODE_OPTIONS",
        arguments: "--perf-basic-prof-only-functions --interpreted-frames-native-stack",
        own: "--perf-",
        executables: &["node", "nodejs"],
        is_harmless: |program| node_help(program) == Some(NodeHelp::Variable),
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
    // <https://www.mono-project.com/docs/debug+profile/profile/profiler/#perf>, mono(1).
    Runtime {
        variable: "MONO_ENV_OPTIONS",
        arguments: "--jitmap",
        own: "--jitmap",
        executables: &["mono", "mono-sgen"],
        is_harmless: |_| on_path("mono").is_some(),
    },
];

/// The arguments for a Node that otherwise writes V8's log beside its map.
const NODE_ARGUMENTS: [&str; 4] = [
    "--perf-basic-prof-only-functions",
    "--interpreted-frames-native-stack",
    "--no-logfile-per-isolate",
    "--logfile=+",
];

/// What was set for a program.
#[derive(Debug, Default)]
pub(super) struct Settings {
    /// The names of variables, and of arguments, for users.
    pub(super) names: Vec<&'static str>,
    /// The directory with settings of PHP, which is removed with this.
    _php: Option<TempDir>,
}

/// Sets the variables for a program, or arguments of it: none if its arguments or a variable show
/// that the user has decided.
pub(super) fn set(program: &mut Program) -> Settings {
    let value_of = |variable: &str| env::var_os(variable).unwrap_or_default();
    if has_decided(program, value_of) {
        return Settings::default();
    }
    let harmless = RUNTIMES.iter().filter(|it| (it.is_harmless)(program));
    let set = variables(harmless, value_of);
    let mut names: Vec<_> = set.iter().map(|(name, _)| *name).collect();
    let set = set.into_iter().map(|(name, value)| (name.into(), value));
    program.environment.extend(set);
    if node_help(program) == Some(NodeHelp::Arguments) {
        let arguments = NODE_ARGUMENTS.map(OsString::from);
        program.argv.splice(1..1, arguments);
        names.insert(0, "arguments of node");
    }
    // Without such a directory, PHP runs as it does without prof.
    let php = php::set(program).unwrap_or_default();
    names.extend(php.as_ref().map(|_| php::VARIABLE));
    Settings { names, _php: php }
}

/// Whether a file is the executable of a runtime that reads one of the variables.
pub(super) fn is_executable_of_runtime(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default();
    name.to_str().is_some_and(php::is_named)
        || RUNTIMES
            .iter()
            .any(|runtime| runtime.executables.iter().any(|&known| name == known))
}

/// Whether the user has chosen the options of a runtime. A new perf map could then belong to either
/// runtime, so nothing is set.
fn has_decided(program: &Program, value_of: impl Fn(&str) -> OsString) -> bool {
    const PHP: &str = "opcache.jit_debug";
    let mut words = program.argv.iter();
    words.any(|word| contains(word, PHP))
        || RUNTIMES.iter().any(|runtime| {
            let value = value_of(runtime.variable);
            let mut words = program.argv.iter().chain([&value]);
            words.any(|word| contains(word, runtime.own))
        })
}

fn variables<'r>(
    wanted: impl Iterator<Item = &'r Runtime>,
    value_of: impl Fn(&str) -> OsString,
) -> Vec<(&'static str, OsString)> {
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
        let program = Program::new(argv.to_vec());
        let set = (!has_decided(&program, value_of)).then(|| variables(RUNTIMES.iter(), value_of));
        set?.into_iter().next().map(|(_, value)| value)
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
