//! Functions: their `SharedFunctionInfo`, which is one for all closures of a piece of source.

use super::layout::Layout;
use super::object::{Object, instance_type, object_at};
use super::scope_info::ScopeInfo;
use super::script::Scripts;
use super::text::text;
use crate::Memory;

/// What leads to the name of a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SharedInfo {
    name_or_scope: Option<Object>,
    script: Option<Object>,
}

/// The longest name.
const NAME: usize = 512;

impl SharedInfo {
    /// Reads the object; `None` if it is none.
    pub(super) fn read(layout: &Layout, memory: &mut impl Memory, shared: Object) -> Option<Self> {
        const SIZE: usize = 64;
        let mut bytes = [0; SIZE];
        let count = memory.read(shared.at(0), &mut bytes);
        let bytes = bytes.get(..count)?;
        let kind = instance_type(layout, memory, object_at(bytes, 0)?)?;
        (kind == layout.types.shared_info).then_some(Self {
            name_or_scope: object_at(bytes, layout.shared_info.name_or_scope),
            script: object_at(bytes, layout.shared_info.script),
        })
    }

    /// The name, in the style of V8's perf maps: `JS:NAME FILE:LINE:COLUMN`.
    pub(super) fn function_name(
        &self,
        layout: &Layout,
        memory: &mut impl Memory,
        scripts: &mut Scripts,
    ) -> Option<String> {
        let (name, start) = match self.name_or_scope {
            Some(object) if object.instance_type(layout, memory)? == layout.types.scope_info => {
                let scope = ScopeInfo::read(layout, memory, object)?;
                let mut name = |object| text(layout, memory, object, NAME);
                let own = scope.name.and_then(&mut name);
                let own = own.filter(|name| !name.is_empty());
                (
                    own.or_else(|| scope.inferred.and_then(&mut name)),
                    scope.start,
                )
            }
            Some(object) => (Some(text(layout, memory, object, NAME)?), None),
            // A function without a name.
            None => (None, None),
        };
        let script = self
            .script
            .filter(|script| script.instance_type(layout, memory) == Some(layout.types.script));
        let place = script.and_then(|script| scripts.place(layout, memory, script, start));
        let name = name.filter(|name| !name.is_empty());
        let name = name.as_deref().unwrap_or("(anonymous)");
        Some(match place {
            Some(place) => format!("JS:{name} {place}"),
            None => format!("JS:{name}"),
        })
    }
}
