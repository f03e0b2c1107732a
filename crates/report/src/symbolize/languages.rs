//! Which language a function is written in.

use prof_model::InterpretedLanguage;
use rustc_hash::FxHashSet;

use super::language::{Language, runtimes};
use super::{Function, FunctionId, FunctionKind, JIT, SymbolizedProfile};
use crate::profile::Frame;

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
        let runtimes = runtimes(profile);
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
    let name = &*function.name;
    let is_made_up = name.starts_with('<') && !name.contains(" as ");
    function.module.ends_with(".dll")
        && name.contains("::")
        && (is_made_up || Language::of_name(name).is_none())
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
}
