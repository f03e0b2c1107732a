//! What samples stand for.

pub(super) mod corrections;
pub(super) mod groups;
pub(super) mod wall;
