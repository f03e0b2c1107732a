//! Caches that live from sample to sample.

pub(crate) mod code_facts;
pub(crate) mod known_edges;
pub(crate) mod rule_cache;
