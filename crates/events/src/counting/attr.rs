//! From an event's spec to the kernel's `perf_event_attr`.

use perf_event_open_sys::bindings as sys;

use crate::names::{EventSpec, Precise};

/// Who else is counted besides the thread that the event is opened on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inherit {
    /// Nobody.
    #[default]
    No,
    /// The threads that it makes from then on (`inherit_thread`, Linux 5.13).
    Threads,
    /// The threads and processes that it makes from then on, and theirs.
    Children,
}

/// How an event is opened, besides what its spec says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AttrOptions {
    /// Who else is counted; the spec's terms `inherit` and `no-inherit` go first.
    pub inherit: Inherit,
    /// Whether counting begins by itself when the thread calls `exec`.
    pub enable_on_exec: bool,
    /// Whether reading it reads its whole group.
    pub group_read: bool,
    /// Whether it counts at once, or as soon as its group's leader does.
    pub enabled: bool,
}

/// `perf_event_attr` without `config3`: PERF_ATTR_SIZE_VER7. Older kernels take larger structures
/// than they know if what they don't know is zero.
const USUAL_SIZE: u32 = 128;
/// With `config3`: PERF_ATTR_SIZE_VER8.
const WITH_CONFIG3: u32 = 136;

/// The attribute for counting. It points to the path in the spec if that is a uprobe's,
/// so it must not outlive the spec.
pub(super) fn attr(spec: &EventSpec, options: AttrOptions) -> sys::perf_event_attr {
    let encoding = &spec.encoding;
    let mut attr = sys::perf_event_attr {
        type_: encoding.kind,
        size: if encoding.config3 == 0 {
            USUAL_SIZE
        } else {
            WITH_CONFIG3
        },
        config: encoding.config,
        bp_type: encoding.breakpoint,
        config3: encoding.config3,
        ..Default::default()
    };
    attr.__bindgen_anon_3.config1 = match &encoding.path {
        Some(path) => path.as_ptr() as u64,
        None => encoding.config1,
    };
    attr.__bindgen_anon_4.config2 = encoding.config2;
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
    set_modifiers(&mut attr, spec);
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

/// The modifiers say what counts, the attribute what does not.
fn set_modifiers(attr: &mut sys::perf_event_attr, spec: &EventSpec) {
    let modifiers = spec.modifiers;
    attr.set_exclude_user((!modifiers.user).into());
    attr.set_exclude_kernel((!modifiers.kernel).into());
    attr.set_exclude_hv((!modifiers.hypervisor).into());
    attr.set_exclude_idle(modifiers.not_idle.into());
    attr.set_exclude_host((!modifiers.host).into());
    attr.set_exclude_guest((!modifiers.guest).into());
    attr.set_pinned(modifiers.pinned.into());
    attr.set_exclusive(modifiers.exclusive.into());
    attr.set_precise_ip(match modifiers.precise {
        Precise::Level(level) => level.into(),
        Precise::Maximum => 0,
    });
}

/// The attribute as the kernel gets it for counting, in the machine's byte order: for comparing
/// encodings. The pointer of a uprobe is zero.
pub fn attr_bytes(spec: &EventSpec, options: AttrOptions) -> Vec<u8> {
    let mut attr = attr(spec, options);
    if spec.encoding.path.is_some() {
        attr.__bindgen_anon_3.config1 = 0;
    }
    let size = (attr.size as usize).min(size_of_val(&attr));
    // SAFETY: perf_event_attr is a C structure of integers without padding (the kernel copies it
    // as bytes), every byte was initialized by `default`, and `size` is within it.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const attr).cast::<u8>(), size) };
    bytes.to_vec()
}
