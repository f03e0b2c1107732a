//! Colours of a flame graph: a hue for each kind of code, and a shade of it for each function, the
//! same in every graph.

use inferno::flamegraph::color::{Color, PaletteMap};

use crate::calltree::{CallTree, Label, NodeId};
use crate::symbolized::{Function, FunctionKind, SymbolizedProfile};

/// Kinds of code that have a hue of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hue {
    /// A thread, process or CPU.
    Part,
    Kernel,
    Jit,
    Rust,
    Cpp,
    /// C, and all that nothing is known of but a name.
    Plain,
    /// A function without a name.
    Unnamed,
    /// Frames that are missing.
    Missing,
}

impl Hue {
    /// Red, green and blue of the darkest shade, and how much is added to them at most.
    fn range(self) -> ([u8; 3], [u8; 3]) {
        match self {
            Self::Part => ([170, 190, 225], [0, 0, 0]),
            Self::Kernel => ([220, 120, 20], [30, 35, 20]),
            Self::Jit => ([90, 180, 90], [40, 40, 40]),
            Self::Rust => ([222, 150, 95], [28, 35, 35]),
            Self::Cpp => ([200, 185, 70], [35, 35, 30]),
            Self::Plain => ([215, 95, 80], [35, 50, 45]),
            Self::Unnamed => ([180, 170, 165], [25, 25, 25]),
            Self::Missing => ([205, 205, 205], [0, 0, 0]),
        }
    }

    fn shade(self, name: &str, inlined: bool) -> Color {
        let (darkest, span) = self.range();
        let shade = hash(name);
        let channel = |index: usize| {
            let value = u16::from(darkest[index]) + u16::from(span[index]) * shade / 255;
            // Inlined functions are halfway to white.
            let value = if inlined { (value + 255) / 2 } else { value };
            value.min(255) as u8
        };
        Color {
            r: channel(0),
            g: channel(1),
            b: channel(2),
        }
    }
}

/// The colours of all nodes of a tree, by the names that `name` gives to them in the graph.
pub(super) fn palette(tree: &CallTree<'_>, name: impl Fn(NodeId) -> String) -> PaletteMap {
    let languages = Languages::of(tree.symbolized());
    let mut palette = PaletteMap::default();
    // What inferno calls the frame of everything.
    palette.insert("", Hue::Part.shade("", false));
    for (id, node) in tree.nodes() {
        let hue = match node.label {
            Label::Function(function) => {
                let is_rust = languages.is_rust[function.index()];
                hue(&tree.symbolized()[function], is_rust)
            }
            Label::All | Label::Part(_) => Hue::Part,
        };
        palette.insert(name(id), hue.shade(tree.name(id), node.inlined));
    }
    palette
}

fn hue(function: &Function, is_rust: bool) -> Hue {
    match function.kind {
        FunctionKind::Kernel => Hue::Kernel,
        FunctionKind::Jit => Hue::Jit,
        FunctionKind::Missing => Hue::Missing,
        _ if is_unnamed(function) => Hue::Unnamed,
        _ if is_rust || looks_like_rust(&function.name) => Hue::Rust,
        _ if function.name.contains("::") => Hue::Cpp,
        _ => Hue::Plain,
    }
}

fn is_unnamed(function: &Function) -> bool {
    let rest = function.name.strip_prefix(&*function.module);
    rest.is_some_and(|rest| rest.starts_with("+0x")) || function.name.starts_with("[unknown]")
}

fn looks_like_rust(name: &str) -> bool {
    ["core::", "alloc::", "<"]
        .iter()
        .any(|start| name.starts_with(start))
}

/// Which functions are written in Rust, as far as their source files tell.
struct Languages {
    is_rust: Vec<bool>,
}

impl Languages {
    fn of(symbolized: &SymbolizedProfile) -> Self {
        let mut is_rust = vec![false; symbolized.functions().len()];
        for (frame, _) in symbolized.profile().frames.iter() {
            for location in symbolized.locations(frame) {
                let file = location.file.as_deref();
                is_rust[location.function.index()] |= file.is_some_and(|f| f.ends_with(".rs"));
            }
        }
        Self { is_rust }
    }
}

/// A number from 0 to 255 that is the same for the same name on every machine (FNV-1a, folded).
fn hash(name: &str) -> u16 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u16 & 0xff
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn hues() {
        let check = |name: &str, kind, expected| {
            let function = Function {
                name: Arc::from(name),
                module: Arc::from("libz.so.1"),
                kind,
            };
            assert_eq!(hue(&function, false), expected, "{name}");
        };
        check("vfs_read", FunctionKind::Kernel, Hue::Kernel);
        check("deflate", FunctionKind::User, Hue::Plain);
        check("libz.so.1+0x10", FunctionKind::User, Hue::Unnamed);
        check("[unknown] 0x10", FunctionKind::User, Hue::Unnamed);
        check("ns::Class::method(int)", FunctionKind::User, Hue::Cpp);
        check(
            "<T as core::fmt::Debug>::fmt",
            FunctionKind::User,
            Hue::Rust,
        );
        check("[truncated: ...]", FunctionKind::Missing, Hue::Missing);
    }

    #[test]
    fn a_function_has_one_colour() {
        assert_eq!(
            Hue::Plain.shade("deflate", false),
            Hue::Plain.shade("deflate", false)
        );
        assert_ne!(
            Hue::Plain.shade("deflate", false),
            Hue::Plain.shade("deflate", true)
        );
        assert_ne!(
            Hue::Plain.shade("deflate", false),
            Hue::Plain.shade("inflate", false)
        );
    }
}
