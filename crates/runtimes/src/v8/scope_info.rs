//! The name and the position of a function in its `ScopeInfo` (`src/objects/scope-info.tq`).
//!
//! ```text
//!   flags, parameter count, count of locals, [start, end of the source,] [count of exports,]
//!   names of the locals, or a table of them, data of the locals,
//!   [class variable,] [name, place of the function variable,] [inferred name,] [start, end]
//! ```

use super::layout::Layout;
use super::object::{Object, small_integer};
use crate::Memory;
use crate::read::word_at;

/// What a `ScopeInfo` says of its function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScopeInfo {
    pub(super) name: Option<Object>,
    /// The name of the variable or property that it is assigned to.
    pub(super) inferred: Option<Object>,
    /// Where its source begins, in characters of the script.
    pub(super) start: Option<u32>,
}

/// Bits of the flags.
const SCOPE_TYPE: u32 = 0b1111;
const MODULE: u32 = 5;
const HAS_CLASS_VARIABLE: u32 = 1 << 10;
const FUNCTION_VARIABLE: u32 = 0b11 << 12;
const HAS_INFERRED_NAME: u32 = 1 << 14;
/// With so many locals, their names are in a table.
const INLINE_LOCALS: usize = 75;
/// Functions have fewer locals that others use.
const MOST_LOCALS: usize = 1 << 16;
/// Words of the parts that are not for each local.
const FIXED: usize = 16;

impl ScopeInfo {
    /// Reads the object, which is one.
    pub(super) fn read(layout: &Layout, memory: &mut impl Memory, scope: Object) -> Option<Self> {
        let layout = layout.scope;
        let mut head = [0; 8 * (1 + FIXED)];
        let count = memory.read(scope.at(0), &mut head);
        let head = head.get(..count)?;
        let field = |index: usize| word_at(head, u16::try_from(8 * (1 + index)).ok()?);
        let flags = match field(0)? {
            // A number of 32 bits, or a small integer.
            word if word as u32 != 0 => word as u32,
            word => (word >> 32) as u32,
        };
        let locals = small_integer(field(layout.local_count)?)?;
        let locals = usize::try_from(locals)
            .ok()
            .filter(|it| *it < MOST_LOCALS)?;
        let has_position_first = layout.first_local > layout.local_count + 1;
        let is_module = flags & SCOPE_TYPE == MODULE;
        let names = match locals < INLINE_LOCALS {
            true => locals,
            false => 1,
        };
        let variables = layout.first_local
            + usize::from(has_position_first && is_module)
            + names
            + locals
            + usize::from(flags & HAS_CLASS_VARIABLE != 0);
        let mut rest = [0; 8 * 5];
        // At the end of a page, fewer can be read.
        let count = memory.read(scope.at(8 * (1 + variables as u64)), &mut rest);
        let mut rest = rest.get(..count)?.chunks_exact(8);
        let mut next = || rest.next().and_then(|word| word_at(word, 0));
        let mut found = Self::default();
        if flags & FUNCTION_VARIABLE != 0 {
            found.name = next().and_then(Object::tagged);
            next();
        }
        if flags & HAS_INFERRED_NAME != 0 {
            found.inferred = next().and_then(Object::tagged);
        }
        let start = match has_position_first {
            true => field(layout.local_count + 1),
            false => next(),
        };
        let start = start.and_then(small_integer);
        found.start = start.and_then(|it| u32::try_from(it).ok());
        Some(found)
    }
}
