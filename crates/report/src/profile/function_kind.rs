//! Kinds of code.

/// What kind of code a function is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FunctionKind {
    /// Code of a file.
    User,
    /// The kernel's.
    Kernel,
    /// Made at run time.
    Jit,
    /// A function of a Python program, which its interpreter runs.
    Python,
    /// Not a function: frames that are missing.
    Missing,
    /// Not a function: what the thread was doing, as the root of a view of several such.
    State,
}

impl FunctionKind {
    /// One word, as formats have it: `user`, `kernel`, `jit`, `python`, `missing`, `state`.
    pub fn name(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Kernel => "kernel",
            Self::Jit => "jit",
            Self::Python => "python",
            Self::Missing => "missing",
            Self::State => "state",
        }
    }
}
