//! A request that the kernel forbids as a whole, without the part of it that it forbids.
//!
//! Kernels, security modules and sandboxes may forbid options that others allow, and all of them
//! answer EACCES or EPERM. So each part that a recording can do without is left out in turn.

use prof_model::{Fallback, RefusedPart};
use rustix::io::Errno;

use crate::attr::setup::Setup;
use crate::plan::fallback::Accepted;

/// What a recording can do without.
const PARTS: [RefusedPart; 2] = [RefusedPart::CallChain, RefusedPart::BuildIds];

/// The event without what the kernel forbids of it: one part, or else all of them; `None` if it is
/// forbidden even so.
pub(super) fn narrow<T>(
    forbidden: &Setup,
    mut open: impl FnMut(&Setup) -> Result<T, Errno>,
) -> Option<Accepted<T>> {
    let parts: Vec<RefusedPart> = PARTS
        .into_iter()
        .filter(|&part| has(forbidden, part))
        .collect();
    let each = parts.chunks(1);
    let all = Some(parts.as_slice()).filter(|parts| parts.len() > 1);
    each.chain(all).find_map(|parts| {
        let setup = without(forbidden, parts);
        let event = open(&setup).ok()?;
        let fallbacks = parts.iter().map(|&part| Fallback::Refused { part });
        Some(Accepted {
            event,
            setup,
            fallbacks: fallbacks.collect(),
        })
    })
}

fn has(setup: &Setup, part: RefusedPart) -> bool {
    match part {
        // A kernel's chain cannot be replaced.
        RefusedPart::CallChain => setup.with_dump.user_chain && !setup.spec.modifiers.kernel,
        RefusedPart::BuildIds => setup.features.build_ids,
    }
}

fn without(forbidden: &Setup, parts: &[RefusedPart]) -> Setup {
    let mut setup = forbidden.clone();
    for part in parts {
        match part {
            RefusedPart::CallChain => setup.with_dump.user_chain = false,
            RefusedPart::BuildIds => setup.features.build_ids = false,
        }
    }
    setup
}
