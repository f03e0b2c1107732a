//! What leads a group.

use prof_events::counting::AttrOptions;
use prof_events::names::{EventSpec, Family, Modifiers, Terms, encoding_of};

use crate::target::Options;

/// What leads a group: an event that counts nothing and that everybody may open.
pub(super) fn leader_spec(options: Options) -> EventSpec {
    let mut modifiers = Modifiers {
        kernel: false,
        hypervisor: false,
        ..Modifiers::default()
    };
    modifiers.pinned = options.pinned;
    modifiers.exclusive = options.exclusive;
    EventSpec {
        name: "a group's leader".into(),
        family: Family::Software,
        encoding: encoding_of("dummy").unwrap_or_default(),
        modifiers,
        terms: Terms::default(),
        scale: None,
        cpus: None,
    }
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
