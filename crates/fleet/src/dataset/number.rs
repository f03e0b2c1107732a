//! Numbers of stacks that are the same on every machine.

use prof_report::SymbolizedProfile;
use prof_report::profile::{Frame, FrameId, StackId};
use sha2::{Digest, Sha256};

use crate::table::StackHash;

/// A stack of a profile, with its number.
#[derive(Clone, Copy, Debug)]
pub(super) struct NumberedStack {
    pub(super) id: StackId,
    pub(super) hash: StackHash,
    /// How many of its functions have symbols.
    pub(super) named: i32,
}

/// All stacks of a profile, by their index.
///
/// Each number is made of the number of the stack's callers, so that one pass does. They depend on
/// names only where nothing else is the same on two machines.
pub(super) fn of_stacks(profile: &SymbolizedProfile) -> Vec<NumberedStack> {
    let frames = FrameBytes::of(profile);
    let stacks = &profile.profile().stacks;
    let mut numbered: Vec<NumberedStack> = Vec::with_capacity(stacks.len());
    let mut bytes = Vec::new();
    for id in stacks.iter() {
        let callers = profile.prefix(id).map(|callers| numbered[callers.index()]);
        bytes.clear();
        if let Some(callers) = callers {
            bytes.extend(callers.hash.bytes());
        }
        let (innermost, named) = frames.get(stacks.frame(id));
        bytes.extend_from_slice(innermost);
        numbered.push(NumberedStack {
            id,
            hash: number(&bytes),
            named: callers.map_or(0, |callers| callers.named) + named,
        });
    }
    numbered
}

/// The bytes that stand for each frame of a profile.
struct FrameBytes {
    bytes: Vec<u8>,
    /// Where those of each frame end, and how many functions of it have symbols.
    frames: Vec<(usize, i32)>,
}

impl FrameBytes {
    fn of(profile: &SymbolizedProfile) -> Self {
        let mut bytes = Vec::new();
        let frames = profile.profile().frames.iter().map(|(id, _)| {
            frame(profile, id, |more| bytes.extend_from_slice(more));
            (bytes.len(), named(profile, id))
        });
        Self {
            frames: frames.collect(),
            bytes,
        }
    }

    fn get(&self, frame: FrameId) -> (&[u8], i32) {
        let before = frame.index().checked_sub(1);
        let start = before.map_or(0, |before| self.frames[before].0);
        let (end, named) = self.frames[frame.index()];
        (&self.bytes[start..end], named)
    }
}

/// How many functions of a frame have symbols.
fn named(profile: &SymbolizedProfile, frame: FrameId) -> i32 {
    let functions = profile.locations(frame).iter();
    let functions = functions.map(|location| &profile[location.function]);
    let named = functions.map(|function| i32::from(has_symbol(&function.name, &function.module)));
    named.sum()
}

/// Functions without symbols are called by their module and address.
fn has_symbol(function: &str, module: &str) -> bool {
    let rest = function.strip_prefix(module);
    !rest.is_some_and(|rest| rest.starts_with("+0x"))
}

/// The number of a stack that these bytes stand for.
fn number(bytes: &[u8]) -> StackHash {
    let mut number = [0; 16];
    for (to, from) in number.iter_mut().zip(Sha256::digest(bytes)) {
        *to = from;
    }
    StackHash::of_bytes(number)
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
                    // Other programs may have this path, in containers and on other machines.
                    put_names(symbolized, id, &mut put);
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
            put_names(symbolized, id, &mut put);
        }
    }
}

/// Hands over the names of a frame's functions.
fn put_names(symbolized: &SymbolizedProfile, id: FrameId, put: &mut impl FnMut(&[u8])) {
    for location in symbolized.locations(id) {
        put(symbolized[location.function].name.as_bytes());
        put(&[0]);
    }
}

#[cfg(test)]
mod tests {
    use prof_model::{FileIdentity, FileOffset, Module};
    use prof_report::Profile;
    use prof_symbols::{SymbolOptions, Symbolizer};

    use super::*;

    /// The number of a stack of this frame in our own program, as if it had no build id.
    fn number_of(inode: u64, offset: u64, is_named: bool) -> StackHash {
        let mut profile = Profile::default();
        let path = std::env::current_exe().expect("our path");
        let module = profile.modules.intern(Module {
            identity: Some(FileIdentity {
                device: (8, 1),
                inode,
                generation: 0,
            }),
            ..Module::from_path(path)
        });
        let offset = FileOffset(offset);
        let frame = profile.frames.intern(Frame::Module { module, offset });
        profile.stacks.intern(None, frame);
        let profile = match is_named {
            true => SymbolizedProfile::new(profile, &Symbolizer::new(SymbolOptions::default())),
            false => SymbolizedProfile::without_names(profile),
        };
        of_stacks(&profile)[0].hash
    }

    #[test]
    fn without_a_build_id_names_tell_programs_apart_and_inodes_do_not() {
        let address = of_stacks as fn(&SymbolizedProfile) -> Vec<NumberedStack> as usize as u64;
        let maps = std::fs::read_to_string("/proc/self/maps").expect("our maps");
        let offset = maps.lines().find_map(|line| {
            let hex = |word: &str| u64::from_str_radix(word, 16).ok();
            let (start, rest) = line.split_once('-')?;
            let mut rest = rest.split(' ');
            let (start, end) = (hex(start)?, hex(rest.next()?)?);
            let offset = hex(rest.nth(1)?)?;
            (start..end)
                .contains(&address)
                .then(|| address - start + offset)
        });
        let offset = offset.expect("our code is mapped");
        assert_eq!(number_of(1, offset, true), number_of(2, offset, true));
        assert_ne!(number_of(1, offset, true), number_of(1, offset + 1, true));
        assert_ne!(number_of(1, offset, true), number_of(1, offset, false));
    }
}
