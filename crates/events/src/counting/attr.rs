//! From an event's spec to the kernel's `perf_event_attr`.

use perf_event_open_sys::bindings as sys;

use crate::attr::encoding;
use crate::parsing::EventSpec;

/// Which threads inherit the event besides the thread that it is opened on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// None.
    #[default]
    No,
    /// The threads that it creates later (`inherit_thread`, Linux 5.13).
    Threads,
    /// The threads and processes that it creates later, and theirs.
    Children,
}

/// How an event is opened, in addition to its spec.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrOptions {
    /// Which threads inherit it; the spec's terms `inherit` and `no-inherit` have priority.
    pub inherit: Inherit,
    /// Whether counting begins by itself when the thread calls `exec`.
    pub enable_on_exec: bool,
    /// Whether reading it reads its whole group.
    pub group_read: bool,
    /// Whether it counts at once, or as soon as its group's leader does.
    pub enabled: bool,
}

/// The attribute for counting. It points to the path in the spec if that is a uprobe's,
/// so it must not outlive the spec.
pub(super) fn attr(spec: &EventSpec, options: AttrOptions) -> sys::perf_event_attr {
    let mut attr = encoding::attr(spec);
    attr.read_format = u64::from(
        sys::PERF_FORMAT_TOTAL_TIME_ENABLED
            | sys::PERF_FORMAT_TOTAL_TIME_RUNNING
            | sys::PERF_FORMAT_ID
            | if options.group_read {
                sys::PERF_FORMAT_GROUP
            } else {
                0
            },
    );
    attr.set_disabled((!options.enabled).into());
    attr.set_enable_on_exec(options.enable_on_exec.into());
    set_inherit(&mut attr, spec, options.inherit);
    attr
}

fn set_inherit(attr: &mut sys::perf_event_attr, spec: &EventSpec, inherit: Inherit) {
    let inherit = match (spec.terms.inherit, inherit) {
        (Some(false), _) => Inherit::No,
        (Some(true), Inherit::No) => Inherit::Children,
        (_, inherit) => inherit,
    };
    attr.set_inherit((inherit != Inherit::No).into());
    attr.set_inherit_thread((inherit == Inherit::Threads).into());
}

/// The attribute as the kernel gets it for counting, in the machine's byte order: for comparing
/// encodings. The pointer of a uprobe is zero.
pub fn attr_bytes(spec: &EventSpec, options: AttrOptions) -> Vec<u8> {
    encoding::bytes(&attr(spec, options), spec)
}
