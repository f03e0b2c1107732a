//! What kind of code functions are, for formats that have colours of their own.

use crate::symbolize::{FunctionKind, SymbolizedProfile};

use super::{Hue, Languages, is_python, language};

/// A kind of code. The numbers are those of the page's list of categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum Category {
    C = 0,
    Cpp = 1,
    Rust = 2,
    Python = 3,
    RunTime = 4,
    Kernel = 5,
    Unnamed = 6,
    Missing = 7,
    State = 8,
}

/// The category of each function, by its number.
pub(in crate::format) fn categories(
    symbolized: &SymbolizedProfile,
) -> impl Iterator<Item = Category> {
    let languages = Languages::of(symbolized);
    let functions = symbolized.functions().iter().enumerate();
    functions.map(move |(index, function)| match function.kind {
        _ if is_python(function) => Category::Python,
        FunctionKind::Kernel => Category::Kernel,
        FunctionKind::Jit => Category::RunTime,
        FunctionKind::Python => Category::Python,
        FunctionKind::Missing => Category::Missing,
        FunctionKind::State => Category::State,
        FunctionKind::User => match language(function, languages.is_rust[index]) {
            Hue::Unnamed => Category::Unnamed,
            Hue::Rust => Category::Rust,
            Hue::Cpp => Category::Cpp,
            _ => Category::C,
        },
    })
}
