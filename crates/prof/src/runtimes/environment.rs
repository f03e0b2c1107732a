//! The variable that makes the runtime of a command name its code.

use std::env;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use prof_recorder::Program;

use super::commands::{erlang_release, is_dotnet, is_named, resolved};

/// How to make a runtime name its code.
struct Runtime {
    /// The variable that holds further arguments.
    variable: &'static str,
    arguments: &'static str,
    /// Arguments that contain this show that the user has chosen the options for profilers.
    own: &'static str,
    /// The file name of what its processes have mapped.
    executables: &'static [&'static str],
    /// Whether this file, which the command is, runs it, and in a release that knows the arguments:
    /// others would refuse to start. They change nothing that the command writes.
    is_command: fn(&Path) -> bool,
}

const DOTNET: &str = "libcoreclr.so";

const RUNTIMES: [Runtime; 3] = [
    // <https://www.erlang.org/doc/apps/erts/beamasm#linux-perf-support>; `true` would leave a dump
    // of 11 MB in /tmp besides the map.
    Runtime {
        variable: "ERL_FLAGS",
        arguments: "+JPperf map",
        own: "JPperf",
        executables: &["beam.smp"],
        is_command: |file| {
            is_named(file, &["erl", "escript"])
                && erlang_release(file).is_some_and(|release| release >= 25)
        },
    },
    // <https://www.mono-project.com/docs/debug+profile/profile/profiler/#perf>, mono(1).
    Runtime {
        variable: "MONO_ENV_OPTIONS",
        arguments: "--jitmap",
        own: "--jitmap",
        executables: &["mono", "mono-sgen"],
        is_command: |file| is_named(file, &["mono", "mono-sgen"]),
    },
    // <https://learn.microsoft.com/en-us/dotnet/core/runtime-config/debugging-profiling>: 3 is a
    // perf map without a jitdump, and releases before .NET 6 do not know the prefix `DOTNET_`.
    Runtime {
        variable: "COMPlus_PerfMapEnabled",
        arguments: "3",
        own: "PerfMapEnabled",
        executables: &[DOTNET],
        is_command: |file| is_dotnet(file) && has_usual_tmp(),
    },
];

/// Whether programs write temporary files where perf maps are expected: .NET writes them there.
fn has_usual_tmp() -> bool {
    env::var_os("TMPDIR").is_none_or(|directory| Path::new(&directory) == Path::new("/tmp"))
}

/// What was set for a program: the variable of its runtime, if any.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Settings(Option<&'static str>);

impl Settings {
    /// What prof may have set for any program.
    pub(super) fn possible() -> impl Iterator<Item = Self> {
        RUNTIMES.iter().map(|runtime| Self(Some(runtime.variable)))
    }

    /// Whether nothing was set.
    pub(super) fn is_empty(self) -> bool {
        self.0.is_none()
    }

    /// What was set for .NET, for users.
    pub(super) fn of_dotnet(self) -> Option<&'static str> {
        self.of_executable(Path::new(DOTNET))
    }

    /// What was set for the runtime whose executable this is, for users.
    pub(super) fn of_executable(self, path: &Path) -> Option<&'static str> {
        let name = path.file_name()?;
        let is_its = |runtime: &&Runtime| runtime.executables.iter().any(|&known| name == known);
        let variable = RUNTIMES.iter().find(is_its)?.variable;
        self.0.filter(|set| *set == variable)
    }
}

/// What to set for a program: nothing if it is no such runtime, or if its arguments or a variable
/// show that the user has decided. What a script starts is left alone.
pub(super) fn wanted(program: &Program) -> Option<(Settings, OsString)> {
    let file = resolved(program.argv.first()?)?;
    let runtime = RUNTIMES.iter().find(|it| (it.is_command)(&file))?;
    let variables: Vec<_> = env::vars_os().collect();
    let value = value(runtime, program, &variables)?;
    Some((Settings(Some(runtime.variable)), value))
}

/// Sets it.
pub(super) fn set(program: &mut Program, (settings, value): (Settings, OsString)) -> Settings {
    let variable = settings.0.map(OsString::from);
    program
        .environment
        .extend(variable.map(|name| (name, value)));
    settings
}

type Variable = (OsString, OsString);

/// The value of the runtime's variable with our arguments; `None` if the user has chosen the
/// options of a runtime, because a new perf map could then belong to either.
fn value(runtime: &Runtime, program: &Program, variables: &[Variable]) -> Option<OsString> {
    let is_own = |word: &OsStr| RUNTIMES.iter().any(|it| contains(word, it.own));
    let has_decided = program.argv.iter().any(|word| is_own(word))
        || variables.iter().any(|(name, value)| {
            // The names of .NET's variables have two prefixes.
            is_own(name) || RUNTIMES.iter().any(|it| name == it.variable) && is_own(value)
        });
    if has_decided {
        return None;
    }
    let before = variables.iter().find(|(name, _)| name == runtime.variable);
    let mut value = before.map_or_else(OsString::new, |(_, value)| value.clone());
    if !value.is_empty() {
        value.push(" ");
    }
    value.push(runtime.arguments);
    Some(value)
}

fn contains(word: &OsStr, part: &str) -> bool {
    let mut windows = word.as_bytes().windows(part.len());
    windows.any(|window| window == part.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ERLANG: &str = "ERL_FLAGS";
    const DOTNET: &str = "COMPlus_PerfMapEnabled";

    fn set(variable: &str, argv: &[&str], variables: &[(&str, &str)]) -> Option<OsString> {
        let variables = variables.iter();
        let variables: Vec<Variable> = variables.map(|&(n, v)| (n.into(), v.into())).collect();
        let runtime = RUNTIMES.iter().find(|it| it.variable == variable).unwrap();
        value(runtime, &Program::new(argv.to_vec()), &variables)
    }

    #[test]
    fn arguments_are_added_to_those_of_the_user() {
        let check = |flags, expected: &str| {
            let set = set(ERLANG, &["erl"], &[(ERLANG, flags)]);
            assert_eq!(*set.unwrap(), *expected);
        };
        check("", "+JPperf map");
        check("+S 2", "+S 2 +JPperf map");
    }

    #[test]
    fn options_of_the_user_are_kept() {
        assert_eq!(set(ERLANG, &["erl", "+JPperf", "true"], &[]), None);
        assert_eq!(set(ERLANG, &["erl"], &[(ERLANG, "+JPperf no")]), None);
        assert_eq!(
            set("MONO_ENV_OPTIONS", &["mono", "--jitmap", "a"], &[]),
            None
        );
    }

    #[test]
    fn each_prefix_of_a_variable_of_dotnet_is_the_users() {
        assert_eq!(*set(DOTNET, &["dotnet", "a.dll"], &[]).unwrap(), *"3");
        for name in ["COMPlus_PerfMapEnabled", "DOTNET_PerfMapEnabled"] {
            assert_eq!(set(DOTNET, &["dotnet", "a.dll"], &[(name, "0")]), None);
        }
    }

    /// They may start anything.
    #[test]
    fn scripts_and_other_programs_are_left_alone() {
        for command in ["sh", "env", "true", "no-such-program-anywhere"] {
            assert!(wanted(&Program::new([command])).is_none(), "{command}");
        }
    }
}
