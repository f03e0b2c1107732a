//! Colours of a flame graph: a hue for each kind of code, and a shade of it for each function, the
//! same in every graph.

use inferno::flamegraph::color::Color;
use rustc_hash::FxHashSet;

use crate::symbolized::{Function, FunctionId, FunctionKind, SymbolizedProfile};

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

    fn shade(self, name: &str) -> Color {
        let (darkest, span) = self.range();
        let shade = hash(name);
        let channel = |index: usize| {
            let value = u16::from(darkest[index]) + u16::from(span[index]) * shade / 255;
            value.min(255) as u8
        };
        Color {
            r: channel(0),
            g: channel(1),
            b: channel(2),
        }
    }
}

/// What the hue of a function's colour tells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaletteBy {
    /// The language it is written in.
    #[default]
    Language,
    /// The module it is in.
    Module,
}

/// The colours of a profile's functions.
pub(super) struct Palette<'p> {
    symbolized: &'p SymbolizedProfile,
    by: PaletteBy,
    languages: Languages,
}

/// How a function is called, as far as it shows in its colour.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Manner {
    /// Paler.
    pub(super) inlined: bool,
    /// Duller.
    pub(super) read_back: bool,
}

impl<'p> Palette<'p> {
    pub(super) fn new(symbolized: &'p SymbolizedProfile, by: PaletteBy) -> Self {
        Self {
            symbolized,
            by,
            languages: Languages::of(symbolized),
        }
    }

    /// The colour of a function.
    pub(super) fn function(&self, id: FunctionId, manner: Manner) -> Color {
        let function = &self.symbolized[id];
        let hue = hue(function, self.languages.is_rust[id.index()]);
        let is_code = !matches!(hue, Hue::Kernel | Hue::Missing);
        let color = match self.by {
            PaletteBy::Module if is_code => of_module(&function.module, &function.name),
            _ => hue.shade(&function.name),
        };
        manner.seen_in(color)
    }

    /// The colour of a thread, process or CPU.
    pub(super) fn part() -> Color {
        Hue::Part.shade("")
    }
}

impl Manner {
    fn seen_in(self, color: Color) -> Color {
        // Halfway to white, and two thirds of the way to grey.
        let pale = |channel: u8| ((u16::from(channel) + 255) / 2) as u8;
        let dull = |channel: u8| ((u16::from(channel) + 2 * 165) / 3) as u8;
        let channel = |value: u8| {
            let value = if self.inlined { pale(value) } else { value };
            if self.read_back { dull(value) } else { value }
        };
        Color {
            r: channel(color.r),
            g: channel(color.g),
            b: channel(color.b),
        }
    }
}

/// A hue for each module, a shade of it for each function.
fn of_module(module: &str, function: &str) -> Color {
    let hue = f64::from(hash(module)) / 256.0 * 360.0;
    let lightness = 0.55 + f64::from(hash(function)) / 255.0 * 0.17;
    // From hue, saturation and lightness (CSS Color 4, section 7.1).
    let amplitude = 0.55 * lightness.min(1.0 - lightness);
    let channel = |offset: f64| {
        let k = (offset + hue / 30.0) % 12.0;
        let value = lightness - amplitude * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (value * 255.0).round() as u8
    };
    Color {
        r: channel(0.0),
        g: channel(8.0),
        b: channel(4.0),
    }
}

fn hue(function: &Function, is_rust: bool) -> Hue {
    match function.kind {
        FunctionKind::Kernel => Hue::Kernel,
        FunctionKind::Jit => Hue::Jit,
        FunctionKind::Missing => Hue::Missing,
        FunctionKind::State => Hue::Plain,
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
    is_surely_rust(name) || name.starts_with('<')
}

fn is_surely_rust(name: &str) -> bool {
    let starts = ["core::", "alloc::", "std::rt::", "std::sys::"];
    starts.iter().any(|start| name.starts_with(start))
        || name.starts_with('<') && name.contains(" as ")
}

/// Which functions are written in Rust, as far as their source files tell; without debug info, by
/// the company they keep: `a::b` is Rust in a module with other functions that are.
struct Languages {
    is_rust: Vec<bool>,
}

impl Languages {
    fn of(symbolized: &SymbolizedProfile) -> Self {
        let functions = symbolized.functions();
        let mut is_rust: Vec<Option<bool>> = vec![None; functions.len()];
        for (frame, _) in symbolized.profile().frames.iter() {
            for location in symbolized.locations(frame) {
                if let Some(file) = &location.file {
                    let known = &mut is_rust[location.function.index()];
                    *known = Some(known.unwrap_or(false) || file.ends_with(".rs"));
                }
            }
        }
        let named = |(function, is_rust): (&Function, &Option<bool>)| {
            is_rust.unwrap_or_else(|| is_surely_rust(&function.name))
        };
        let pairs = functions.iter().zip(&is_rust);
        let modules: FxHashSet<&str> = pairs
            .filter(|&pair| named(pair))
            .map(|(function, _)| &*function.module)
            .filter(|module| !module.is_empty())
            .collect();
        let guess = |function: &Function| {
            function.name.contains("::") && modules.contains(&*function.module)
        };
        let pairs = functions.iter().zip(&is_rust);
        Self {
            is_rust: pairs
                .map(|(function, known)| known.unwrap_or_else(|| guess(function)))
                .collect(),
        }
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
    use crate::testing::TestProfile;

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
    fn without_debug_info_the_module_tells_the_language() {
        let mut test = TestProfile::new();
        test.line("t rg!core::iter::next;rg!grep::search;cc1!ns::parse 1");
        let symbolized = test.finish_without_files();
        let languages = Languages::of(&symbolized);
        let is_rust = |name: &str| {
            let mut ids = symbolized.function_ids();
            let id = ids.find(|&id| &*symbolized[id].name == name).unwrap();
            languages.is_rust[id.index()]
        };
        let found = ["core::iter::next", "grep::search", "ns::parse"].map(is_rust);
        assert_eq!(found, [true, true, false]);
    }

    #[test]
    fn a_function_has_one_colour_and_a_module_one_hue() {
        let symbolized = TestProfile::of(&["t main;libz!deflate+inlined;libz!inflate 1"]);
        let find = |name: &str| {
            let mut ids = symbolized.function_ids();
            ids.find(|&id| &*symbolized[id].name == name).unwrap()
        };
        for by in [PaletteBy::Language, PaletteBy::Module] {
            let palette = Palette::new(&symbolized, by);
            let color = |name, inlined, read_back| {
                let manner = Manner { inlined, read_back };
                let Color { r, g, b } = palette.function(find(name), manner);
                [r, g, b]
            };
            let plain = color("deflate", false, false);
            assert_eq!(plain, color("deflate", false, false));
            assert_ne!(plain, color("inflate", false, false));
            assert_ne!(plain, color("deflate", true, false));
            assert_ne!(plain, color("deflate", false, true));
        }
        // The strongest channel is that of the module, whatever the function.
        let strongest = |function| {
            let Color { r, g, b } = of_module("libz", function);
            [r, g, b]
                .iter()
                .enumerate()
                .max_by_key(|(_, value)| **value)
                .map(|(i, _)| i)
        };
        assert_eq!(strongest("deflate"), strongest("inflate"));
    }
}
