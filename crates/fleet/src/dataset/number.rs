//! Numbers of stacks that are the same on every machine.

use prof_report::SymbolizedProfile;
use prof_report::profile::{Frame, FrameId, StackId};
use ring::digest::{Context, SHA256};

use crate::table::StackHash;

/// The numbers of all stacks of a profile, by their index.
///
/// Each is made of the number of its callers, so that one pass does. They depend on names only
/// where nothing else is the same on two machines.
pub(super) fn of_stacks(profile: &SymbolizedProfile) -> Vec<StackHash> {
    let stacks = &profile.profile().stacks;
    let mut numbers = vec![StackHash::default(); stacks.len()];
    for id in stacks.iter() {
        let callers = profile.prefix(id).map(|callers| numbers[callers.index()]);
        numbers[id.index()] = number(profile, callers, id);
    }
    numbers
}

fn number(profile: &SymbolizedProfile, callers: Option<StackHash>, id: StackId) -> StackHash {
    let mut hash = Context::new(&SHA256);
    if let Some(callers) = callers {
        hash.update(&callers.0);
    }
    frame(profile, profile.profile().stacks.frame(id), |bytes| {
        hash.update(bytes)
    });
    let mut number = StackHash::default();
    for (to, from) in number.0.iter_mut().zip(hash.finish().as_ref()) {
        *to = *from;
    }
    number
}

/// Hands over the bytes that stand for a frame. The first says of which kind they are.
fn frame(symbolized: &SymbolizedProfile, id: FrameId, mut put: impl FnMut(&[u8])) {
    let profile = symbolized.profile();
    match profile.frames[id] {
        Frame::Module { module, offset } => {
            let module = &profile.modules[module];
            match &module.build_id {
                Some(build_id) => {
                    put(b"b");
                    put(build_id.as_bytes());
                }
                None => {
                    put(b"p");
                    put(module.path.as_os_str().as_encoded_bytes());
                    put(&[0]);
                }
            }
            put(&offset.0.to_le_bytes());
        }
        Frame::Kernel(address) => {
            put(b"k");
            put(profile
                .kernel
                .build_id
                .as_ref()
                .map_or(&[], |id| id.as_bytes()));
            let text = profile.kernel.text.unwrap_or(0);
            put(&address.wrapping_sub(text).to_le_bytes());
        }
        Frame::Unknown(_) => put(b"u"),
        // Code made at run time, what came with names, and marks of what is missing.
        _ => {
            put(b"n");
            for location in symbolized.locations(id) {
                put(symbolized[location.function].name.as_bytes());
                put(&[0]);
            }
        }
    }
}
