//! The call edges that are known to be possible.

use crate::cache::code_facts::CodeAddress;

/// Call edges: an address in the called function, and the return address minus 1.
#[derive(Debug, Default)]
pub(crate) struct KnownEdges {
    /// Fingerprints, direct-mapped.
    edges: Vec<u64>,
}

impl KnownEdges {
    /// As many as there are cached rules.
    const EDGES: usize = 1 << 15;

    /// Whether any stack has gone on beyond its copy: until then, nothing is noted.
    #[inline]
    pub(crate) fn wanted(&self) -> bool {
        !self.edges.is_empty()
    }

    /// From now on, edges are noted.
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

/// A number for an edge, never 0.
#[inline]
fn fingerprint(callee: CodeAddress, caller: CodeAddress) -> u64 {
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let number = |(module, address): CodeAddress| address ^ (module.index() as u64) << 44;
    let mixed = number(callee).wrapping_mul(MIX).rotate_left(32) ^ number(caller);
    mixed.wrapping_mul(MIX).max(1)
}

#[inline]
fn slot(fingerprint: u64) -> usize {
    (fingerprint >> 40) as usize % KnownEdges::EDGES
}
