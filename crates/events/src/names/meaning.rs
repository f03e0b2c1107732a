//! What names stand for.

use super::spec::{Encoding, Family};
use super::terms::Terms;

/// What a name stands for, before terms and modifiers.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Meaning {
    pub(super) family: Family,
    pub(super) encoding: Encoding,
    pub(super) scale: Option<(f64, String)>,
    pub(super) cpus: Option<Vec<u32>>,
    /// The name, where it is not what was typed: one of several that fit a pattern.
    pub(super) name: Option<String>,
    /// What goes with the event by itself, such as a breakpoint's period of one.
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
