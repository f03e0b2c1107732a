//! Frames that came with names: those of formats that hold no addresses.

use std::sync::Arc;

use prof_symbols::SymbolFrame;
use rustc_hash::FxHashMap;

use super::function_kind::FunctionKind;

/// A frame as a file names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct NamedFrame {
    /// The short name of its module; empty if unknown.
    pub module: Arc<str>,
    /// The kind of its code.
    pub kind: FunctionKind,
    /// Inlined functions, innermost first, then the physical one. At least one.
    pub functions: Vec<SymbolFrame>,
}

/// A named frame's number in [`NamedFrames`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamedId(u32);

/// Each distinct named frame once.
#[derive(Clone, Debug, Default)]
pub struct NamedFrames {
    frames: Vec<NamedFrame>,
    ids: FxHashMap<NamedFrame, NamedId>,
}

impl NamedFrames {
    /// The id of `frame`, which is added if it is new.
    pub fn intern(&mut self, frame: NamedFrame) -> NamedId {
        if let Some(&id) = self.ids.get(&frame) {
            return id;
        }
        let id = NamedId(self.frames.len() as u32);
        self.frames.push(frame.clone());
        self.ids.insert(frame, id);
        id
    }
}

impl std::ops::Index<NamedId> for NamedFrames {
    type Output = NamedFrame;

    fn index(&self, id: NamedId) -> &NamedFrame {
        &self.frames[id.0 as usize]
    }
}
