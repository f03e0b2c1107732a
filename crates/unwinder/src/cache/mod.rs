//! What is kept from sample to sample.

pub(crate) mod cached_stack;
pub(crate) mod code_facts;
pub(crate) mod rule_cache;
pub(crate) mod unwind_cache;
