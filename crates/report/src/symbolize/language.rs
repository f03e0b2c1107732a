//! Which language a function is written in.

use prof_model::{InterpretedLanguage, Pid};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Function, FunctionId, FunctionKind, JIT, SymbolizedProfile};
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

    fn of_file(path: &str) -> Option<Self> {
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
    fn of_jit_name(name: &str) -> Option<Self> {
        let starts = |starts: &[&str]| starts.iter().any(|start| name.starts_with(start));
        match () {
            () if starts(&["py::"]) => Some(Self::Python),
            () if starts(&["JS:", "LazyCompile:"]) => Some(Self::JavaScript),
            () => None,
        }
    }

    /// What the name of native code says for sure.
    fn of_name(name: &str) -> Option<Self> {
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

/// The languages of a profile's functions.
///
/// Found by source files and symbols; without debug info by the other functions of the module:
/// `a::b` is Rust in a module with other Rust functions, `a.b` is Go. Code made at run time has the
/// language that its process runs.
pub struct Languages {
    /// By function's number.
    languages: Vec<Option<Language>>,
}

impl Languages {
    /// Finds the language of each function.
    pub fn of(symbolized: &SymbolizedProfile) -> Self {
        let profile = symbolized.profile();
        let functions = symbolized.functions();
        let runtimes = runtimes(symbolized);
        let mut hints: Vec<SourceHint> = vec![SourceHint::default(); functions.len()];
        for (frame, what) in profile.frames.iter() {
            let by_process = match what {
                Frame::Jit { pid, .. } => runtimes.get(&pid).copied(),
                _ => None,
            };
            for location in symbolized.locations(frame) {
                let file = location.file.as_deref();
                let known = &mut hints[location.function.index()];
                let by_file = file.and_then(Language::of_file);
                known.language = by_file.or(known.language).or(by_process);
                known.has_file |= file.is_some();
            }
        }
        let module_languages: FxHashSet<(&str, Language)> = functions
            .iter()
            .zip(&hints)
            .filter_map(|(function, hint)| {
                let by_name = || Language::of_name(&function.name).filter(|_| !hint.has_file);
                Some((&*function.module, hint.language.or_else(by_name)?))
            })
            .filter(|(module, _)| !module.is_empty())
            .collect();
        let native = |function: &Function, hint: &SourceHint| {
            let beside = |language| {
                !hint.has_file && module_languages.contains(&(&*function.module, language))
            };
            match is_of_dotnet(function) && !hint.has_file {
                true => Language::CSharp,
                false => native(&function.name, beside),
            }
        };
        let languages = functions.iter().zip(&hints);
        let languages = languages.map(|(function, hint)| match function.kind {
            FunctionKind::Interpreted(InterpretedLanguage::Python) => Some(Language::Python),
            FunctionKind::Interpreted(InterpretedLanguage::Php) => Some(Language::Php),
            FunctionKind::Interpreted(InterpretedLanguage::Ruby) => Some(Language::Ruby),
            FunctionKind::Jit if &*function.name == JIT => None,
            FunctionKind::Jit => Language::of_jit_name(&function.name).or(hint.language),
            FunctionKind::User if function.is_unnamed() => None,
            FunctionKind::User => hint.language.or_else(|| Some(native(function, hint))),
            FunctionKind::Kernel | FunctionKind::Missing | FunctionKind::State => None,
        });
        Self {
            languages: languages.collect(),
        }
    }

    /// That of a function. The kernel has none, nor has what has no name.
    pub fn get(&self, id: FunctionId) -> Option<Language> {
        self.languages[id.index()]
    }
}

/// What is known of a function without its name.
#[derive(Clone, Copy, Default)]
struct SourceHint {
    language: Option<Language>,
    /// Whether its source file is known, with any extension.
    has_file: bool,
}

/// Whether it is a precompiled method of .NET, of which no line is known.
fn is_of_dotnet(function: &Function) -> bool {
    function.module.ends_with(".dll") && function.name.contains("::")
}

/// The language of native code by its name; `beside` says whether its module has functions of one.
fn native(name: &str, beside: impl Fn(Language) -> bool) -> Language {
    match Language::of_name(name) {
        Some(language) => language,
        None if name.starts_with('<') => Language::Rust,
        None if name.contains("::") && beside(Language::Rust) => Language::Rust,
        None if name.contains("::") => Language::Cpp,
        None if name.contains('.') && beside(Language::Go) => Language::Go,
        None => Language::C,
    }
}

/// What the processes with run-time code run, as far as a runtime is on any of their stacks.
fn runtimes(symbolized: &SymbolizedProfile) -> FxHashMap<Pid, Language> {
    let Profile {
        frames,
        stacks,
        modules,
        ..
    } = symbolized.profile();
    let by_module: Vec<_> = modules
        .iter()
        .map(|(_, module)| Language::run_by(&module.short_name()))
        .collect();
    // By stack's number: which runtime is on it.
    let mut seen: Vec<Option<Language>> = Vec::with_capacity(stacks.len());
    let mut found = FxHashMap::default();
    for stack in stacks.iter() {
        let callers = stacks.prefix(stack).and_then(|prefix| seen[prefix.index()]);
        let runtime = match frames[stacks.frame(stack)] {
            Frame::Module { module, .. } => by_module[module.index()].or(callers),
            Frame::Jit { pid, .. } => {
                if let Some(runtime) = callers {
                    found.entry(pid).or_insert(runtime);
                }
                callers
            }
            _ => callers,
        };
        seen.push(runtime);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestProfile;

    /// The languages of functions of a profile of these stacks, whose source file is `file`.
    fn check(stacks: &[&str], file: Option<&str>, expected: &[(&str, Option<Language>)]) {
        let mut test = TestProfile::new();
        for stack in stacks {
            test.line(&format!("t {stack} 1"));
        }
        let symbolized = test.finish_with(file);
        let languages = Languages::of(&symbolized);
        for &(name, language) in expected {
            let mut ids = symbolized.function_ids();
            let id = ids.find(|&id| &*symbolized[id].name == name).unwrap();
            assert_eq!(languages.get(id), language, "{name} of {file:?}");
        }
    }

    #[test]
    fn names_tell_languages() {
        use Language::{C, Cpp, Python, Rust};
        check(
            &["main;ns::parse;<T as core::fmt::Debug>::fmt;?;k:write;jit:py::f;jit:made;cut"],
            Some("/src/demo.c"),
            &[
                ("main", Some(C)),
                ("ns::parse", Some(Cpp)),
                ("<T as core::fmt::Debug>::fmt", Some(Rust)),
                ("write", None),
                ("py::f", Some(Python)),
                ("made", None),
            ],
        );
    }

    #[test]
    fn source_files_tell_languages() {
        for (file, language) in [
            ("/x/a.c", Language::Cpp),
            ("/x/a.rs", Language::Rust),
            ("/x/a.go", Language::Go),
            ("/x/a.py", Language::Python),
        ] {
            check(&["x::y"], Some(file), &[("x::y", Some(language))]);
        }
    }

    #[test]
    fn without_debug_info_the_module_tells_the_language() {
        use Language::{C, CSharp, Cpp, Go, Rust};
        check(
            &[
                "rg!core::iter::next;rg!grep::search;cc1!ns::parse;cc1!f.cold",
                "dockerd!runtime.main;dockerd!main.main",
                "System.Linq.dll!Enumerable::Any;System.Linq.dll!<Details>::Hash;wine.dll!f",
            ],
            None,
            &[
                ("core::iter::next", Some(Rust)),
                ("grep::search", Some(Rust)),
                ("ns::parse", Some(Cpp)),
                ("f.cold", Some(C)),
                ("main.main", Some(Go)),
                ("Enumerable::Any", Some(CSharp)),
                ("<Details>::Hash", Some(CSharp)),
                ("f", Some(C)),
            ],
        );
    }

    #[test]
    fn run_time_code_is_what_its_process_runs() {
        let of = |runtime: &str, language| {
            let whole = format!("main;{runtime}!start;jit:f;jit:?");
            // The runtime is on another stack only.
            let cut = "cut;jit:g";
            let expected = [("f", language), ("g", language), (JIT, None)];
            check(&[&whole, cut], None, &expected);
        };
        of("libjvm.so", Some(Language::Java));
        of("node", Some(Language::JavaScript));
        of("beam.smp", Some(Language::Erlang));
        of("mono-sgen", Some(Language::CSharp));
        of("libc.so.6", None);
    }

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
