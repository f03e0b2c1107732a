//! Functions that nothing calls: where a stack that reaches them is whole.

use prof_model::{Quality, StackEnd};
use rustc_hash::FxHashSet;

use crate::profile::{Frame, FrameId, Profile, StackId};

/// The frames that are entries, and what follows for stacks whose frame pointers just ended.
///
/// A chain of frame pointers does not say whether its end is the root: only the name of the
/// outermost function does.
#[derive(Clone, Debug, Default)]
pub(super) struct Entries {
    /// By frame number.
    is_entry: Vec<bool>,
}

impl Entries {
    /// Notes the name of a frame's physical function.
    pub(super) fn set(&mut self, frame: FrameId, name: &str) {
        if self.is_entry.len() <= frame.index() {
            self.is_entry.resize(frame.index() + 1, false);
        }
        self.is_entry[frame.index()] = is_entry(name);
    }

    /// The callers of a stack, without the mark of a cut that turned out to be none.
    pub(super) fn prefix(&self, profile: &Profile, id: StackId) -> Option<StackId> {
        let prefix = profile.stacks.prefix(id)?;
        let is_outermost = self.is_entry(profile.stacks.frame(id)) && ends_open(profile, prefix);
        (!is_outermost).then_some(prefix)
    }

    /// Marks samples whose stacks reach an entry as whole, and returns the profile's quality with
    /// these counted so.
    pub(super) fn mark_whole(&self, profile: &mut Profile) -> Quality {
        let mut quality = profile.quality.clone();
        let Some(&open) = quality.stacks.get(&StackEnd::FramePointersEnded) else {
            return quality;
        };
        let mut whole = vec![false; profile.stacks.len()];
        for id in profile.stacks.iter() {
            whole[id.index()] = match profile.stacks.prefix(id) {
                Some(prefix) if ends_open(profile, prefix) => {
                    self.is_entry(profile.stacks.frame(id))
                }
                Some(prefix) => whole[prefix.index()],
                None => false,
            };
        }
        let ended = StackEnd::FramePointersEnded;
        let marked = (profile.samples).mark_whole(ended, |stack| whole[stack.index()]);
        let marked = marked.min(open);
        quality
            .stacks
            .insert(StackEnd::FramePointersEnded, open - marked);
        let whole = quality.stacks.entry(StackEnd::Root).or_default();
        *whole = whole.saturating_add(marked);
        let entries: FxHashSet<(String, u64)> = profile
            .frames
            .iter()
            .filter(|(id, _)| self.is_entry(*id))
            .filter_map(|(_, frame)| place(profile, frame))
            .collect();
        quality.failures.retain(|failure| {
            let open = failure.end == StackEnd::FramePointersEnded;
            !(open && entries.contains(&(failure.module.clone(), failure.offset)))
        });
        quality
    }

    fn is_entry(&self, frame: FrameId) -> bool {
        self.is_entry.get(frame.index()).copied().unwrap_or(false)
    }
}

/// A frame as an [`UnwindFailure`](prof_model::UnwindFailure) names it.
fn place(profile: &Profile, frame: Frame) -> Option<(String, u64)> {
    match frame {
        Frame::Module { module, offset } => {
            let path = profile.modules[module].path.to_string_lossy();
            Some((path.into_owned(), offset.0))
        }
        _ => None,
    }
}

fn ends_open(profile: &Profile, id: StackId) -> bool {
    profile.frames[profile.stacks.frame(id)] == Frame::Cut(StackEnd::FramePointersEnded)
}

/// Whether processes or threads begin in a function of this name. `start_thread` and
/// `__libc_start_main` are among them because what calls these keeps no frame pointer. A process of
/// Erlang has a stack of its own, whose outermost frame returns to `erts_beamasm:normal_exit/0`:
/// so jitdumps name it, and perf maps with a `$` before it.
fn is_entry(name: &str) -> bool {
    let name = name.strip_prefix('$').unwrap_or(name);
    // Go's names for assembly end so.
    let name = name.strip_suffix(".abi0").unwrap_or(name);
    let exact = [
        "_start",
        "_dl_start",
        "_dl_start_user",
        "start_thread",
        "runtime.goexit",
        "runtime.rt0_go",
        "runtime.clone",
        "runtime.mstart",
    ];
    let starts = [
        "clone",
        "__clone",
        "__libc_start",
        "erts_beamasm:normal_exit/0",
        "_rt0_",
    ];
    exact.contains(&name) || starts.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_by_name() {
        let check = |name, expected| assert_eq!(is_entry(name), expected, "{name}");
        for name in [
            "_start",
            "clone3",
            "__clone",
            "__libc_start_main_impl",
            "start_thread",
            "$erts_beamasm:normal_exit/0-CodeInfoPrologue",
            "erts_beamasm:normal_exit/0",
            "runtime.goexit",
            "runtime.goexit.abi0",
            "runtime.mstart.abi0",
            "_rt0_amd64_linux",
        ] {
            check(name, true);
        }
        for name in [
            "main",
            "start",
            "_start_work",
            "a.out+0x10",
            "runtime.goexit1",
        ] {
            check(name, false);
        }
    }
}
