//! Regular expressions for names.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use regex::{NoExpand, Regex};

/// A regular expression that matches anywhere in a name.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl Pattern {
    /// Whether it matches `name`.
    pub fn matches(&self, name: &str) -> bool {
        self.0.is_match(name)
    }

    /// The name with each match replaced.
    pub(crate) fn replace_all<'n>(&self, name: &'n str, by: &str) -> Cow<'n, str> {
        self.0.replace_all(name, NoExpand(by))
    }
}

impl FromStr for Pattern {
    type Err = InvalidPattern;

    fn from_str(text: &str) -> Result<Self, InvalidPattern> {
        Regex::new(text).map(Self).map_err(InvalidPattern)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str())
    }
}

/// Not a regular expression.
#[derive(Debug, thiserror::Error)]
#[error("not a regular expression: {0}")]
pub struct InvalidPattern(regex::Error);
