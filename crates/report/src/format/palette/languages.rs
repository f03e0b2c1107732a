//! Which language a function is written in.

use rustc_hash::FxHashSet;

use crate::symbolize::{Function, FunctionKind, SymbolizedProfile};

/// Which functions are written in Rust, as far as their source files tell; without debug info, by
/// the company they keep: `a::b` is Rust in a module with other functions that are.
pub(super) struct Languages {
    pub(super) is_rust: Vec<bool>,
}

impl Languages {
    pub(super) fn of(symbolized: &SymbolizedProfile) -> Self {
        let functions = symbolized.functions();
        let mut is_rust: Vec<Option<bool>> = vec![None; functions.len()];
        for (frame, _) in symbolized.profile().frames.iter() {
            for location in symbolized.locations(frame) {
                if let Some(file) = &location.file {
                    let known = &mut is_rust[location.function.index()];
                    *known = Some(known.unwrap_or(false) || file.ends_with(".rs"));
                }
            }
        }
        let named = |(function, is_rust): (&Function, &Option<bool>)| {
            is_rust.unwrap_or_else(|| is_surely_rust(&function.name))
        };
        let pairs = functions.iter().zip(&is_rust);
        let modules: FxHashSet<&str> = pairs
            .filter(|&pair| named(pair))
            .map(|(function, _)| &*function.module)
            .filter(|module| !module.is_empty())
            .collect();
        let guess = |function: &Function| {
            function.name.contains("::") && modules.contains(&*function.module)
        };
        let pairs = functions.iter().zip(&is_rust);
        Self {
            is_rust: pairs
                .map(|(function, known)| known.unwrap_or_else(|| guess(function)))
                .collect(),
        }
    }
}

/// Whether it is Python's: read from the interpreter, or told by it (`-X perf`).
pub(in crate::format) fn is_python(function: &Function) -> bool {
    match function.kind {
        FunctionKind::Python => true,
        FunctionKind::Jit => function.name.starts_with("py::"),
        _ => false,
    }
}

pub(super) fn looks_like_rust(name: &str) -> bool {
    is_surely_rust(name) || name.starts_with('<')
}

fn is_surely_rust(name: &str) -> bool {
    let starts = ["core::", "alloc::", "std::rt::", "std::sys::"];
    starts.iter().any(|start| name.starts_with(start))
        || name.starts_with('<') && name.contains(" as ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::TestProfile;

    #[test]
    fn without_debug_info_the_module_tells_the_language() {
        let mut test = TestProfile::new();
        test.line("t rg!core::iter::next;rg!grep::search;cc1!ns::parse 1");
        let symbolized = test.finish_without_files();
        let languages = Languages::of(&symbolized);
        let is_rust = |name: &str| {
            let mut ids = symbolized.function_ids();
            let id = ids.find(|&id| &*symbolized[id].name == name).unwrap();
            languages.is_rust[id.index()]
        };
        let found = ["core::iter::next", "grep::search", "ns::parse"].map(is_rust);
        assert_eq!(found, [true, true, false]);
    }
}
