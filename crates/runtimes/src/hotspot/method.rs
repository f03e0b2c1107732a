//! Methods in frames of the interpreter.

use std::ops::Range;

use super::layout::HotspotLayout;
use crate::Memory;
use crate::read::word;

/// The addresses of the bytecodes of the method at this address; empty for a native one. `None` if
/// it is not a method.
pub(super) fn bytecodes(
    layout: &HotspotLayout,
    memory: &mut impl Memory,
    method: u64,
) -> Option<Range<u64>> {
    let layout = &layout.method;
    if !method.is_multiple_of(8) {
        return None;
    }
    let const_method = word(memory, method.checked_add(layout.const_method.into())?)?;
    if const_method == 0 || !const_method.is_multiple_of(8) {
        return None;
    }
    let size = word(memory, const_method.checked_add(layout.code_size.into())?)? & 0xffff;
    let start = const_method.checked_add(layout.bytecodes.into())?;
    Some(start..start.checked_add(size)?)
}
