//! Functions, each once.

use std::borrow::Cow;
use std::ops::Index;
use std::sync::Arc;

use prof_model::printable;
use rustc_hash::FxHashMap;

use super::plan::UNKNOWN;
use crate::profile::FunctionKind;

/// A function as views show it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name; `module+0xoffset` if it has none.
    pub name: Arc<str>,
    /// The short name of the module it is in (`libc.so.6`), `[kernel]`, `[jit]` or empty.
    pub module: Arc<str>,
    /// The kind of code.
    pub kind: FunctionKind,
}

impl Function {
    /// Whether its name is only where it is.
    pub(crate) fn is_unnamed(&self) -> bool {
        let rest = self.name.strip_prefix(&*self.module);
        rest.is_some_and(|rest| rest.starts_with("+0x")) || &*self.name == UNKNOWN
    }

    /// As people get to see it.
    fn printable(&self) -> Self {
        let clean = |text: &Arc<str>| match printable(text) {
            Cow::Borrowed(_) => Arc::clone(text),
            Cow::Owned(clean) => clean.into(),
        };
        Self {
            name: clean(&self.name),
            module: clean(&self.module),
            kind: self.kind,
        }
    }
}

/// A function's number among a profile's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FunctionId(u32);

impl FunctionId {
    /// The position in [`SymbolizedProfile::functions`](super::SymbolizedProfile::functions).
    pub fn index(self) -> usize {
        self.0 as usize
    }

    pub(super) fn from_number(number: u32) -> Self {
        Self(number)
    }
}

/// Each distinct function once.
#[derive(Clone, Debug, Default)]
pub(super) struct Functions {
    functions: Vec<Function>,
    ids: FxHashMap<Function, FunctionId>,
}

impl Functions {
    pub(super) fn intern(&mut self, function: Function) -> FunctionId {
        if let Some(&id) = self.ids.get(&function) {
            return id;
        }
        let id = FunctionId(self.functions.len() as u32);
        self.functions.push(function.printable());
        self.ids.insert(function, id);
        id
    }

    pub(super) fn as_slice(&self) -> &[Function] {
        &self.functions
    }
}

impl Index<FunctionId> for Functions {
    type Output = Function;

    fn index(&self, id: FunctionId) -> &Function {
        &self.functions[id.index()]
    }
}
