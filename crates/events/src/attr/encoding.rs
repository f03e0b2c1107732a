//! From an event's spec to the fields of `perf_event_attr` that select the event and the code that
//! counts: the same for counting and for sampling.

use perf_event_open_sys::bindings as sys;

use crate::parsing::{EventSpec, Precise};

/// `perf_event_attr` without `config3`: PERF_ATTR_SIZE_VER7. Older kernels accept larger structures
/// if the fields unknown to them are zero.
const USUAL_SIZE: u32 = 128;
/// With `config3`: PERF_ATTR_SIZE_VER8.
const WITH_CONFIG3: u32 = 136;

/// An attribute with only the event and its modifiers. It points to the path in the spec if that is
/// a uprobe's, so it must not outlive the spec.
pub(crate) fn attr(spec: &EventSpec) -> sys::perf_event_attr {
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
    set_modifiers(&mut attr, spec);
    attr
}

/// The modifiers select what counts, the attribute excludes what does not.
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

/// The bytes of the spec's attribute, by its own size, in the machine's byte order. The pointer to
/// a uprobe's path is zero: it is invalid outside of the call.
pub(crate) fn bytes(attr: &sys::perf_event_attr, spec: &EventSpec) -> Vec<u8> {
    let mut attr = *attr;
    if spec.encoding.path.is_some() {
        attr.__bindgen_anon_3.config1 = 0;
    }
    let size = (attr.size as usize).min(size_of_val(&attr));
    // SAFETY: perf_event_attr is a C structure of integers without padding (the kernel copies it
    // as bytes), all of it is initialized, and `size` is within it.
    let bytes = unsafe { std::slice::from_raw_parts((&raw const attr).cast::<u8>(), size) };
    bytes.to_vec()
}
