//! Kinds of code.

use prof_model::InterpretedLanguage;

/// The kind of a function's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// Code of a file.
    User,
    /// The kernel's.
    Kernel,
    /// Made at run time.
    Jit,
    /// A function that an interpreter of this language runs.
    Interpreted(InterpretedLanguage),
    /// Not a function: frames that are missing.
    Missing,
    /// Not a function: a state of the thread, as a root in a view of several states.
    State,
}

impl FunctionKind {
    /// One word, as formats have it: `user`, `kernel`, `jit`, `python`, `php`, `ruby`,
    /// `missing`, `state`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Jit => "jit",
            Self::Interpreted(InterpretedLanguage::Python) => "python",
            Self::Interpreted(InterpretedLanguage::Php) => "php",
            Self::Interpreted(InterpretedLanguage::Ruby) => "ruby",
            Self::Missing => "missing",
            Self::State => "state",
        }
    }
}
