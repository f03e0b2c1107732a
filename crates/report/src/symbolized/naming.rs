//! How well modules could be named.

use std::fmt;

use prof_symbols::ModuleStatus;

/// How well a module could be named.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModuleNaming {
    /// The module's short name, `[kernel]`, or `[jit] (process 123)`.
    pub module: String,
    /// Whether names were found, and why not.
    pub status: ModuleStatus,
    /// How many of the samples were taken in this module.
    pub samples: u64,
    /// How many distinct addresses were seen in it.
    pub addresses: usize,
    /// How many of these have a name.
    pub named: usize,
}

/// One line: the module, its reason and remedy.
impl fmt::Display for ModuleNaming {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.module, self.status)?;
        if self.status.is_named() && self.named < self.addresses {
            write!(
                f,
                ", but {} of {} addresses are in no symbol",
                self.addresses - self.named,
                self.addresses
            )?;
        }
        Ok(())
    }
}
