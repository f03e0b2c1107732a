//! The meaning of names.

use super::spec::{Encoding, Family};
use super::terms::Terms;

/// The meaning of a name, before terms and modifiers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) family: Family,
    pub(super) encoding: Encoding,
    pub(super) scale: Option<(f64, String)>,
    pub(super) cpus: Option<Vec<u32>>,
    /// The name, if it is one of several that match a pattern.
    pub(super) name: Option<String>,
    /// Terms that the event implies, such as a breakpoint's period of one.
    pub(super) terms: Terms,
}

impl Meaning {
    pub(super) fn new(family: Family, encoding: Encoding) -> Self {
        Self {
            family,
            encoding,
            scale: None,
            cpus: None,
            name: None,
            terms: Terms::default(),
        }
    }
}
