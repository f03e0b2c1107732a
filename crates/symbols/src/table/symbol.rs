//! One function of a symbol table.

use std::borrow::Cow;

/// A function in a symbol table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Symbol<'data> {
    /// The first address.
    pub(crate) start: u64,
    /// The address after the last, as the table says; `start` if it does not.
    pub(crate) end: u64,
    /// The latest end of an unsized one.
    pub(crate) limit: u64,
    /// How strongly the name is bound, the strongest lowest.
    pub(crate) rank: u8,
    /// The name, as the linker sees it.
    pub(crate) name: Cow<'data, [u8]>,
}
