//! Where two unwinders differ.

use std::sync::Arc;

use crate::profile::{Answer, CodePlace, Difference, StackCheck};
use crate::symbolize::SymbolizedProfile;

use super::failures::names;

/// How far prof's unwinder and framehop agree, with names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedStackCheck {
    /// The result.
    pub check: StackCheck,
    /// The names in each of its differences.
    pub names: Vec<DifferenceNames>,
}

/// The functions of a [`Difference`], where they have names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DifferenceNames {
    /// The function whose caller is in question.
    pub function: Option<Arc<str>>,
    /// Its caller by prof's unwinder.
    pub prof: Option<Arc<str>>,
    /// Its caller by framehop.
    pub framehop: Option<Arc<str>>,
}

impl NamedStackCheck {
    /// The result for a profile, if stacks were compared when it was loaded.
    pub fn new(symbolized: &SymbolizedProfile) -> Option<Self> {
        let check = symbolized.profile().stack_check.clone()?;
        let names = names(symbolized);
        let name = |place: &CodePlace| names.get(&(place.module.as_str(), place.offset)).cloned();
        let caller = |answer: &Answer| match answer {
            Answer::Caller(place) => name(place),
            Answer::End(_) => None,
        };
        let names = |difference: &Difference| DifferenceNames {
            function: name(&difference.place),
            prof: caller(&difference.prof),
            framehop: caller(&difference.framehop),
        };
        Some(Self {
            names: check.differences.iter().map(names).collect(),
            check,
        })
    }
}
