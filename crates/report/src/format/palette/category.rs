//! What kind of code functions are, for formats that have colours of their own.

use crate::symbolize::{FunctionKind, SymbolizedProfile};

use super::{Hue, Languages, language};

/// A kind of code. The numbers are those of the page's list of categories.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::format) enum Category {
    C = 0,
    Cpp = 1,
    Rust = 2,
    RunTime = 3,
    Kernel = 4,
    Unnamed = 5,
    Missing = 6,
    State = 7,
}

/// The category of each function, by its number.
pub(in crate::format) fn categories(
    symbolized: &SymbolizedProfile,
) -> impl Iterator<Item = Category> {
    let languages = Languages::of(symbolized);
    let functions = symbolized.functions().iter().enumerate();
    functions.map(move |(index, function)| match function.kind {
        FunctionKind::Kernel => Category::Kernel,
        FunctionKind::Jit => Category::RunTime,
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
