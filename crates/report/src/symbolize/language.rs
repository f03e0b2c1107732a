//! Languages, and which of them processes run.

use prof_model::Pid;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::profile::{Frame, Profile};

/// A programming language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Language {
    /// Also of all native code of which nothing is known but names.
    C,
    /// Recognized by its names: `a::b`.
    Cpp,
    /// Rust.
    Rust,
    /// Go.
    Go,
    /// Python.
    Python,
    /// Code that a Java VM compiles or interprets.
    Java,
    /// Code that Node compiles.
    JavaScript,
    /// Ruby.
    Ruby,
    /// PHP.
    Php,
    /// Code that .NET compiles.
    CSharp,
    /// Code that Erlang's machine compiles.
    Erlang,
    /// Lua.
    Lua,
    /// Julia.
    Julia,
}

/// The signs of a language.
struct Evidence {
    name: &'static str,
    aliases: &'static [&'static str],
    /// The extensions of its source files. C has none here: `.c` and `.h` can be C++.
    files: &'static [&'static str],
    /// How the files begin that run programs, and have compiled the run-time code beside them.
    runtimes: &'static [&'static str],
}

impl Language {
    /// All, in the order in which lists have them.
    pub const ALL: [Self; 13] = [
        Self::C,
        Self::Cpp,
        Self::Rust,
        Self::Go,
        Self::Python,
        Self::Java,
        Self::JavaScript,
        Self::Ruby,
        Self::Php,
        Self::CSharp,
        Self::Erlang,
        Self::Lua,
        Self::Julia,
    ];

    /// As people write it.
    pub fn name(self) -> &'static str {
        self.evidence().name
    }

    /// Its other names.
    pub fn aliases(self) -> &'static [&'static str] {
        self.evidence().aliases
    }

    /// The language of this name, in upper or lower case.
    pub fn named(name: &str) -> Option<Self> {
        let is_it = |known: &str| known.eq_ignore_ascii_case(name);
        Self::ALL
            .into_iter()
            .find(|it| is_it(it.name()) || it.aliases().iter().any(|alias| is_it(alias)))
    }

    fn evidence(self) -> Evidence {
        let (name, aliases, files, runtimes): (_, &[_], &[_], &[_]) = match self {
            Self::C => ("C", &[], &[], &[]),
            Self::Cpp => ("C++", &["cpp"], &[".cc", ".cpp", ".cxx", ".hpp"], &[]),
            Self::Rust => ("Rust", &[], &[".rs"], &[]),
            Self::Go => ("Go", &[], &[".go"], &[]),
            // The interpreter says which code is Python's.
            Self::Python => ("Python", &["py"], &[".py"], &[]),
            Self::Java => ("Java", &[], &[".java"], &["libjvm."]),
            Self::JavaScript => (
                "JavaScript",
                &["js", "node"],
                &[".js", ".mjs", ".cjs", ".ts"],
                &["node", "libnode."],
            ),
            Self::Ruby => ("Ruby", &["rb"], &[".rb"], &["ruby", "libruby"]),
            Self::Php => ("PHP", &[], &[".php"], &["php", "libphp"]),
            Self::CSharp => (
                "C#",
                &["csharp", ".net"],
                &[".cs"],
                &["libcoreclr.", "mono", "libmonosgen-"],
            ),
            Self::Erlang => ("Erlang", &[], &[".erl", ".ex"], &["beam."]),
            Self::Lua => ("Lua", &[], &[".lua"], &["luajit", "libluajit"]),
            Self::Julia => ("Julia", &[], &[".jl"], &["libjulia"]),
        };
        Evidence {
            name,
            aliases,
            files,
            runtimes,
        }
    }

    pub(super) fn of_file(path: &str) -> Option<Self> {
        let is_its = |it: &Self| it.evidence().files.iter().any(|end| path.ends_with(end));
        Self::ALL.into_iter().find(is_its)
    }

    /// What the program in this module runs.
    fn run_by(module: &str) -> Option<Self> {
        let starts = |start: &&str| module.starts_with(start);
        let runs = |it: &Self| it.evidence().runtimes.iter().any(starts);
        Self::ALL.into_iter().find(runs)
    }

    /// What the name of code that was made at run time says.
    pub(super) fn of_jit_name(name: &str) -> Option<Self> {
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        match () {
            () if starts(&["py::"]) => Some(Self::Python),
            () if starts(&["JS:", "LazyCompile:"]) => Some(Self::JavaScript),
            () => None,
        }
    }

    /// What the name of native code says for sure.
    pub(super) fn of_name(name: &str) -> Option<Self> {
        let rust = ["core::", "alloc::", "std::rt::", "std::sys::"];
        let go = [
            "runtime.goexit",
            "runtime.main",
            "runtime.mcall",
            "runtime.mstart",
        ];
        match () {
            () if rust.iter().any(|start| name.starts_with(start)) => Some(Self::Rust),
            () if name.starts_with('<') && name.contains(" as ") => Some(Self::Rust),
            () if go.iter().any(|start| name.starts_with(start)) => Some(Self::Go),
            () => None,
        }
    }
}

/// What the processes with run-time code run, as far as a runtime is on any of their stacks.
pub(super) fn runtimes(profile: &Profile) -> FxHashMap<Pid, Language> {
    let Profile {
        frames,
        stacks,
        modules,
        samples,
        ..
    } = profile;
    let by_module: Vec<_> = modules
        .iter()
        .map(|(_, module)| Language::run_by(&module.short_name()))
        .collect();
    // By stack's number: which runtime is on it.
    let mut seen: Vec<Option<Language>> = Vec::with_capacity(stacks.len());
    let (mut found, mut cut) = (FxHashMap::default(), FxHashSet::default());
    for stack in stacks.iter() {
        let callers = stacks.prefix(stack).and_then(|prefix| seen[prefix.index()]);
        let runtime = match frames[stacks.frame(stack)] {
            Frame::Module { module, .. } => by_module[module.index()].or(callers),
            Frame::Jit { pid, .. } => {
                match callers {
                    Some(runtime) => {
                        found.entry(pid).or_insert(runtime);
                    }
                    None => {
                        cut.insert(pid);
                    }
                }
                callers
            }
            _ => callers,
        };
        seen.push(runtime);
    }
    // Stacks may end in such code.
    cut.retain(|pid| !found.contains_key(pid));
    for sample in samples.iter().filter(|sample| cut.contains(&sample.pid)) {
        if let Some(runtime) = seen.get(sample.stack.index()).copied().flatten() {
            found.entry(sample.pid).or_insert(runtime);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_have_names() {
        for (number, language) in Language::ALL.into_iter().enumerate() {
            assert_eq!(language as usize, number);
            let names = [language.name()]
                .into_iter()
                .chain(language.aliases().iter().copied());
            for name in names {
                assert_eq!(
                    Language::named(&name.to_uppercase()),
                    Some(language),
                    "{name}"
                );
            }
        }
        assert_eq!(Language::named("klingon"), None);
    }
}
