//! The call edges that are known to be possible.

use crate::module::code_mapping::CodeAddress;

/// Call edges: an address in the called function, and the return address minus 1.
#[derive(Debug, Default)]
pub(crate) struct KnownEdges {
    /// Fingerprints, direct-mapped.
    edges: Vec<u64>,
}

impl KnownEdges {
    /// As many as the rule cache has entries.
    const EDGES: usize = 1 << 15;

    /// Whether any stack has continued beyond its dump: until then, nothing is stored.
    #[inline]
    pub(crate) fn wanted(&self) -> bool {
        !self.edges.is_empty()
    }

    /// Starts storing edges.
    pub(crate) fn want(&mut self) {
        if !self.wanted() {
            self.edges.resize(Self::EDGES, 0);
        }
    }

    #[inline]
    pub(crate) fn contain(&self, callee: CodeAddress, caller: CodeAddress) -> bool {
        let edge = fingerprint(callee, caller);
        self.edges.get(slot(edge)) == Some(&edge)
    }

    #[inline]
    pub(crate) fn add(&mut self, callee: CodeAddress, caller: CodeAddress) {
        let edge = fingerprint(callee, caller);
        if let Some(known) = self.edges.get_mut(slot(edge)) {
            *known = edge;
        }
    }
}

/// A fingerprint of an edge, never 0.
#[inline]
fn fingerprint(callee: CodeAddress, caller: CodeAddress) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let number = |at: CodeAddress| at.address ^ (at.module.index() as u64) << 44;
    let mixed = number(callee).wrapping_mul(MIX).rotate_left(32) ^ number(caller);
    mixed.wrapping_mul(MIX).max(1)
}

#[inline]
fn slot(fingerprint: u64) -> usize {
    (fingerprint >> 40) as usize % KnownEdges::EDGES
}
