//! Names that travel in the recording, so that it can be reported where the files are not.

use crate::query::{Query, Resolved};

/// The answers to a set of queries, in a form that can be stored.
#[derive(Clone, Debug, Default)]
pub struct EmbeddedSymbols {}

/// Why stored symbols could not be read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EmbeddedError {
    /// The bytes end early or contradict themselves.
    #[error("the embedded symbols are damaged")]
    Damaged,
    /// Written by a later version.
    #[error("the embedded symbols have format {0}, which this version does not know")]
    UnknownVersion(u32),
}

impl EmbeddedSymbols {
    /// The answers to `queries`.
    pub fn new(_queries: &[Query<'_>], _answers: &[Resolved]) -> Self {
        Self::default()
    }

    /// The form to store.
    pub fn to_bytes(&self) -> Vec<u8> {
        Vec::new()
    }

    /// Reads what [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When the bytes are not in a form that this version knows.
    pub fn from_bytes(_bytes: &[u8]) -> Result<Self, EmbeddedError> {
        Ok(Self::default())
    }
}
