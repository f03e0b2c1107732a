//! The leaders of groups.

use prof_events::counting::AttrOptions;
use prof_events::parsing::EventSpec;

use crate::target::Options;

/// The leader of a group: an event that counts nothing and that everybody may open.
pub(super) fn leader_spec(options: Options) -> EventSpec {
    let mut spec = EventSpec::dummy();
    spec.modifiers.pinned = options.pinned;
    spec.modifiers.exclusive = options.exclusive;
    spec
}

/// Leaders wait to be enabled, members for their leader.
pub(super) fn attr_options(options: Options, leads: bool) -> AttrOptions {
    AttrOptions {
        inherit: options.inherit,
        enable_on_exec: options.enable_on_exec,
        group_read: leads,
        enabled: !leads,
    }
}
