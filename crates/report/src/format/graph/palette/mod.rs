//! Colours of a flame graph: a hue for each kind of code, and a shade of it for each function.

mod legend;
mod libraries;
#[cfg(test)]
mod tests;

use inferno::flamegraph::color::Color;

use crate::symbolize::{FunctionId, FunctionKind, Language, Languages, SymbolizedProfile};

use libraries::Libraries;

pub(in crate::format) use legend::{Entry, Legend};

/// Kinds of code that have a hue of their own, in the order in which legends list them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Hue {
    /// A thread, process or CPU.
    Part,
    Language(Language),
    /// Code made at run time, in an unknown language.
    Jit,
    /// Code of shared libraries that have this hue.
    Library(u8),
    Kernel,
    /// The state of a thread.
    State,
    /// A function without a name.
    Unnamed,
    /// Frames that are missing.
    Missing,
}

impl Hue {
    /// Red, green and blue of the darkest shade, and how much is added to them at most.
    fn range(self) -> ([u8; 3], [u8; 3]) {
        match self {
            Self::Part => ([205, 212, 222], [0, 0, 0]),
            Self::Kernel => ([220, 120, 20], [30, 35, 20]),
            Self::Jit => ([90, 180, 90], [40, 40, 40]),
            Self::Language(language) => of_language(language),
            Self::State => ([150, 160, 175], [0, 0, 0]),
            Self::Unnamed => ([180, 170, 165], [25, 25, 25]),
            Self::Missing => ([145, 145, 145], [0, 0, 0]),
            Self::Library(hue) => libraries::range(hue),
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

/// The meaning of a function's hue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaletteBy {
    /// The language of programs, and the module of shared libraries.
    #[default]
    Kind,
    /// The language it is written in.
    Language,
    /// The module it is in.
    Module,
}

/// The colours of a profile's functions.
pub(in crate::format) struct Palette<'p> {
    symbolized: &'p SymbolizedProfile,
    by: PaletteBy,
    languages: Languages,
    libraries: Libraries<'p>,
}

/// How a function is called, as far as it shows in its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::format) struct CallStyle {
    /// Paler.
    pub(in crate::format) inlined: bool,
    /// Duller.
    pub(in crate::format) remote_read: bool,
}

impl<'p> Palette<'p> {
    pub(in crate::format) fn new(symbolized: &'p SymbolizedProfile, by: PaletteBy) -> Self {
        Self {
            symbolized,
            by,
            languages: Languages::of(symbolized),
            libraries: match by {
                PaletteBy::Kind => Libraries::of(symbolized),
                PaletteBy::Language | PaletteBy::Module => Libraries::default(),
            },
        }
    }

    /// The colour of a function.
    pub(in crate::format) fn function(&self, id: FunctionId, style: CallStyle) -> Color {
        let function = &self.symbolized[id];
        let color = match self.module_hue(id) {
            Some(module) => of_module(module, &function.name),
            None => self.hue(id).shade(&function.name),
        };
        style.seen_in(color)
    }

    fn hue(&self, id: FunctionId) -> Hue {
        let function = &self.symbolized[id];
        let library = self.libraries.hue(&function.module).map(Hue::Library);
        let language = self.languages.get(id).map(Hue::Language);
        match function.kind {
            FunctionKind::User => library.or(language).unwrap_or(Hue::Unnamed),
            FunctionKind::Kernel => Hue::Kernel,
            FunctionKind::Jit | FunctionKind::Interpreted(_) => language.unwrap_or(Hue::Jit),
            FunctionKind::Missing => Hue::Missing,
            FunctionKind::State => Hue::State,
        }
    }

    /// The module that determines the hue of a function, if hues show modules.
    fn module_hue(&self, id: FunctionId) -> Option<&'p str> {
        let is_code = !matches!(self.hue(id), Hue::Kernel | Hue::Missing | Hue::State);
        let symbolized = self.symbolized;
        (self.by == PaletteBy::Module && is_code).then(|| &*symbolized[id].module)
    }

    /// The colour of a thread, process or CPU.
    pub(in crate::format) fn part() -> Color {
        Hue::Part.shade("")
    }
}

impl CallStyle {
    fn seen_in(self, color: Color) -> Color {
        // Halfway to white, and two thirds of the way to grey.
        let pale = |channel: u8| ((u16::from(channel) + 255) / 2) as u8;
        let dull = |channel: u8| ((u16::from(channel) + 2 * 165) / 3) as u8;
        let channel = |value: u8| {
            let value = if self.inlined { pale(value) } else { value };
            if self.remote_read { dull(value) } else { value }
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

/// The darkest shade of a language, and how much is added to it at most.
fn of_language(language: Language) -> ([u8; 3], [u8; 3]) {
    match language {
        Language::C => ([222, 95, 85], [30, 50, 45]),
        Language::Cpp => ([205, 185, 60], [35, 35, 30]),
        Language::Rust => ([205, 150, 105], [25, 30, 30]),
        Language::Go => ([215, 130, 120], [25, 30, 30]),
        Language::Python => ([160, 165, 55], [35, 35, 40]),
        Language::Java => ([60, 160, 95], [40, 40, 40]),
        Language::JavaScript => ([135, 190, 65], [35, 35, 40]),
        Language::Ruby => ([200, 75, 105], [35, 40, 40]),
        Language::Php => ([150, 150, 110], [35, 35, 35]),
        Language::CSharp => ([105, 140, 60], [35, 35, 40]),
        Language::Erlang => ([175, 60, 70], [40, 40, 40]),
        Language::Lua => ([165, 120, 60], [35, 35, 40]),
        Language::Julia => ([185, 110, 150], [30, 35, 35]),
    }
}

/// A hash of a name from 0 to 255, equal on every machine (FNV-1a, folded).
fn hash(name: &str) -> u16 {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as u16 & 0xff
}
