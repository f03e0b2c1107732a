//! Environment variables that runtimes add to their arguments, and those arguments of a command
//! that no variable may contain.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use prof_recorder::Program;

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

const NODE_OPTIONS: &str = "NODE_OPTIONS";
const DOTNET: &str = "libcoreclr.so";

const RUNTIMES: [Runtime; 4] = [
    // <https://nodejs.org/api/cli.html#node_optionsoptions>: `--perf-basic-prof` also names V8's
    // stubs and regular expressions, but writes V8's log, and the variable may not contain the
    // flags that send it elsewhere.
    Runtime {
        variable: NODE_OPTIONS,
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
    // <https://learn.microsoft.com/en-us/dotnet/core/runtime-config/debugging-profiling>: 3 is a
    // perf map without a jitdump, and releases before .NET 6 do not know the prefix `DOTNET_`.
    // Programs may bring their own runtime.
    Runtime {
        variable: "COMPlus_PerfMapEnabled",
        arguments: "3",
        own: "PerfMapEnabled",
        executables: &[DOTNET],
        is_harmless: |_| has_usual_tmp(),
    },
];

/// Whether programs write temporary files where perf maps are expected: .NET writes them there.
fn has_usual_tmp() -> bool {
    env::var_os("TMPDIR").is_none_or(|directory| Path::new(&directory) == Path::new("/tmp"))
}

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
    variables: Vec<&'static str>,
    /// Whether the program got [`NODE_ARGUMENTS`].
    has_node_arguments: bool,
}

impl Settings {
    /// Whether nothing was set.
    pub(super) fn is_empty(&self) -> bool {
        self.variables.is_empty() && !self.has_node_arguments
    }

    /// What was set for .NET, for users.
    pub(super) fn of_dotnet(&self) -> Option<&'static str> {
        self.of_executable(Path::new(DOTNET))
    }

    /// What was set for the runtime whose executable this is, for users.
    pub(super) fn of_executable(&self, path: &Path) -> Option<&'static str> {
        let name = path.file_name()?;
        let is_its = |runtime: &&Runtime| runtime.executables.iter().any(|&known| name == known);
        let variable = RUNTIMES.iter().find(is_its)?.variable;
        match self.variables.contains(&variable) {
            true => Some(variable),
            false => {
                (self.has_node_arguments && variable == NODE_OPTIONS).then_some("arguments of node")
            }
        }
    }
}

/// Sets the variables for a program, or arguments of it: none if its arguments or a variable show
/// that the user has decided.
pub(super) fn set(program: &mut Program) -> Settings {
    let variables: Vec<_> = env::vars_os().collect();
    if has_decided(program, &variables) {
        return Settings::default();
    }
    let harmless = RUNTIMES.iter().filter(|it| (it.is_harmless)(program));
    let set = with_arguments(harmless, &variables);
    let variables = set.iter().map(|(name, _)| *name).collect();
    let set = set.into_iter().map(|(name, value)| (name.into(), value));
    program.environment.extend(set);
    let has_node_arguments = node_help(program) == Some(NodeHelp::Arguments);
    if has_node_arguments {
        let arguments = NODE_ARGUMENTS.map(OsString::from);
        program.argv.splice(1..1, arguments);
    }
    Settings {
        variables,
        has_node_arguments,
    }
}

type Variable = (OsString, OsString);

/// Whether the user has chosen the options of a runtime. A new perf map could then belong to either
/// runtime, so nothing is set.
fn has_decided(program: &Program, variables: &[Variable]) -> bool {
    RUNTIMES.iter().any(|runtime| {
        let mut words = program.argv.iter();
        let mut variables = variables.iter();
        words.any(|word| contains(word, runtime.own))
            || variables.any(|(name, value)| {
                // The names of .NET's variables have two prefixes.
                contains(name, runtime.own)
                    || name == runtime.variable && contains(value, runtime.own)
            })
    })
}

fn with_arguments<'r>(
    wanted: impl Iterator<Item = &'r Runtime>,
    variables: &[Variable],
) -> Vec<(&'static str, OsString)> {
    let set = wanted.map(|runtime| {
        let before = variables.iter().find(|(name, _)| name == runtime.variable);
        let mut value = before.map_or_else(OsString::new, |(_, value)| value.clone());
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

    fn set(argv: &[&str], variables: &[(&str, &str)]) -> Option<Vec<(&'static str, OsString)>> {
        let variables = variables.iter();
        let variables: Vec<Variable> = variables.map(|&(n, v)| (n.into(), v.into())).collect();
        let program = Program::new(argv.to_vec());
        (!has_decided(&program, &variables)).then(|| with_arguments(RUNTIMES.iter(), &variables))
    }

    fn node(argv: &[&str], options: &str) -> Option<OsString> {
        let set = set(argv, &[(NODE_OPTIONS, options)]);
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

    #[test]
    fn each_prefix_of_a_variable_of_dotnet_is_the_users() {
        let ours = ("COMPlus_PerfMapEnabled", OsString::from("3"));
        assert!(set(&["dotnet", "a.dll"], &[]).unwrap().contains(&ours));
        for name in ["COMPlus_PerfMapEnabled", "DOTNET_PerfMapEnabled"] {
            assert_eq!(set(&["dotnet", "a.dll"], &[(name, "0")]), None);
            assert_eq!(set(&["env", &format!("{name}=1"), "app"], &[]), None);
        }
    }
}
