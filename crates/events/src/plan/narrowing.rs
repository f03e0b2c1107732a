//! A request that the kernel forbids as a whole, without the part of it that it forbids.
//!
//! Kernels, security modules and sandboxes may forbid options that others allow, and all of them
//! answer EACCES or EPERM. So each part that a recording can do without is left out in turn.

use prof_model::{Fallback, RefusedPart};

use crate::attr::setup::Setup;

/// What a recording can do without.
const PARTS: [RefusedPart; 2] = [RefusedPart::CallChain, RefusedPart::BuildIds];

/// The requests to try instead of a forbidden one: each without one part, then without all of them.
pub(super) fn narrower(forbidden: &Setup) -> Vec<(Setup, Vec<Fallback>)> {
    let parts = PARTS.into_iter().filter(|&part| has(forbidden, part));
    let parts: Vec<RefusedPart> = parts.collect();
    let all = Some(parts.as_slice()).filter(|parts| parts.len() > 1);
    let request = |parts: &[RefusedPart]| {
        let said = parts.iter().map(|&part| Fallback::Refused { part });
        (without(forbidden, parts), said.collect())
    };
    parts.chunks(1).chain(all).map(request).collect()
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
