//! Which calls were read from live memory, after their samples.

use super::Builder;
use crate::profile::{Frame, Profile, StackId};

/// Marks the calls of the part of a tree that was just built, but not their callers.
pub(super) fn mark(builder: &mut Builder<'_, '_>) {
    if builder.remote_read.is_empty() {
        return;
    }
    let profile = builder.symbolized.profile();
    let depths = builder.depths.get_or_init(|| depths(profile));
    for ((stack, count), samples) in std::mem::take(&mut builder.remote_read) {
        if !builder.places[stack.index()].is_some_and(|place| builder.accepts(place)) {
            continue;
        }
        // The innermost of the frames that were read from live memory; its callers were, too.
        let mut last = Some(stack);
        while let Some(id) = last.filter(|id| depths[id.index()] > u64::from(count)) {
            last = builder.symbolized.prefix(id);
        }
        if let Some(place) = last.and_then(|last| builder.places[last.index()]) {
            builder.nodes.add_remote_read(place.node, samples);
        }
    }
}

/// By stack: how many frames it has, those left out among them.
fn depths(profile: &Profile) -> Vec<u64> {
    let mut depths: Vec<u64> = Vec::with_capacity(profile.stacks.len());
    // A stack comes after the one that it extends.
    for id in profile.stacks.iter() {
        let callers = profile.stacks.prefix(id);
        let callers = callers.map_or(0, |callers| depths[callers.index()]);
        depths.push(callers + frames(profile, id));
    }
    depths
}

fn frames(profile: &Profile, id: StackId) -> u64 {
    match profile.frames[profile.stacks.frame(id)] {
        Frame::Cut(_) => 0,
        Frame::LeftOut(count) => count.into(),
        _ => 1,
    }
}
